package policy

import (
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// MinMaxAge is the smallest max_age that a scope may demand. It leaves time for the user to return
// from the page and for the client to use its token.
const MinMaxAge = 30 * time.Second

// Authentication specifies how strongly and how recently a user must have authenticated (RFC 9470).
// The zero value demands nothing.
type Authentication struct {
	ACR    string        // "": any
	MaxAge time.Duration // 0: any
}

// AuthenticationFor returns the demands of the scopes and of all scopes that they include: the
// strongest class and the lowest age.
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

// Proof describes how and when a user authenticated.
type Proof struct {
	ACR string    // "": no class
	At  time.Time // zero: unknown
}

// Meets reports whether a proof meets the demands at a time.
func (p Proof) Meets(want Authentication, now time.Time) bool {
	return oauth.ACRSatisfies(p.ACR, want.ACR) && p.Recent(want, now)
}

// Recent reports whether a proof is as recent as demanded.
func (p Proof) Recent(want Authentication, now time.Time) bool {
	return want.MaxAge == 0 || !p.At.IsZero() && now.Sub(p.At) <= want.MaxAge
}

// Proved returns the scopes in s whose demands a proof still meets. A refresh drops the others.
// A client that knows only scopes then notices the missing one and requests it, and the user
// authenticates again.
func Proved(r storage.Resource, s oauth.Scopes, p Proof, now time.Time) oauth.Scopes {
	return slices.DeleteFunc(slices.Clone(s), func(scope string) bool {
		return !p.Meets(AuthenticationFor(r, oauth.Scopes{scope}), now)
	})
}

// WithoutPerson returns the scopes in s that a program can use without a user: those that demand no
// authentication of a user.
func WithoutPerson(r storage.Resource, s oauth.Scopes) oauth.Scopes {
	return without(r, s, func(t storage.ScopeText) bool { return t.ACR != "" || t.MaxAge > 0 })
}
