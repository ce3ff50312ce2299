package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Resource is an MCP server that tokens are issued for, as shown in lists.
type Resource struct {
	storage.Resource
	From  string     `json:"from" jsonschema:"configuration, store, or the program that was last started with it, such as protect"`
	Tools []ToolNeed `json:"tools,omitempty" jsonschema:"the rules of the gateway for its tools"`
	// Rules say who may have which scopes. Without rules, everyone may have all.
	Rules []Rule `json:"rules,omitempty" jsonschema:"who may have which scopes; without any, everyone may have all"`
	// OverriddenBy is the source of another resource with the same URI that takes precedence.
	OverriddenBy string `json:"overridden_by,omitempty" jsonschema:"tokens are issued by the one of the same URL from there"`
}

// ToolNeed is the gateway's rule for one tool, or for the tools with a prefix.
type ToolNeed struct {
	Name   string   `json:"name"`
	Scopes []string `json:"scopes,omitempty" jsonschema:"all scopes that a call needs"`
	Denied bool     `json:"denied,omitempty"`
	Direct bool     `json:"direct,omitempty" jsonschema:"the application may call it, but none of its sub-agents"`
	// Clearance is set if a person must approve each call.
	Clearance *ClearanceNeed `json:"clearance,omitempty" jsonschema:"a person has to approve each call"`
}

// ClearanceNeed says who must approve each call of a tool, and which authentication the approval
// needs.
type ClearanceNeed struct {
	By        string   `json:"by" jsonschema:"person: the user of the call; other: another user"`
	Approvers []string `json:"approvers,omitempty" jsonschema:"for other: names of accounts that may approve; none: administrators"`
	ACR       string   `json:"acr,omitempty" jsonschema:"required authentication context class (acr)"`
	MaxAge    string   `json:"max_age,omitempty" jsonschema:"maximum age of the sign-in, such as 5m0s"`
	When      string   `json:"when,omitempty" jsonschema:"an expression over the arguments; without it, each call needs approval"`
}

// String describes the rule in one line.
func (n ClearanceNeed) String() string {
	who := "the person allows each call"
	switch {
	case n.By == oauth.ClearanceByOther && len(n.Approvers) > 0:
		who = strings.Join(n.Approvers, " or ") + " allows each call"
	case n.By == oauth.ClearanceByOther:
		who = "an administrator allows each call"
	}
	for _, more := range [][2]string{{" where ", n.When}, {", acr ", n.ACR}, {", signed in at most ", n.MaxAge}} {
		if more[1] != "" {
			who += more[0] + more[1]
		}
	}
	if n.MaxAge != "" {
		who += " ago"
	}
	return who
}

// ResourceURL names a resource.
type ResourceURL struct {
	URI string `json:"uri" jsonschema:"the URL of the MCP server"`
}

// ResourceEnded is a removed resource, with the number of grants that ended with it.
type ResourceEnded struct {
	Resource
	Ended GrantCount `json:"ended"`
}

// Operations that read or remove resources.
var (
	ResourceList = define(Spec{
		Name: "resource list", Method: "GET", Path: "/resources", Roles: reading,
		Summary: "List MCP servers, and the scopes that their tools need",
		Details: "Lists MCP servers with their scopes, and, where this server is also the gateway, the tools that need\n" +
			"additional scopes. In a data directory of protect, it shows the MCP server of the last start. A\n" +
			"stored MCP server that is also in the configuration is overridden: tokens are issued by the\n" +
			"configuration.",
	}, (*Service).listResources)
	ResourceShow = define(Spec{
		Name: "resource show", Method: "GET", Path: "/resources/{uri}", Roles: reading,
		Summary: "Show an MCP server with its scopes, aliases and tool rules",
		Details: "Shows an MCP server, by its URL or by an alias.",
	}, (*Service).showResource)
	ResourceRemove = define(Spec{
		Name: "resource remove", Method: "DELETE", Path: "/resources/{uri}", Fresh: true,
		Takes:   true,
		Summary: "Remove an MCP server and revoke every grant for it",
		Details: "Removes an MCP server and its aliases from the store, and revokes every grant for it.",
	}, (*Service).removeResource)
)

// Resources returns the resources of the configuration and of the store.
func (s *Service) Resources(ctx context.Context) ([]storage.Resource, error) {
	stored, err := s.Store.ListResources(ctx)
	return append(s.Config.StorageResources(), stored...), err
}

