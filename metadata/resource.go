package metadata

import (
	"errors"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// ProtectedResource holds protected resource metadata, members in the order of RFC 9728 §2. Empty
// members are omitted (RFC 9728 §3.2, RS-10).
type ProtectedResource struct {
	// resource: REQUIRED, the identifier that the location was built from
	Resource string `json:"resource"`
	// authorization_servers: REQUIRED by MCP; most clients read only the first
	AuthorizationServers Values `json:"authorization_servers,omitempty"`
	// jwks_uri: OPTIONAL, keys of the resource itself, not of the tokens
	JWKSURI string `json:"jwks_uri,omitempty"`
	// scopes_supported: RECOMMENDED, the smallest useful set; clients request all of it
	ScopesSupported Values `json:"scopes_supported,omitempty"`
	// bearer_methods_supported: OPTIONAL; MCP permits only "header"
	BearerMethods Values `json:"bearer_methods_supported,omitempty"`
	ResourceName  string `json:"resource_name,omitempty"` // resource_name: RECOMMENDED, for people
	// resource_documentation: OPTIONAL, for developers
	Documentation string `json:"resource_documentation,omitempty"`
	PolicyURI     string `json:"resource_policy_uri,omitempty"` // resource_policy_uri: OPTIONAL
	TermsURI      string `json:"resource_tos_uri,omitempty"`    // resource_tos_uri: OPTIONAL

	// dpop_signing_alg_values_supported: OPTIONAL
	DPoPAlgorithms Values `json:"dpop_signing_alg_values_supported,omitempty"`
	// dpop_bound_access_tokens_required: OPTIONAL, default false
	DPoPRequired bool `json:"dpop_bound_access_tokens_required,omitempty"`
}

// Validate returns an error if a conforming client would reject r.
func (r ProtectedResource) Validate() error {
	if _, err := oauth.CanonicalResource(r.Resource); err != nil { // RS-03
		return errors.New("metadata: " + err.Error())
	}
	if len(r.AuthorizationServers) == 0 { // RS-02
		return errors.New("metadata: authorization_servers is empty")
	}
	for _, s := range r.ScopesSupported {
		// RS-09: reserved scopes belong to the authorization server, and no resource requires them.
		if oauth.Reserved(s) || !oauth.ValidScope(s) || strings.ContainsRune(s, ' ') {
			return errors.New("metadata: the scope " + s + " cannot belong to a resource")
		}
	}
	return nil
}
