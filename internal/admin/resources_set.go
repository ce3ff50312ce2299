package admin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Limits of a stored resource.
const (
	maxScopes       = 100
	maxResourceName = 200
	maxScopeText    = 1000
)

// NewResource describes an MCP server.
type NewResource struct {
	URI       string              `json:"uri" jsonschema:"its public URL"`
	Name      string              `json:"name,omitempty" jsonschema:"display name; default the URL"`
	Scopes    []storage.ScopeText `json:"scopes,omitempty" jsonschema:"default one scope named mcp; if no scope is marked, the first is requested at the first sign-in and needed for every call"`
	Aliases   []string            `json:"aliases,omitempty" jsonschema:"other URLs of it, so that one application can connect as several people"`
	DPoP      string              `json:"dpop,omitempty" jsonschema:"optional or required: whether its tokens must be bound to a key of the client (RFC 9449)"`
	Upstream  string              `json:"upstream,omitempty" jsonschema:"if the gateway is to serve it: the http or https URL where the gateway reaches it; its public URL is then at the origin of this server"`
	ToolRules []storage.ToolRule  `json:"tool_rules,omitempty" jsonschema:"what calls of tools need beyond the scopes of every call: a name, or a prefix with *, and scopes, or deny, or direct (not for sub-agents)"`
}

// ResourceChange holds the new values of a resource. Empty fields stay unchanged.
type ResourceChange struct {
	URI       string              `json:"uri" jsonschema:"the URL of the MCP server"`
	Name      string              `json:"name,omitempty" jsonschema:"display name"`
	Scopes    []storage.ScopeText `json:"scopes,omitempty" jsonschema:"replace all earlier ones"`
	Aliases   []string            `json:"aliases,omitzero" jsonschema:"replace all earlier ones; an empty list removes them"`
	DPoP      string              `json:"dpop,omitempty" jsonschema:"optional or required: whether its tokens must be bound to a key of the client (RFC 9449)"`
	Upstream  string              `json:"upstream,omitempty" jsonschema:"the http or https URL where the gateway reaches it; none: the gateway does not serve it any more"`
	ToolRules []storage.ToolRule  `json:"tool_rules,omitzero" jsonschema:"replace all earlier ones; an empty list removes them"`
}

// Operations that change resources.
var (
	ResourceAdd = define(Spec{
		Name: "resource add", Method: "POST", Path: "/resources", Fresh: true, Summary: "Add an MCP server",
		Details: "Adds an MCP server by its public URL. A running server sees it within seconds. If no scope is marked\n" +
			"as needed for every call, the first scope is. An MCP server that exists already stays unchanged:\n" +
			"resource set changes it. With an upstream, the gateway serves the MCP server on every replica, within\n" +
			"seconds. The upstream is a URL and never a command, which would let an administrator run programs.",
	}, (*Service).addResource)
	ResourceSet = define(Spec{
		Name: "resource set", Method: "PATCH", Path: "/resources/{uri}", Fresh: true,
		Summary: "Change the name, aliases, scopes or upstream of an MCP server",
		Details: "Changes only the given settings of an MCP server. New scopes replace all earlier scopes and their\n" +
			"settings. New aliases replace all earlier aliases. Grants stay, but removed scopes have no effect\n" +
			"any more, and removing an alias revokes every grant for it.",
	}, (*Service).setResource)
)

func (s *Service) addResource(ctx context.Context, in NewResource) (Resource, error) {
	uri, err := oauth.CanonicalResource(in.URI)
	if err != nil {
		return Resource{}, fault(ErrInvalid, "%q: %v", in.URI, err)
	}
	r := storage.Resource{URI: uri, Name: uri, CreatedAt: s.Now().UTC().Truncate(time.Millisecond)}
	if len(in.Scopes) == 0 {
		in.Scopes = []storage.ScopeText{{Name: "mcp", Description: "use this server"}}
	}
	change := ResourceChange{Name: in.Name, Scopes: in.Scopes, Aliases: in.Aliases, DPoP: in.DPoP,
		Upstream: in.Upstream, ToolRules: in.ToolRules}
	if err := change.apply(&r); err != nil {
		return Resource{}, err
	}
	if _, err := s.knownResource(ctx, uri); !errors.Is(err, ErrNotFound) {
		if err == nil {
			err = fault(ErrConflict, "%s is there already; nothing was changed; change it with: mcp-authd resource set", uri)
		}
		return Resource{}, err
	}
	if err := s.checkUpstream(ctx, r); err != nil {
		return Resource{}, err
	}
	if err := s.free(ctx, uri, append(slices.Clone(r.Aliases), uri)); err != nil {
		return Resource{}, err
	}
	switch err := s.Store.AddResource(ctx, r); {
	case errors.Is(err, storage.ErrExists):
		return Resource{}, fault(ErrConflict, "%s was added by another command at this moment; nothing was changed", uri)
	case err != nil:
		return Resource{}, err
	}
	s.changedResource(ctx, r, "added")
	return storedAs(r), nil
}

