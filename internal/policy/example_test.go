package policy_test

import (
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// A request names a resource and scopes. The catalogue finds the resource, and Requestable returns
// the scopes that can be granted.
func Example() {
	catalogue, err := policy.NewCatalogue([]storage.Resource{{
		URI: "https://mcp.example.com/notes",
		Scopes: []storage.ScopeText{
			{Name: "notes:read", Default: true},
			{Name: "notes:write", Implies: oauth.Scopes{"notes:read"}},
		},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := catalogue.Resolve([]string{"https://mcp.example.com/notes/"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.URI, r.Match)
	fmt.Println(policy.Requestable(r.Resource, oauth.ParseScopes("notes:write openid")))
	fmt.Println(policy.NeedsConsent(r.Resource, oauth.ParseScopes("notes:write"), oauth.ParseScopes("notes:read")))
	// Output:
	// https://mcp.example.com/notes trailing slash
	// notes:write
	// false
}
