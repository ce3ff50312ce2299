package grant

import (
	"context"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/trust"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var errNotForResource = oauth.NewError(oauth.InvalidTarget,
	"The trust entry of this issuer is not for the requested resource.")

// resource returns the resource of the token. The candidates are the known resources that the
// assertion names, or else the resources of its trust entry. The request selects one; otherwise the
// first is used (AS-186). A workload with several candidates must name one (AS-207).
func (g *Bearer) resource(ctx context.Context, a trust.Assertion, r TokenRequest) (policy.Resolution, error) {
	named, err := g.named(ctx, a)
	if err != nil {
		return policy.Resolution{}, err
	}
	if len(r.Resources) > 0 {
		resource, err := g.Catalog.Resolve(ctx, r.Resources)
		switch {
		case err != nil:
			return resource, err
		case len(named) > 0 &&
			!slices.ContainsFunc(named, func(n policy.Resolution) bool { return n.URI == resource.URI }):
			return resource, oauth.NewError(oauth.InvalidTarget, "The assertion is not for the requested resource.")
		case !entryIsFor(a.Entry, resource.Resource):
			return resource, errNotForResource
		}
		return resource, nil
	}
	if len(named) > 0 {
		i := slices.IndexFunc(named, func(n policy.Resolution) bool { return entryIsFor(a.Entry, n.Resource) })
		if i < 0 {
			return policy.Resolution{}, errNotForResource
		}
		return named[i], nil
	}
	return g.implied(ctx, a)
}

// named returns the known resources that an assertion names, in its order.
func (g *Bearer) named(ctx context.Context, a trust.Assertion) (out []policy.Resolution, err error) {
	for _, uri := range a.Resources {
		resource, err := g.Catalog.Resolve(ctx, []string{uri})
		switch {
		case err == nil:
			out = append(out, resource)
		case oauth.AsError(err).Code != oauth.InvalidTarget:
			return nil, err
		}
	}
	if len(a.Resources) > 0 && len(out) == 0 {
		return nil, invalidGrant("The assertion is for no resource that is known here.")
	}
	return out, nil
}

// implied returns the resource for a request if the assertion and the request name none.
func (g *Bearer) implied(ctx context.Context, a trust.Assertion) (policy.Resolution, error) {
	known, err := g.Catalog.Load(ctx)
	if err != nil {
		return policy.Resolution{}, err
	}
	var possible []storage.Resource
	for _, r := range known.Resources() {
		if r.AliasOf == "" && entryIsFor(a.Entry, r) {
			possible = append(possible, r)
		}
	}
	switch {
	case len(possible) == 0:
		return policy.Resolution{}, errNotForResource
	case len(possible) > 1 && a.Kind != trust.Enterprise:
		return policy.Resolution{}, oauth.NewError(oauth.InvalidTarget,
			"The parameter 'resource' is missing, and the workload may use more than one.")
	}
	return g.Catalog.Resolve(ctx, []string{possible[0].URI})
}

// entryIsFor reports whether a trust entry covers a resource. An alias is the same MCP server.
func entryIsFor(e storage.TrustEntry, r storage.Resource) bool {
	return len(e.Resources) == 0 || slices.ContainsFunc(e.Resources, func(uri string) bool {
		canonical, err := oauth.CanonicalResource(uri)
		return err == nil && (canonical == r.URI || canonical == r.Server())
	})
}
