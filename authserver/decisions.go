package authserver

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/attempt"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Refused takes a request that a guard in this process is about to refuse with 401 or 403, and returns the
// reference by which the operator finds it (OB-02). Server is an mcpresource.Decisions.
func (s *Server) Refused(r *http.Request, d oauth.Decision) string {
	d.Reference = attempt.NewReference()
	presented, issued := s.presented(r, d)
	from := s.cfg.TrustedProxies.ClientAddr(r)
	s.cfg.Attempts.Refused(r, from, d, presented, s.refreshed(presented.Keys.Grant, issued))
	return d.Reference
}

// youth is how long the first request of a grant is expected. After a restart it is not known which grants
// have called before.
const youth = time.Hour

// LetThrough takes the first requests of a grant that a guard in this process has let through.
func (s *Server) LetThrough(_ context.Context, d oauth.Decision) {
	if made, ok := secrets.TimeOf(d.GrantID); ok && s.cfg.Now().Sub(made) <= youth {
		s.cfg.Attempts.LetThrough(d)
	}
}

// presented is what is known of the token that a guard has refused, and when it was issued: of one with our
// signature, what it says.
func (s *Server) presented(r *http.Request, d oauth.Decision) (p attempt.Presented, issued time.Time) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return attempt.Presented{State: attempt.TokenNone}, issued
	}
	_, token, _ := strings.Cut(strings.TrimSpace(header), " ")
	token = strings.TrimSpace(token)
	claims, ok := s.grants.tokens.Own(r.Context(), token)
	if !ok {
		return attempt.Presented{State: attempt.TokenForeign}, issued
	}
	p.State, p.Audience = attempt.TokenActive, claims.Audience
	if claims.Expires <= s.cfg.Now().Unix() {
		p.State = attempt.TokenExpired
	} else if d.Error == oauth.InvalidToken {
		if answer, err := s.Introspect(r.Context(), token); err == nil && !answer.Active {
			p.State = attempt.TokenEnded
		}
	}
	p.Keys.Client, p.Keys.Person, p.Keys.Grant = claims.ClientID, claims.Subject, claims.GrantID
	return p, time.Unix(claims.IssuedAt, 0)
}

// refreshed returns a function that reports whether a grant was given a token after the one that was issued
// at a time. The store knows, whichever server has done it.
func (s *Server) refreshed(grant string, issued time.Time) func(context.Context) bool {
	return func(ctx context.Context) bool {
		g, err := s.cfg.Store.Grant(ctx, grant)
		if err != nil {
			return false
		}
		c, err := s.cfg.Store.Connection(ctx, g.UserID, grant, s.cfg.Now())
		return err == nil && c.UsedAt.After(issued.Add(time.Second))
	}
}
