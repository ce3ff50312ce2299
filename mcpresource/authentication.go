package mcpresource

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Authentication states how a user must have authenticated (RFC 9470). A token that does not
// satisfy it gets 401 with insufficient_user_authentication, the ACR values and the maximum age.
// Many clients do not know that error: they refresh their token, and sign in only if a scope is
// missing. For them, mcp-authd omits the scope from a refreshed token when the authentication is
// too old. A machine's token has no user and never satisfies it. The zero value requires nothing.
type Authentication struct {
	ACR    []string      // any one of these authentication context classes; empty: any class
	MaxAge time.Duration // maximum age, in whole seconds; 0: no limit
}

// demandsProof reports whether a requires anything.
func demandsProof(a Authentication) bool { return len(a.ACR) > 0 || a.MaxAge > 0 }

// bothProofs returns the combination of a and b. If they have no class in common, nothing satisfies it.
func bothProofs(a, b Authentication) Authentication {
	out := a
	switch {
	case len(a.ACR) == 0:
		out.ACR = b.ACR
	case len(b.ACR) > 0:
		out.ACR = slices.DeleteFunc(slices.Clone(a.ACR), func(acr string) bool { return !slices.Contains(b.ACR, acr) })
		if len(out.ACR) == 0 {
			out.ACR = []string{noACR}
		}
	}
	if a.MaxAge == 0 || b.MaxAge > 0 && b.MaxAge < a.MaxAge {
		out.MaxAge = b.MaxAge
	}
	return out
}

// noACR is not a class of any server.
const noACR = ""

// AuthenticationError means that an operation requires an authentication of the user that their
// token does not show.
type AuthenticationError struct{ Required Authentication }

// Error implements error.
func (e *AuthenticationError) Error() string {
	var want []string
	if len(e.Required.ACR) > 0 {
		want = append(want, "one of "+strings.Join(e.Required.ACR, ", "))
	}
	if e.Required.MaxAge > 0 {
		want = append(want, "not older than "+e.Required.MaxAge.String())
	}
	return "mcpresource: proof of the person needed: " + strings.Join(want, ", ")
}

// proven returns an *AuthenticationError unless the token of p satisfies need.
func (g *Guard) proven(p *Principal, need Authentication) error {
	if !demandsProof(need) || proves(p, need, g.c.Now()) {
		return nil
	}
	return &AuthenticationError{need}
}

// proves reports whether the claims of a token satisfy need (RFC 9068 §2.2.1, RFC 9470 §6). An
// auth_time in the future is accepted, because the server's clock may be ahead.
func proves(p *Principal, need Authentication, now time.Time) bool {
	says, ok := proofOf(p)
	if !ok {
		return false
	}
	recent := need.MaxAge == 0 || says.AuthTime > 0 && now.Sub(time.Unix(says.AuthTime, 0)) <= need.MaxAge
	return recent && (len(need.ACR) == 0 || says.ACR != noACR && slices.Contains(need.ACR, says.ACR))
}

// insufficient refuses a token whose user must authenticate again or with more factors (RFC 9470
// §3). It returns nil if the token satisfies need.
func (g *Guard) insufficient(r *http.Request, p *passage, scopes oauth.Scopes, need Authentication) *refusal {
	err := g.proven(p.principal, need)
	switch {
	case err == nil:
		return nil
	case slices.Contains(need.ACR, noACR): // no sign-in would help
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