// knownResource finds a resource by its canonical URL, ignoring aliases. Without a match it returns
// ErrNotFound.
func (s *Service) knownResource(ctx context.Context, uri string) (Resource, error) {
	r, err := s.findResource(ctx, uri)
	if err == nil && policy.Canonical(r.URI) != uri {
		return Resource{}, fault(ErrNotFound, "%s is an alias of %s", uri, r.URI)
	}
	return r, err
}

func (s *Service) setResource(ctx context.Context, in ResourceChange) (Resource, error) {
	r, err := s.storedResource(ctx, in.URI)
	if err != nil {
		return Resource{}, err
	}
	before := r.Aliases
	if err := in.apply(&r.Resource); err != nil {
		return Resource{}, err
	}
	if err := s.checkUpstream(ctx, r.Resource); err != nil {
		return Resource{}, err
	}
	if err := s.free(ctx, r.URI, r.Aliases); err != nil {
		return Resource{}, err
	}
	switch err := s.Store.ReplaceResource(ctx, r.Resource, s.Now()); {
	case errors.Is(err, storage.ErrExists):
		return Resource{}, fault(ErrConflict, "an alias was taken by another command at this moment; nothing was changed")
	case errors.Is(err, storage.ErrNotFound):
		return Resource{}, fault(ErrNotFound, "%s was removed by another command at this moment", r.URI)
	case err != nil:
		return Resource{}, err
	}
	s.changedResource(ctx, r.Resource, "changed")
	for _, alias := range before {
		if !slices.Contains(r.Aliases, alias) {
			s.changedResource(ctx, storage.Resource{URI: alias}, "removed")
		}
	}
	return storedAs(r.Resource), nil
}

// apply validates the change and applies it to a record.
func (c ResourceChange) apply(r *storage.Resource) error {
	if c.Name != "" {
		r.Name = c.Name
	}
	if len(r.Name) > maxResourceName && r.Name != r.URI {
		return fault(ErrInvalid, "the name has more than %d bytes", maxResourceName)
	}
	switch c.DPoP {
	case "":
	case "optional":
		r.DPoP = storage.DPoPOptional
	case "required":
		r.DPoP = storage.DPoPRequired
	default:
		return fault(ErrInvalid, "dpop: %q is not one of optional, required", c.DPoP)
	}
	if c.Aliases != nil {
		aliases, err := oauth.CanonicalAliases(r.URI, c.Aliases)
		if err != nil {
			return fault(ErrInvalid, "%v", err)
		}
		r.Aliases = aliases
	}
	c.applyUpstream(r)
	if len(c.Scopes) > 0 {
		r.Scopes = slices.Clone(c.Scopes)
		return completeScopes(r)
	}
	return nil
}

// completeScopes refuses invalid scopes, and fills in missing values.
func completeScopes(r *storage.Resource) error {
	if len(r.Scopes) > maxScopes {
		return fault(ErrInvalid, "a resource may have %d scopes at most", maxScopes)
	}
	if !slices.ContainsFunc(r.Scopes, func(s storage.ScopeText) bool { return s.Default || s.EveryCall }) {
		r.Scopes[0].Default = true
	}
	names := map[string]bool{}
	for i := range r.Scopes {
		s := &r.Scopes[i]
		switch {
		case !oauth.ValidScope(s.Name) || oauth.Reserved(s.Name):
			return fault(ErrInvalid, "%q is not a scope of a resource (no spaces, quotes or backslashes; "+
				"offline_access and %s... are the server's own)", s.Name, oauth.ScopeClearance)
		case names[s.Name]:
			return fault(ErrInvalid, "the scope %q is listed twice", s.Name)
		case len(s.Name) > maxResourceName || len(s.Description) > maxScopeText:
			return fault(ErrInvalid, "a scope may have a name of %d bytes at most, and a description of %d", maxResourceName,
				maxScopeText)
		}
		if s.Description == "" {
			s.Description = s.Name
		}
		names[s.Name] = true
	}
	for _, s := range r.Scopes {
		if wrong := policy.FaultOf(*r, s); wrong != "" {
			return fault(ErrInvalid, "scope %q: %s", s.Name, wrong)
		}
		for _, implied := range s.Implies {
			if !names[implied] {
				return fault(ErrInvalid, "scope %q: %q is not a scope of this resource, which has %s", s.Name, implied,
					scopeNames(r.Scopes))
			}
		}
	}
	return nil
}

// ScopeFindings reports stored resources whose scopes resource set would refuse now. An example is
// a scope that an application needs to connect but that users may leave out. Earlier versions
// accepted such scopes.
func (s *Service) ScopeFindings(ctx context.Context) (f findings, _ error) {
	stored, err := s.Store.ListResources(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range stored {
		for _, scope := range r.Scopes {
			if wrong := policy.FaultOf(r, scope); wrong != "" {
				f.add("resources", LevelFail, "change its scopes: mcp-authd resource set "+r.URI, "%s: scope %q: %s", r.URI,
					scope.Name, wrong)
			}
		}
	}
	return f, nil
}
