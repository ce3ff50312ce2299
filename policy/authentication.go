package policy

import (
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// MinMaxAge is the least max_age that a scope may demand: a person has to come back from the page, and
// the client has to use its token.
const MinMaxAge = 30 * time.Second

// Authentication says how well, and how long ago at most, a person must have proved who they are
// (RFC 9470). The zero value demands nothing.
type Authentication struct {
	ACR    string        // "": any
	MaxAge time.Duration // 0: any
}

// AuthenticationFor returns what scopes of a resource demand, with all that they include: the
// strongest class, and the least age.
func AuthenticationFor(r storage.Resource, s oauth.Scopes) (out Authentication) {
	held := Implied(r, s)
	for _, t := range r.Scopes {
		if !held.Has(t.Name) {
			continue
		}
		out.ACR = oauth.StrongerACR(out.ACR, t.ACR)
		if age := time.Duration(t.MaxAge); age > 0 && (out.MaxAge == 0 || age < out.MaxAge) {
			out.MaxAge = age
		}
	}
	return out
}

// WithoutPerson returns those of s that a program can use of itself: nothing that demands a proof of a
// person.
func WithoutPerson(r storage.Resource, s oauth.Scopes) oauth.Scopes {
	return without(r, s, func(t storage.ScopeText) bool { return t.ACR != "" || t.MaxAge > 0 })
}
