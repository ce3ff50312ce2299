package policy

import (
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Asked are the scopes that an assertion is about: those of the request, of the assertion and of the
// trust entry. Nil: nothing is said.
type Asked struct {
	Requested, Named, Entry oauth.Scopes
}

// Asserted returns the scopes that an assertion is granted (AS-187): what the request asks for, or else
// what the assertion names, or else all that the entry allows, or the defaults of the resource; as far
// as the resource knows it, and the assertion and the entry allow it with all that it includes. Never
// offline_access: the issuer is asked again, and not the person.
func Asserted(r storage.Resource, a Asked) oauth.Scopes {
	requested := a.Requested.Without(oauth.Scopes{oauth.OfflineAccess})
	for _, fallback := range []oauth.Scopes{a.Named, a.Entry, DefaultScopes(r)} {
		if len(requested) == 0 {
			requested = fallback
		}
	}
	out := requested.Intersect(ResourceScopes(r))
	for _, limit := range []oauth.Scopes{a.Named, a.Entry} {
		if limit != nil {
			out = Within(r, out, Implied(r, limit))
		}
	}
	return out
}
