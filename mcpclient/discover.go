package mcpclient

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// found holds the results of discovery.
type found struct {
	origin      string // of the MCP server
	resource    string
	issuer      string
	endpoint    string // the token endpoint
	methods     []string
	grants      []string
	scopes      oauth.Scopes // to request first
	demandsDPoP bool
}

// discover finds the authorization server of the MCP server (MCP "Authorization Server Discovery").
func (w *Client) discover(ctx context.Context) error {
	d := discovery.New(w.c.Transport)
	w.found.origin = discovery.Origin(w.c.Server)
	ch, err := d.Challenge(ctx, w.c.Server)
	if err != nil {
		return err
	}
	// RFC 9728 §3.1: the document must be on the resource's own origin, so it cannot redirect
	// requests elsewhere.
	if ch.ResourceMetadata != "" && discovery.Origin(ch.ResourceMetadata) != w.found.origin {
		return fail(discovery.StepChallenge, "Serve the document from the origin of the MCP server.",
			"the challenge points to %s, at another origin", printable(ch.ResourceMetadata))
	}
	w.trace(discovery.StepChallenge, fmt.Sprintf("%d from %s, scope %q", ch.Status, w.c.Server, ch.Scope),
		map[string]any{"status": ch.Status, "scope": ch.Scope.String()})
	r, err := d.Resource(ctx, w.c.Server, ch)
	if err != nil {
		return err
	}
	if err := w.read(ch, r); err != nil {
		return err
	}
	return w.examine(ctx, d)
}

// read applies the metadata of the MCP server.
func (w *Client) read(ch discovery.Challenge, r discovery.Resource) error {
	if r.Location == "" {
		return fail(discovery.StepResource, "Publish the RFC 9728 document.",
			"%s says of no authorization server that it trusts it", w.c.Server)
	}
	issuers, err := discovery.Issuers(w.c.Server, r)
	if err != nil {
		return err
	}
	w.found.resource, w.found.issuer = r.ProtectedResource.Resource, issuers[0]
	w.found.demandsDPoP = r.DPoPRequired
	if pinned := w.c.AuthorizationServer; pinned != "" {
		if !slices.Contains(issuers, pinned) {
			return fail(discovery.StepResource, "Is the MCP server the right one? Nothing was sent to its servers.",
				"the MCP server names %s as its authorization server, and not %s", printable(issuers[0]), pinned)
		}
		w.found.issuer = pinned
	}
	w.found.scopes = firstScopes(w.c.Scopes, ch.Scope, oauth.Scopes(r.ScopesSupported))
	w.trace(discovery.StepResource, r.Location+", resource matches",
		map[string]any{"resource": w.found.resource, "authorization_servers": issuers})
	return nil
}

// firstScopes returns a copy of the first list that is not empty (CL-18, CL-19).
func firstScopes(lists ...[]string) oauth.Scopes {
	for _, l := range lists {
		if len(l) > 0 {
			return slices.Clone(l)
		}
	}
	return nil
}

// examine reads the metadata of the authorization server.
func (w *Client) examine(ctx context.Context, d *discovery.Client) error {
	f := &w.found
	if err := w.transport(f.issuer); err != nil {
		return err
	}
	m, exists, err := d.Server(ctx, f.issuer)
	switch {
	case err != nil:
		return err
	case !exists:
		return fail(discovery.StepMetadata, "Is the issuer right?", "there is no metadata of the issuer %s",
			printable(f.issuer))
	}
	f.endpoint, f.methods, f.grants = m.TokenEndpoint, m.TokenAuthMethods, m.GrantTypes
	if err := w.transport(f.endpoint); err != nil {
		return err
	}
	if g := w.grant(); len(f.grants) > 0 && !slices.Contains(f.grants, g) {
		return fail(discovery.StepMetadata, "Does its operator trust a platform yet? See: mcp-authd trust add",
			"%s does not offer the grant type %s", f.issuer, g)
	}
	w.trace(discovery.StepMetadata, f.issuer+", issuer matches, grant type "+w.grant(),
		map[string]any{"issuer": f.issuer, "token_endpoint": f.endpoint, "grant_type": w.grant()})
	return nil
}

// transport rejects URLs that would send credentials of an https MCP server in clear or to this
// machine.
func (w *Client) transport(raw string) error {
	if err := discovery.CheckURL(raw); err != nil {
		return fail(discovery.StepMetadata, "The server's metadata is broken.", "%v", err)
	}
	if isHTTPS(w.found.origin) && !isHTTPS(raw) {
		return fail(discovery.StepMetadata, "Serve the authorization server over https.", "%s is not an https URL",
			printable(raw))
	}
	return nil
}

// grant returns the grant type used to get tokens.
func (w *Client) grant() string {
	if w.c.Token == nil {
		return oauth.GrantClientCredentials
	}
	return oauth.GrantJWTBearer
}

// isOurs reports whether u has the origin that tokens are for.
func (f *found) isOurs(u *url.URL) bool {
	return discovery.Origin((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}).String()) == f.origin
}

func isHTTPS(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Scheme == "https"
}
