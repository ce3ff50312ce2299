package policy

import (
	"slices"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// OwnScopes are the scopes of the server itself, which belong to no resource.
var OwnScopes = oauth.Scopes{oauth.OfflineAccess, oauth.OpenID}

// Unknown returns the named resources that are not in the catalogue.
func (c *Catalogue) Unknown(resources []string) (out []string) {
	for _, uri := range resources {
		if _, ok := c.Lookup(Canonical(uri)); !ok {
			out = append(out, uri)
		}
	}
	return out
}

// Offered returns the scopes of the named resources, or of all resources if the list is empty.
func (c *Catalogue) Offered(resources []string) (out oauth.Scopes) {
	for _, r := range c.resources {
		if len(resources) == 0 ||
			slices.ContainsFunc(resources, func(uri string) bool { return Canonical(uri) == r.URI }) {
			out = out.Union(ResourceScopes(r))
		}
	}
	return out
}

// Canonical returns the canonical form of a resource URL, or the input if it has no canonical form.
func Canonical(resource string) string {
	if uri, err := oauth.CanonicalResource(resource); err == nil {
		return uri
	}
	return resource
}
