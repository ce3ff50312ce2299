package policy

import (
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Asked contains the scopes of the request, the assertion and the trust entry. Nil means
// unspecified.
type Asked struct {
	Requested, Named, Entry oauth.Scopes
}

// Asserted returns the scopes to grant for an assertion (AS-187). It starts with the requested
// scopes, or else the assertion's, or else the entry's, or else the resource's defaults. The result
// is limited to scopes that the resource knows. The assertion and the entry must allow each scope
// with everything that it includes. offline_access is never granted: the client must get a new
// assertion from the issuer.
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