// catalogue returns the resources that tokens are issued for, and the number of MCP servers among
// them.
func (s *Service) catalogue(ctx context.Context) (*policy.Catalogue, int, error) {
	known, err := s.Resources(ctx)
	if err != nil {
		return nil, 0, err
	}
	c, err := policy.NewCatalogue(append(known, s.Own...))
	return c, len(known), err
}

// toolNeeds returns the gateway's tool rules for a configured resource.
func toolNeeds(r *config.Resource) (out []ToolNeed) {
	for _, t := range r.Tools {
		need := ToolNeed{Name: t.Name, Denied: t.Deny, Direct: t.Direct}
		if !t.Deny {
			need.Scopes, need.Clearance = oauth.Scopes(r.Base()).Union(t.Scopes), clearanceNeed(t.Clearance)
		}
		out = append(out, need)
	}
	return out
}

// clearanceNeed returns the tool call approval rule, or nil.
func clearanceNeed(c config.ToolClearance) *ClearanceNeed {
	if !c.Set() {
		return nil
	}
	n := &ClearanceNeed{By: c.By, Approvers: c.Approvers, ACR: c.ACR, When: c.When}
	if c.MaxAge > 0 {
		n.MaxAge = c.MaxAge.String()
	}
	return n
}

// servedFact is the database key for the resource that protect last served.
const servedFact = "protect"

// lastStarted follows the name of a program in the source of a resource.
const lastStarted = ", as last started"

// RememberServed stores the resource of protect, or of another program with an embedded server, in
// the database. Such a resource comes from the command line or from code, so no file contains it.
func (s *Service) RememberServed(ctx context.Context, program string) error {
	own := Resource{
		Resource: s.Config.StorageResources()[0], From: program + lastStarted,
		Tools: toolNeeds(&s.Config.Resources[0]),
	}
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	_, err = s.Store.Remember(ctx, servedFact, text)
	return err
}

