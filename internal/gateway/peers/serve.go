package peers

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/internal/stopping"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// These are the paths of requests between replicas.
const (
	pathSession = "/session"
	pathCheck   = "/check"
)

type passedKey struct{}

// Passed reports whether another replica has forwarded the request with context ctx.
func Passed(ctx context.Context) bool { return ctx.Value(passedKey{}) != nil }

// Serve accepts requests from other replicas until end is called. Running requests then have up to
// finish to complete.
func (p *Peers) Serve(l net.Listener) (end func(finish time.Duration)) {
	requests := stopping.NewRequests(context.Background())
	server := &http.Server{
		Handler:           p.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * idleTime, // the other side closes it first
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return requests.Context() },
		ErrorLog:          slog.NewLogLogger(p.c.Logger.Handler(), slog.LevelDebug),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listen(l, p.identity, p.c)); !errors.Is(err, http.ErrServerClosed) {
			p.c.Logger.Error("the listener for replicas has ended", "error", err)
		}
	}()
	return func(finish time.Duration) {
		_ = requests.End(finish, nil, server) // requests that have not finished are cut off
		<-done
		p.transport.CloseIdleConnections()
	}
}

// handler serves the requests of other replicas. The listener has authenticated them.
func (p *Peers) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathCheck, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc(pathSession, p.serve)
	return mux
}

func (p *Peers) serve(w http.ResponseWriter, r *http.Request) {
	s := p.sites[r.Header.Get(headerResource)]
	_, holder, _ := strings.Cut(r.Header.Get(mcp.HeaderSession), separator)
	if s == nil || holder != p.c.Self {
		gateway.Fault{Status: http.StatusNotFound, Code: mcp.CodeRefused, Message: "Session not found."}.Write(w)
		return
	}
	caller, err := readCaller(r.Header)
	if err != nil {
		p.c.Logger.WarnContext(r.Context(), "a request of another replica cannot be read", "error", err)
		gateway.Fault{Status: http.StatusBadGateway, Code: mcp.CodeInternal, Message: "Two servers of this " +
			"installation do not understand each other. Its operator has to look into it."}.Write(w)
		return
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), passedKey{}, true))
	defer cancel()
	if r.Method == http.MethodGet { // a listening stream lasts until one of the two servers stops
		defer stopping.OnBegin(ctx, cancel)()
	}
	r = r.WithContext(mcpresource.NewContext(ctx, caller))
	r.Body = http.MaxBytesReader(w, r.Body, s.maxBody)
	s.handler.ServeHTTP(w, r)
	if r.Method == http.MethodPost && errors.Is(context.Cause(ctx), stopping.Err) {
		panic(http.ErrAbortHandler) // the other replica must not take a response that was cut off for a complete one
	}
}
