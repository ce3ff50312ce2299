package access

import (
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Grantable returns scopes with all scopes that they imply. It returns an error if one is unknown,
// or if a scope that every call needs is missing, because such a rule would admit nobody.
func Grantable(r storage.Resource, scopes oauth.Scopes) (oauth.Scopes, error) {
	if len(scopes) == 0 {
		return nil, nil
	}
	if unknown := scopes.Without(policy.ResourceScopes(r)); len(unknown) > 0 {
		return nil, fmt.Errorf("%q is not a scope of %s, which has %s", unknown.String(), r.URI,
			policy.ResourceScopes(r).String())
	}
	out := policy.Implied(r, scopes)
	if lost := policy.EveryCall(r).Without(out); len(lost) > 0 {
		return nil, fmt.Errorf("every call to %s needs the scope %q, so the rule would let nobody in: add the scope, or use none",
			r.URI, lost.String())
	}
	return policy.ResourceScopes(r).Intersect(out), nil
}
