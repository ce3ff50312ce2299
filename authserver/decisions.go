package authserver

import (
	"context"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/decisions"
	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func (s *Server) newDecisions() *decisions.Taker {
	return decisions.New(decisions.Config{
		Issuer:   s.cfg.Issuer,
		Tokens:   s.grants.tokens,
		Store:    s.cfg.Store,
		Attempts: s.cfg.Attempts,
		Audit:    s.cfg.Audit,
		Log:      s.log,
		Now:      s.cfg.Now,
	})
}

// Refused records a request that a guard in this process is about to refuse with 401 or 403. It
// returns the reference that identifies it for the operator (OB-02). Server implements
// mcpresource.Decisions.
func (s *Server) Refused(r *http.Request, d oauth.Decision) string {
	return s.decisions.Refused(r, s.cfg.TrustedProxies.ClientAddr(r), d)
}

// Read records a client that reads the RFC 9728 metadata of a resource whose guard is in this
// process.
func (s *Server) Read(r *http.Request, resource string) {
	s.decisions.Read(r, s.cfg.TrustedProxies.ClientAddr(r), resource)
}

// LetThrough records the first requests of a grant that a guard in this process has let through.
func (s *Server) LetThrough(_ context.Context, d oauth.Decision) { s.decisions.LetThrough(d) }

// Called records a tool call that a guard in this process reports, as an entry tool.called in the
// Logs of Config.Audit. See mcpresource.KeepCalls.
func (s *Server) Called(ctx context.Context, c oauth.Call) { s.decisions.Called(ctx, c) }

// handleReport serves POST /reports: a resource server in another process reports its refusals and
// tool calls. The caller is the client that the resource server uses for introspection.
func (s *Server) handleReport(w http.ResponseWriter, r *http.Request) {
	p, err := readForm(r)
	if err != nil {
		s.writeParseError(w, r, err)
		return
	}
	client, err := s.grants.clientAuth.Authenticate(r.Context(), credentials(r, p))
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	answer, err := s.decisions.Report(r.Context(), client, p.Get("report"))
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	wire.WriteJSON(w, http.StatusOK, answer)
}
