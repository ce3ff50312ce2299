package policy

import (
	"slices"
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

// Proof is how a person has proved who they are.
type Proof struct {
	ACR string    // "": no class
	At  time.Time // zero: not known
}

// Meets reports whether a proof is, at a time, what is demanded.
func (p Proof) Meets(want Authentication, now time.Time) bool {
	return oauth.ACRSatisfies(p.ACR, want.ACR) && p.Recent(want, now)
}

// Recent reports whether a proof is as recent as demanded.
func (p Proof) Recent(want Authentication, now time.Time) bool {
	return want.MaxAge == 0 || !p.At.IsZero() && now.Sub(p.At) <= want.MaxAge
}

// Proved returns those of s for which a proof is still enough. Of a grant that is refreshed, the others
// are left out, so that a client that knows scopes alone finds one missing and asks for it: its person
// then proves again who they are.
func Proved(r storage.Resource, s oauth.Scopes, p Proof, now time.Time) oauth.Scopes {
	return slices.DeleteFunc(slices.Clone(s), func(scope string) bool {
		return !p.Meets(AuthenticationFor(r, oauth.Scopes{scope}), now)
	})
}

// WithoutPerson returns those of s that a program can use of itself: nothing that demands a proof of a
// person.
func WithoutPerson(r storage.Resource, s oauth.Scopes) oauth.Scopes {
	return without(r, s, func(t storage.ScopeText) bool { return t.ACR != "" || t.MaxAge > 0 })
}
