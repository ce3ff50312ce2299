package authserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/wire"
)

// keptWithin is how long a response waits for its audit entries to be stored.
const keptWithin = 5 * time.Second

// kept delays responses until the audit log has stored their entries, and answers 503 if it does
// not (OB-06). While the audit log fails, requests that could change something are refused
// immediately.
func (s *Server) kept(h http.Handler) http.Handler {
	if !s.cfg.AuditRequired {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.paths.acts(r) {
			if err := s.cfg.Audit.Ready(); err != nil {
				s.writeUnkept(w, r, err)
				return
			}
		}
		ctx, pending := audit.Awaited(r.Context())
		r = r.WithContext(ctx)
		a := &heldAnswer{server: s, w: w, r: r, pending: pending, before: w.Header().Clone()}
		h.ServeHTTP(&wire.Answer{ResponseWriter: w, Begin: a.begin}, r)
		a.begin() // for a response without a body
	})
}

// acts reports whether a request can cause an audit entry.
func (p paths) acts(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		path := r.URL.Path
		return path == p.authorize || path == p.depart || strings.HasPrefix(path, p.callback)
	}
	return true
}

// heldAnswer is a response that begins when the audit log has stored its entries.
type heldAnswer struct {
	server  *Server
	w       http.ResponseWriter
	r       *http.Request
	pending *audit.Pending
	before  http.Header // before the handler ran
	begun   bool
	refused bool
}

// begin waits for the audit log, and reports whether to send the handler's response.
func (a *heldAnswer) begin() bool {
	if a.begun {
		return !a.refused
	}
	a.begun = true
	ctx, cancel := context.WithTimeout(a.r.Context(), keptWithin)
	defer cancel()
	if err := a.pending.Wait(ctx); err != nil {
		a.refused = true
		clear(a.w.Header()) // removes cookies and redirects with a code
		for name, values := range a.before {
			a.w.Header()[name] = values
		}
		a.server.writeUnkept(a.w, a.r, err)
	}
	return !a.refused
}

// writeUnkept answers a request whose audit entries were not stored.
func (s *Server) writeUnkept(w http.ResponseWriter, r *http.Request, cause error) {
	err := refusal.Unavailable(errors.Join(errUnkept, cause))
	if wantsPage(r) {
		s.errors.show(w, r, http.StatusServiceUnavailable, err)
		return
	}
	s.writeError(w, r, err)
}

var errUnkept = errors.New("audit.required: the audit log could not record the request")
