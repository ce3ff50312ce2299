package issuer

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/mcp-authd/mcp-authd/internal/foreign"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Metadata is the part of an authorization server's metadata that this package needs.
type Metadata struct {
	Issuer        string                     `json:"issuer"`
	Token         string                     `json:"token_endpoint"`
	JWKSURI       string                     `json:"jwks_uri"`
	Introspection string                     `json:"introspection_endpoint"`
	Scopes        map[string]metadata.Values `json:"protected_resource_scopes"` // of mcp-authd
	Reports       string                     `json:"resource_reports_endpoint"` // of mcp-authd
	Clearance     string                     `json:"clearance_endpoint"`        // of mcp-authd
}

// ScopesOf returns the scopes of a resource, if the server is an mcp-authd. It does not use
// protected_resources, because servers may omit resources from it (RFC 9728 §4).
func (m Metadata) ScopesOf(resource string) (scopes []string, known bool, err error) {
	if m.Scopes == nil {
		return nil, false, errors.ErrUnsupported
	}
	for uri, scopes := range m.Scopes {
		if canonical, err := oauth.CanonicalResource(uri); err == nil && canonical == resource {
			return scopes, true, nil
		}
	}
	return nil, false, nil
}

// Discover reads the metadata of an issuer, at the locations and in the order that MCP defines for
// clients. The issuer in it must equal issuer exactly (RFC 8414 §3.3): otherwise another server
// could impersonate it.
func Discover(ctx context.Context, c *http.Client, issuer string) (Metadata, error) {
	origin := oauth.ResourceOrigin(issuer)
	var errs []error
	for _, path := range metadata.AuthorizationServerPaths(issuer) {
		var m Metadata
		body, err := fetchJSON(ctx, c, origin+path)
		if err == nil {
			err = foreign.Metadata(body, &m)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if m.Issuer != issuer {
			errs = append(errs, fmt.Errorf("%s%s names the issuer %q", origin, path, m.Issuer))
			continue
		}
		return m, nil
	}
	return Metadata{}, fmt.Errorf("no metadata of issuer %q: %w", issuer, errors.Join(errs...))
}
