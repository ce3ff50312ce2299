package authserver

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/span"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// bodyTimeout limits the reading of a request; the largest has 64 KiB.
const bodyTimeout = 30 * time.Second

// observe writes one log event after each request: the client, the request, the outcome and the
// reason. It never logs the query and the body, because they contain codes, states and secrets;
// only parameters that identify client and request are logged. It turns a panic into a 500 and logs
// it with its stack.
func (s *Server) observe(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A client that sends a body byte by byte must not hold a connection for long. Not every
		// writer supports deadlines; net/http's do.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		from := s.cfg.TrustedProxies.ClientAddr(r)
		rec := request.New(attempt.NewReference(), s.cfg.Now(), from)
		rec.Note(audit.Remote(from.String()))
		r = r.WithContext(rec.Within(r.Context()))
		w.Header().Set("X-Request-Id", rec.Reference())
		span.Note(r.Context(), span.Reference.String(rec.Reference()))
		if strings.HasPrefix(s.cfg.Issuer, "https://") {
			w.Header().Set("Strict-Transport-Security", wire.StrictTransportSecurity)
		}
		if proxy, ok := s.undeclared.found(r); ok {
			s.log.WarnContext(r.Context(), forgottenProxy, "peer", proxy.String())
		}
		m := measure(s.recovered(h), w, r)
		if hungUp(r, m.Code) { // no response was sent
			m.Code = wire.StatusHungUp
			rec.Refuse(nil)
		} else {
			s.cfg.Attempts.End(r, rec, s.taken(r, rec, m))
		}
		if e := rec.Refusal(); e != nil {
			span.Note(r.Context(), span.Refusal.String(string(e.Code)))
		}
		s.logRequest(r, rec, m)
		s.answered(r, m.Code, m.Duration)
	})
}

// measured is the status of a response, and how long the request took.
type measured struct {
	Code     int
	Duration time.Duration
}

func measure(h http.Handler, w http.ResponseWriter, r *http.Request) measured {
	began, a := time.Now(), &wire.Answer{ResponseWriter: w}
	h.ServeHTTP(a, r)
	return measured{cmp.Or(a.Status, http.StatusOK), time.Since(began)}
}

// hungUp reports whether a request failed because its client closed the connection, and not because
// of the server.
func hungUp(r *http.Request, status int) bool {
	return status >= http.StatusInternalServerError && context.Cause(r.Context()) == context.Canceled
}

const forgottenProxy = "a forwarded header from an address that is not a trusted proxy: all people behind it count as one " +
	"network, which slows down all their sign-ins when one of them guesses passwords. If it is your proxy, add it to trusted_proxies"

func (s *Server) logRequest(r *http.Request, rec *request.Record, m measured) {
	level, refused := slog.LevelInfo, rec.Refusal()
	if m.Code < http.StatusBadRequest {
		level = s.cfg.Audit.RoutineLevel()
	}
	if refused != nil && m.Code >= 500 && !errors.Is(refused, storage.ErrPaused) { // paused by a user, not a failure
		level = slog.LevelError
	}
	if !s.log.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", s.paths.logged(r.URL.Path)),
		slog.Int("status", m.Code), audit.Duration(m.Duration), slog.String("user_agent", form.Cut(r.UserAgent(), 200)),
	}
	if m.Code >= 400 && !s.paths.isIssuerHost(r.Host) {
		attrs = append(attrs, slog.String("host", form.Cut(r.Host, maxHost)))
	}
	attrs = append(attrs, rec.Attrs()...)
	if id := span.TraceID(r.Context()); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	if refused != nil {
		attrs = append(attrs, refusal.Attr(refused))
		if m.Code >= 500 {
			attrs = append(attrs, slog.String("cause", refused.Error()))
		}
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}

func (s *Server) recovered(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.log.ErrorContext(r.Context(), "panic", request.Of(r.Context()).ReferenceAttr(), "panic", v, "stack",
				string(debug.Stack()))
			s.writeError(w, r, oauth.AsError(nil))
		}()
		h.ServeHTTP(w, r)
	})
}
