package mcpresource

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Authentication says how a person must have proved who they are (RFC 9470). A token that does not meet
// it gets 401 with insufficient_user_authentication, the classes and the age. Many clients do not know
// that error: they refresh their token, and sign in where a scope is missing. mcp-authd leaves a scope
// that demands a proof out of a refreshed token when the proof is too old, so that these clients get
// there, too. A token of a program has no person and never meets it. The zero value demands nothing.
type Authentication struct {
	ACR    []string      // one of these authentication context classes; none: any
	MaxAge time.Duration // how long ago at most, to the second; 0: at any time
}

// demands reports whether anything is demanded.
func (a Authentication) demands() bool { return len(a.ACR) > 0 || a.MaxAge > 0 }

// and returns what meets both. Where no class is in both, none will do.
func (a Authentication) and(b Authentication) Authentication {
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

// noACR is no class of any server.
const noACR = ""

// AuthenticationError says which proof of the person an operation needs, and their token does not show.
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

// proven returns an *AuthenticationError when the token of p does not show the proof that is needed.
func (g *Guard) proven(p *Principal, need Authentication) error {
	if !need.demands() || p.proves(need, g.c.Now()) {
		return nil
	}
	return &AuthenticationError{need}
}

// proves reports whether the claims of a token say that its person has proved who they are as demanded
// (RFC 9068 §2.2.1, RFC 9470 §6). A server whose clock is ahead may say a time that is still to come.
func (p *Principal) proves(need Authentication, now time.Time) bool {
	says, ok := p.proof.of(p)
	if !ok {
		return false
	}
	recent := need.MaxAge == 0 || says.AuthTime > 0 && now.Sub(time.Unix(says.AuthTime, 0)) <= need.MaxAge
	return recent && (len(need.ACR) == 0 || says.ACR != noACR && slices.Contains(need.ACR, says.ACR))
}

// proof is what the claims of a token say about how its person has proved who they are. It is read once
// for a request: a list asks for each of its entries.
type proof struct {
	AuthTime int64  `json:"auth_time"`
	ACR      string `json:"acr"`
}

// reading is a proof that is read when it is first asked for. Nil reads each time.
type reading struct {
	once  sync.Once
	proof proof
	ok    bool
}

func (r *reading) of(p *Principal) (proof, bool) {
	if r == nil {
		r = &reading{}
	}
	r.once.Do(func() { r.ok = json.Unmarshal(p.Claims, &r.proof) == nil })
	return r.proof, r.ok
}

// insufficient refuses a token whose person has to prove more, or again (RFC 9470 §3). Nil: they need not.
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
