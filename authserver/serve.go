package authserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/stopping"
)

// Site is an address that Serve serves.
type Site struct {
	// Address is the address to listen on, such as "127.0.0.1:8080". It is ignored if Listener is
	// set.
	Address  string
	Listener net.Listener
	// Handler serves the requests. Default: Server.Handler.
	Handler http.Handler
	// Certificate enables https. Without one, the site should be on loopback, or behind a proxy
	// that terminates TLS.
	Certificate *tls.Certificate
	// GetCertificate enables https as an alternative. It is called for each handshake, so that a
	// renewed certificate is used without a restart.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// NextProtos lists further protocols for handshakes, such as "acme-tls/1" of GetCertificate.
	NextProtos []string
	// MaxConnections limits the open connections. Beyond it, a connection without a request, or
	// with an incomplete body, is closed for a new one: the longest waiting of the network with
	// most of them. Default: 8192.
	MaxConnections int
	// Ending is called at the beginning of the shutdown, to close streams gracefully before they
	// are cut; gosdk.Adapter.Close is an example. It may take as long as open requests.
	Ending func(context.Context) error
}

const (
	drainTime  = 500 * time.Millisecond // for load balancers to notice that /readyz fails
	letterTime = 5 * time.Second        // for mail to users
)

// Serve serves sites, with the housekeeping of Run, until ctx ends. Then readiness fails, streams
// that listen end, open requests finish within Config.Finish, and Serve returns nil. A program that
// calls Drain some seconds before it ends ctx gives load balancers that time to notice. Programs
// with their own http.Server do not need Serve: they call Register, Run and Drain.
func (s *Server) Serve(ctx context.Context, sites ...Site) error {
	asked := ctx // ends when a stop is requested
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	requests := stopping.NewRequests(ctx)
	defer requests.Close()
	var servers []*http.Server
	var listeners []net.Listener
	for _, site := range sites {
		plain, err := site.listen(ctx)
		if err != nil {
			return err // Close ends the other sites
		}
		l := &onceListener{Listener: plain}
		defer l.Close()
		listeners = append(listeners, l)
		h := s.httpServer(site, requests.Context())
		servers = append(servers, h)
		go func() {
			if err := site.serve(h, l); !errors.Is(err, http.ErrServerClosed) {
				cancel(err)
			}
		}()
	}
	go s.Run(ctx)
	<-ctx.Done()
	if asked.Err() == nil {
		return context.Cause(ctx) // of a site that failed
	}
	s.log.Info("stopping")
	if !s.draining.Swap(true) {
		time.Sleep(drainTime)
	}
	closeListeners(listeners)
	err := requests.End(s.cfg.Finish, endings(sites), servers...)
	letters, done := context.WithTimeout(context.WithoutCancel(ctx), letterTime)
	defer done()
	s.notifier.Drain(letters)
	s.cfg.Attempts.Write(letters) // requests that ended after Run
	return err
}

// httpServer returns a server with limits for connections and requests, whatever their path and
// method. Responses have no limit: streams of MCP servers last as long as their clients want.
func (s *Server) httpServer(site Site, requests context.Context) *http.Server {
	h := site.Handler
	if h == nil {
		h = s.Handler()
	}
	setDefault(&site.MaxConnections, defaultConnections)
	bound := newConnections(site.MaxConnections, s.cfg.TrustedProxies)
	return &http.Server{
		Handler:           s.parting(timely(h, bodyTimeout)),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ConnState:         bound.changed,
		ConnContext:       bound.known,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// parting closes connections gracefully while the server drains. The next request of a client or
// proxy then opens a new connection, which may reach another replica. Over HTTP/1.1, the response
// contains Connection: close (RFC 9112 §9.6). Over HTTP/2, net/http sends GOAWAY for the same
// header.
func (s *Server) parting(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

func (site Site) listen(ctx context.Context) (net.Listener, error) {
	if site.Listener != nil {
		return site.Listener, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", site.Address)
	if err != nil {
		return nil, fmt.Errorf("authserver: %w", err)
	}
	return l, nil
}

func (site Site) serve(h *http.Server, l net.Listener) error {
	if site.Certificate == nil && site.GetCertificate == nil {
		return h.Serve(l)
	}
	h.TLSConfig = &tls.Config{GetCertificate: site.GetCertificate, MinVersion: tls.VersionTLS12}
	if len(site.NextProtos) > 0 {
		h.TLSConfig.NextProtos = append([]string{"h2", "http/1.1"}, site.NextProtos...)
	}
	if site.Certificate != nil {
		h.TLSConfig.Certificates = []tls.Certificate{*site.Certificate}
	}
	return h.ServeTLS(l, "", "")
}

func endings(sites []Site) (out []func(context.Context) error) {
	for _, site := range sites {
		if site.Ending != nil {
			out = append(out, site.Ending)
		}
	}
	return out
}