// AllResources returns all MCP servers with the tool rules of this server. A configured resource
// precedes a stored one with the same URI, as in policy.NewCatalogue.
func (s *Service) AllResources(ctx context.Context) ([]Resource, error) {
	out, err := s.configured(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := s.Store.ListResources(ctx)
	if err != nil {
		return nil, err
	}
	overrides := map[string]string{}
	for _, r := range out {
		overrides[policy.Canonical(r.URI)] = r.From
	}
	for _, r := range stored {
		shown := storedAs(r)
		shown.OverriddenBy = overrides[r.URI]
		out = append(out, shown)
	}
	return out, nil
}

// storedAs returns a stored MCP server as shown in lists.
func storedAs(r storage.Resource) Resource {
	return Resource{Resource: r, From: "store", Tools: toolNeeds(config.StoredResource(r))}
}

// configured returns the MCP servers of the configuration, and protect's resource, if any.
func (s *Service) configured(ctx context.Context) ([]Resource, error) {
	out := []Resource{}
	for i, r := range s.Config.StorageResources() {
		out = append(out, Resource{Resource: r, From: "configuration", Tools: toolNeeds(&s.Config.Resources[i])})
	}
	text, err := s.Store.Remember(ctx, servedFact, nil)
	if err != nil || len(text) == 0 {
		return out, err
	}
	var own Resource
	if err := json.Unmarshal(text, &own); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(out, func(r Resource) bool { return r.URI == own.URI }) {
		out = append(out, own)
	}
	return out, nil
}

func (s *Service) listResources(ctx context.Context, _ None) (Page[Resource], error) {
	all, err := s.AllResources(ctx)
	return Page[Resource]{Items: all}, err
}

// findResource finds a resource by its URL or by an alias. The first match is the one used for
// tokens. Without a match it returns ErrNotFound.
func (s *Service) findResource(ctx context.Context, raw string) (Resource, error) {
	uri, err := oauth.CanonicalResource(raw)
	if err != nil {
		return Resource{}, fault(ErrInvalid, "%q: %v", raw, err)
	}
	all, err := s.AllResources(ctx)
	if err != nil {
		return Resource{}, err
	}
	for _, r := range all {
		if policy.Canonical(r.URI) == uri {
			return r, nil
		}
	}
	for _, r := range all {
		if hasAlias(r.Resource, uri) {
			return r, nil
		}
	}
	return Resource{}, fault(ErrNotFound, "there is no stored resource %s; see: mcp-authd resource list", uri)
}

func hasAlias(r storage.Resource, uri string) bool {
	return slices.ContainsFunc(r.Aliases, func(alias string) bool { return policy.Canonical(alias) == uri })
}

// showResource also shows the resources of the server itself. They appear in no list, but grants
// name them.
func (s *Service) showResource(ctx context.Context, in ResourceURL) (Resource, error) {
	r, err := s.findResource(ctx, in.URI)
	if err == nil {
		var rules Page[Rule]
		rules, err = s.listRules(ctx, RulesWanted{Resource: r.URI})
		r.Rules = rules.Items
		return r, err
	}
	if !errors.Is(err, ErrNotFound) {
		return r, err
	}
	for _, own := range s.Own {
		if policy.Canonical(own.URI) == policy.Canonical(in.URI) {
			return Resource{Resource: own, From: "this server"}, nil
		}
	}
	return r, err
}

// storedResource finds a resource that can be changed here.
func (s *Service) storedResource(ctx context.Context, raw string) (Resource, error) {
	r, err := s.findResource(ctx, raw)
	program, served := strings.CutSuffix(r.From, lastStarted)
	switch uri := policy.Canonical(raw); {
	case err != nil:
		return r, err
	case policy.Canonical(r.URI) != uri:
		return r, fault(ErrConflict, "%s is an alias of %s: change it there", uri, r.URI)
	case served:
		return r, fault(ErrConflict, "%s is what %s serves: start it with other options", uri, program)
	case r.Config:
		return r, fault(ErrConflict, "%s is in the configuration (%s): change it there", uri, s.configSource())
	}
	return r, nil
}

// grantsAt returns the live grants for any of the URLs, up to the number that is shown.
func (s *Service) grantsAt(ctx context.Context, urls []string) (out SomeGrants, err error) {
	for _, url := range urls {
		some, err := s.SomeGrants(ctx, storage.Selection{Resource: url})
		if err != nil {
			return out, err
		}
		out.List, out.More = append(out.List, some.List...), out.More || some.More
	}
	return out, nil
}

func (s *Service) removeResource(ctx context.Context, in ResourceURL) (ResourceEnded, error) {
	r, err := s.storedResource(ctx, in.URI)
	if err != nil {
		return ResourceEnded{}, s.Unfinished(ctx, err, func(k storage.Cut) bool { return k.Resource != "" })
	}
	grants, err := s.grantsAt(ctx, append(slices.Clone(r.Aliases), r.URI))
	if err != nil {
		return ResourceEnded{}, err
	}
	switch err := s.Store.RemoveResource(ctx, r.URI, s.Now()); {
	case errors.Is(err, storage.ErrNotFound):
		return ResourceEnded{}, fault(ErrNotFound, "%s was removed by another operator at this moment", r.URI)
	case err != nil:
		return ResourceEnded{}, err
	}
	s.changedResource(ctx, r.Resource, "removed")
	return ResourceEnded{Resource: r, Ended: grants.Count()}, nil
}

func (s *Service) changedResource(ctx context.Context, r storage.Resource, what string) {
	attrs := []slog.Attr{slog.String("resource", r.URI), slog.String("what", what)}
	if r.Upstream != "" {
		attrs = append(attrs, slog.String("upstream_url", r.Upstream))
	}
	s.Audit.Record(ctx, audit.ResourceChanged, attrs...)
}

// free returns an error if another resource than of, a URI, has one of the URLs.
func (s *Service) free(ctx context.Context, of string, urls []string) error {
	for _, own := range s.Own {
		if slices.Contains(urls, policy.Canonical(own.URI)) {
			return fault(ErrConflict, "%s belongs to this server itself; nothing was changed", own.URI)
		}
	}
	all, err := s.Resources(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if policy.Canonical(r.URI) == of {
			continue
		}
		for _, url := range urls {
			switch {
			case url == policy.Canonical(r.URI):
				return fault(ErrConflict, "%s is a resource already; nothing was changed", url)
			case hasAlias(r, url):
				return fault(ErrConflict, "%s is an alias of %s already; nothing was changed", url, r.URI)
			}
		}
	}
	return nil
}

func scopeNames(scopes []storage.ScopeText) string {
	names := make([]string, 0, len(scopes))
	for _, s := range scopes {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}
