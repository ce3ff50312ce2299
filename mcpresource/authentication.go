package mcpresource

import (
	"net/http"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// proven returns an *AuthenticationError unless the token of p satisfies need.
func (g *Guard) proven(p *Principal, need Authentication) error {
	if !rules.DemandsProof(need) || proves(p, need, g.c.Now()) {
		return nil
	}
	return &AuthenticationError{Required: need}
}

// proves reports whether the claims of a token satisfy need (RFC 9068 §2.2.1, RFC 9470 §6). An
// auth_time in the future is accepted, because the server's clock may be ahead.
func proves(p *Principal, need Authentication, now time.Time) bool {
	says, ok := token.ProofOf(p)
	if !ok {
		return false
	}
	recent := need.MaxAge == 0 || says.AuthTime > 0 && now.Sub(time.Unix(says.AuthTime, 0)) <= need.MaxAge
	return recent && (len(need.ACR) == 0 || says.ACR != rules.NoACR && slices.Contains(need.ACR, says.ACR))
}

// insufficient refuses a token whose user must authenticate again or with more factors (RFC 9470
// §3). It returns nil if the token satisfies need.
func (g *Guard) insufficient(r *http.Request, p *passage, scopes oauth.Scopes, need Authentication) *refusal {
	err := g.proven(p.principal, need)
	switch {
	case err == nil:
		return nil
	case slices.Contains(need.ACR, rules.NoACR): // no sign-in would help
		return &refusal{
			outcome: OutcomeInsufficientAuthentication, status: http.StatusForbidden, id: p.envelope.ID,
			text: "This operation is not permitted.", err: err,
		}
	}
	refused := g.challenged(OutcomeInsufficientAuthentication, http.StatusUnauthorized,
		oauth.InsufficientAuthentication, "This operation needs a stronger or more recent sign-in.", err)
	refused.challenge.ACRValues, refused.challenge.MaxAge = need.ACR, need.MaxAge
	refused.challenge.Scope, refused.id = g.stepUp(r, scopes, p.principal.Scopes), p.envelope.ID
	return refused
}
