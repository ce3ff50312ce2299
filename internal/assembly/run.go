package assembly

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Serve serves until ctx ends, then drains: the server reports that it is not ready, the listeners
// close after limits.drain, open requests finish, and Serve returns nil.
func (s *Server) Serve(ctx context.Context, sites ...authserver.Site) error {
	ctx, cancel := s.drained(ctx)
	defer cancel()
	at, endPeers, err := s.servePeers(ctx)
	if err != nil {
		return err
	}
	if !s.inside {
		boundMemory()
		go restMemory(ctx)
	}
	settleSinks := s.runAuditSinks(ctx) // starts first, so that a new destination gets all later entries
	settleAudit := s.runAudit(ctx)      // ends last, because all others record events
	go s.measure(ctx)
	go s.watchSize(ctx)
	leave := s.present(ctx, sites, at)
	settleSites, settle, settleEvents := s.runSites(ctx), s.runDelegation(ctx), s.runTransmitter(ctx)
	err = s.Auth.Serve(ctx, sites...)
	endPeers()
	cancel()
	settleSites()
	s.settleFaces(ctx)
	settle()
	settleEvents()
	settleAudit()
	settleSinks()
	leave()
	return err
}

// runSites runs the MCP servers until ctx ends. Calls may still finish while the server drains. The
// returned function is called after that, and waits until the last tool calls are written.
func (s *Server) runSites(ctx context.Context) (settle func()) {
	s.stored.run(ctx)
	go s.sites.Run(ctx)
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.calls.run(writing)
	}()
	return func() {
		stop()
		<-done
	}
}

// Handler returns the handler of the public listener.
func (s *Server) Handler() http.Handler {
	return s.traced(s.sites)
}

func (s *Server) traced(h http.Handler) http.Handler {
	return s.parts.traces.Handler(noticeStripping(s.Auth.Issuer(), s.parts.Log, h))
}

// Readyz reports whether the authorization server and the MCP servers are ready.
func (s *Server) Readyz(w http.ResponseWriter, r *http.Request) {
	s.sites.Readyz(s.Auth.Readyz)(w, r)
}

// Management returns the handler of the management listener.
func (s *Server) Management() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.Auth.Healthz)
	mux.HandleFunc("GET /readyz", s.Readyz)
	mux.Handle("GET /metrics", s.parts.Metrics.Handler())
	if s.parts.Config.Management.PProf {
		profiles(mux)
	}
	h := http.Handler(mux)
	if host, _, err := net.SplitHostPort(s.parts.Config.Management.Listen); err == nil && oauth.IsLoopbackHost(host) {
		h = localHost(mux) // a listener for other machines has names that only its administrator knows
	}
	if c := s.parts.Config.Console; c.Enabled && c.Listen == config.ConsoleManagement {
		return besideConsole(h, s.Auth.ConsoleHandler())
	}
	return h
}

// besideConsole serves the console, and the sign-in pages that it needs, on the management
// listener. They use the host of the issuer, which their cookies require, and check it themselves.
func besideConsole(management, console http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/debug/"} {
		mux.Handle(path, management)
	}
	mux.Handle("/", console)
	return mux
}

// profiles serves the Go profiles without the command line, which may reveal a path or URL.
func profiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}

// localHost serves only the names of this machine. Otherwise a page whose host name resolves to a
// loopback address could read the listener (DNS rebinding).
func localHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !network.IsLocal(r.Host) {
			http.Error(w, "This host name is not served here.", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
