package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func newResourceCommand(s std) *cobra.Command {
	return group("resource", "Manage the MCP servers that tokens are issued for", newResourceAdd(s), newResourceList(s),
		completing(s, (*app).resourceURIs, newResourceShow(s)), completing(s, (*app).resourceURIs, newResourceSet(s)),
		completing(s, (*app).resourceURIs, newResourceRemove(s)),
		completing(s, (*app).resourceURIs, newResourceTools(s)),
		completing(s, (*app).resourceURIs, newResourceTool(s)),
		completing(s, (*app).resourceURIs, newResourceAccept(s)))
}

// resourceFlags describe an MCP server.
type resourceFlags struct {
	name    string
	aliases []string
	scopes  []string
	marks   scopeMarks
	dpop    string
	gateway gatewayFlags
	json    bool
}

// scopeMarks holds the marks of scopes that users see.
type scopeMarks struct {
	access              map[string]string
	first, everyCall    []string // the marks default and every_call
	required, dangerous []string
	acr, maxAge         map[string]string
}

func (m *scopeMarks) given() bool {
	return len(m.access)+len(m.first)+len(m.everyCall)+len(m.required)+len(m.dangerous)+len(m.acr)+len(m.maxAge) > 0
}

// differ reports whether the scopes of a resource have other marks.
func (m *scopeMarks) differ(r storage.Resource) bool {
	marked := r
	return m.put(&marked) != nil || !reflect.DeepEqual(marked.Scopes, slices.Clone(r.Scopes))
}

// put marks the scopes of a resource.
func (m *scopeMarks) put(r *storage.Resource) error {
	r.Scopes = slices.Clone(r.Scopes)
	for name, access := range m.access {
		if err := markScope(r, name, func(s *storage.ScopeText) { s.Access = storage.Access(access) }); err != nil {
			return err
		}
	}
	for name, acr := range m.acr {
		if err := markScope(r, name, func(s *storage.ScopeText) { s.ACR = acr }); err != nil {
			return err
		}
	}
	for name, age := range m.maxAge {
		var a storage.Age
		if err := a.UnmarshalText([]byte(age)); err != nil {
			return fmt.Errorf("--max-age %s=%w", name, err)
		}
		if err := markScope(r, name, func(s *storage.ScopeText) { s.MaxAge = a }); err != nil {
			return err
		}
	}
	for _, m := range []struct {
		scopes []string
		mark   func(*storage.ScopeText)
	}{
		{m.first, func(s *storage.ScopeText) { s.Default = true }},
		{m.everyCall, func(s *storage.ScopeText) { s.EveryCall = true }},
		{m.required, func(s *storage.ScopeText) { s.Required = true }},
		{m.dangerous, func(s *storage.ScopeText) { s.Dangerous = true }},
	} {
		for _, name := range m.scopes {
			if err := markScope(r, name, m.mark); err != nil {
				return err
			}
		}
	}
	for _, s := range r.Scopes {
		if fault := policy.FaultOf(*r, s); fault != "" {
			return fmt.Errorf("scope %q: %s", s.Name, fault)
		}
	}
	return nil
}

func markScope(r *storage.Resource, name string, mark func(*storage.ScopeText)) error {
	i := slices.IndexFunc(r.Scopes, func(s storage.ScopeText) bool { return s.Name == name })
	if i < 0 {
		return fmt.Errorf("%q is not a scope of this resource, which has %s", name, strings.Join(scopeNames(*r), " "))
	}
	mark(&r.Scopes[i])
	return nil
}

func (f *resourceFlags) add(c *cobra.Command, name, aliases, scopes string, standard []string) {
	c.Flags().StringVar(&f.name, "name", "", "display name ("+name+")")
	c.Flags().StringArrayVar(&f.aliases, "alias", nil,
		"another URL of it, so that one application can connect as several users; repeat for more"+aliases)
	c.Flags().StringArrayVar(&f.scopes, "scope", standard,
		"scope with the description that users see; repeat for more"+scopes)
	c.Flags().StringToStringVar(&f.marks.access, "access", nil,
		"access that a scope gives: read, write or admin; repeat for more. Users can choose to grant only read scopes")
	c.Flags().StringArrayVar(&f.marks.first, "default", nil,
		"scope that is requested at the first sign-in; repeat for more. Others are requested when a tool needs them")
	c.Flags().StringArrayVar(&f.marks.everyCall, "every-call", nil,
		"scope that every call needs, so users cannot decline it; repeat for more (default: the first default one)")
	c.Flags().StringArrayVar(&f.marks.required, "required", nil, "scope that users cannot decline; repeat for more")
	c.Flags().StringArrayVar(&f.marks.dangerous, "dangerous", nil,
		"scope that users must select explicitly; repeat for more")
	c.Flags().StringToStringVar(&f.marks.acr, "acr", nil,
		"authentication that a scope requires: "+strings.Join(oauth.ACRs(), " or ")+"; repeat for more")
	c.Flags().StringToStringVar(&f.marks.maxAge, "max-age", nil,
		"maximum age of the sign-in that a scope requires, such as 5m; repeat for more")
	c.Flags().StringVar(&f.dpop, "dpop", "",
		"optional or required: whether its tokens must be bound to a key of the client (RFC 9449)")
	c.Flags().BoolVar(&f.json, "json", false, "print the resource as JSON")
}

func newResourceAdd(s std) *cobra.Command {
	var f resourceFlags
	return callerCommand(s, admin.ResourceAdd, &cobra.Command{
		Use: "URL", Args: cobra.ExactArgs(1),
		Example: "https://mcp.example.com/mcp --name Notes --scope mcp=\"read your notes\" --scope notes:write=\"add notes\"\n" +
			"https://auth.example.com/notes --upstream http://127.0.0.1:3000/mcp --scope mcp --scope admin --tool 'delete_*=admin'\n" +
			"https://mcp.example.com/mcp --alias https://mcp.example.com/mcp@work",
	}, func(c *cobra.Command) {
		f.add(c, "default: the URL", "", "", []string{"mcp=use this server"})
		f.gateway.add(c, "", "")
	},
		func(c *cobra.Command, by admin.Caller, args []string) error {
			r, err := newResource(args[0], f.name, f.scopes)
			if err == nil {
				err = f.marks.put(&r)
			}
			if err == nil {
				r.Aliases, err = f.aliasesOf(r.URI)
			}
			if err == nil {
				r.ToolRules, err = f.gateway.rules()
			}
			if err != nil {
				return err
			}
			f.remark(s, args[0], r)
			there, err := admin.ResourceShow.Do(c.Context(), by, admin.ResourceURL{URI: r.URI})
			switch {
			case err == nil && policy.Canonical(there.URI) == r.URI:
				return f.alreadyThere(s, c, there, r)
			case err != nil && !errors.Is(err, admin.ErrNotFound):
				return err
			}
			added, err := admin.ResourceAdd.Do(c.Context(), by, admin.NewResource{
				URI: r.URI, Name: f.name, Scopes: r.Scopes, Aliases: r.Aliases, DPoP: f.dpop,
				Upstream: f.gateway.upstream, ToolRules: r.ToolRules,
			})
			if err != nil {
				return err
			}
			return f.done(s, "added", added)
		})
}

// remark prints surprising facts: a changed spelling, and tokens without encryption.
func (f *resourceFlags) remark(s std, raw string, r storage.Resource) {
	if raw != r.URI {
		fmt.Fprintf(s.err, "mcp-authd: %s is kept as %s\n", label.Printable(raw), r.URI)
	}
	if oauth.InClear(r.URI) {
		fmt.Fprintf(s.err, "mcp-authd: warning: %s is plain http: tokens can be read on the way; use https\n", r.URI)
	}
}

// alreadyThere leaves an existing resource as it is. It returns an error only if the flags ask for
// other values.
func (f *resourceFlags) alreadyThere(s std, c *cobra.Command, there admin.Resource, wanted storage.Resource) error {
	change := "change it with: mcp-authd resource set " + there.URI
	if there.Config {
		change = "it is in the configuration: change it there"
	}
	if c.Flags().Changed("name") && there.Name != wanted.Name ||
		c.Flags().Changed("scope") && !slices.Equal(scopeNames(there.Resource), scopeNames(wanted)) ||
		f.marks.differ(there.Resource) || c.Flags().Changed("alias") && !sameAliases(there.Resource, wanted) ||
		f.gateway.differ(c, there) ||
		f.dpop != "" && (there.DPoP == storage.DPoPRequired) != (f.dpop == "required") {
		return fmt.Errorf("%s is there already, with the name %q%s and the scopes %s; nothing was changed; %s",
			there.URI, label.Printable(there.Name), withAliases(there.Resource),
			strings.Join(scopeNames(there.Resource), " "), change)
	}
	return f.done(s, "nothing was changed, it is there already:", there)
}

func (f *resourceFlags) done(s std, what string, r admin.Resource) error {
	if f.json {
		return printJSON(s.out, r)
	}
	_, err := fmt.Fprintf(s.out, "%s %s\n", what, r.URI)
	return err
}

// resources returns the resources of the configuration and of the store.
func (a *app) resources(ctx context.Context) ([]storage.Resource, error) {
	return (&admin.Service{Store: a.Store, Config: a.Config}).Resources(ctx)
}

func scopeNames(r storage.Resource) []string {
	names := make([]string, 0, len(r.Scopes))
	for _, sc := range r.Scopes {
		names = append(names, sc.Name)
	}
	return names
}

func newResource(raw, name string, scopes []string) (storage.Resource, error) {
	uri, err := oauth.CanonicalResource(raw)
	if err != nil {
		return storage.Resource{}, fmt.Errorf("%q: %w", raw, err)
	}
	r := storage.Resource{URI: uri, Name: name, CreatedAt: time.Now().UTC().Truncate(time.Millisecond)}
	if name == "" {
		r.Name = uri
	}
	for i, s := range scopes {
		scope, text, _ := strings.Cut(s, "=")
		if !oauth.ValidScope(scope) || oauth.Reserved(scope) {
			return r, fmt.Errorf("%q is not a scope of a resource (no spaces, quotes or backslashes; "+
				"offline_access and %s... are the server's own)", scope, oauth.ScopeClearance)
		}
		if text == "" {
			text = scope
		}
		r.Scopes = append(r.Scopes, storage.ScopeText{Name: scope, Description: text, Default: i == 0})
	}
	return r, nil
}

func newResourceList(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.ResourceList, &cobra.Command{Args: cobra.NoArgs, Example: "--json\n--data DIR"},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			all, err := admin.ResourceList.Do(c.Context(), by, admin.None{})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, all.Items)
			}
			t := newTable(s.out, "URL", "NAME", "SCOPES", "TOOLS THAT NEED MORE", "FROM")
			for _, r := range all.Items {
				t.row(r.URI, r.Name, strings.Join(scopeNames(r.Resource), " "), toolsOf(r), originOf(r))
				for _, alias := range r.Aliases {
					t.row(alias, "", "", "", "alias of "+r.URI)
				}
			}
			return t.flush()
		})
}

func newResourceRemove(s std) *cobra.Command {
	var sure confirmation
	var asJSON bool
	return callerCommand(s, admin.ResourceRemove, &cobra.Command{
		Use: "URL", SuggestFor: []string{"delete", "rm"}, Args: cobra.ExactArgs(1),
		Example: "https://mcp.example.com/mcp\nhttps://mcp.example.com/mcp --yes",
	}, func(c *cobra.Command) {
		sure.add(c)
		c.Flags().BoolVar(&asJSON, "json", false, "print the removed MCP server as JSON")
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		r, err := admin.ResourceShow.Do(c.Context(), by, admin.ResourceURL{URI: args[0]})
		if err == nil {
			var ends string
			if ends, err = grantsAt(c.Context(), by, append(r.Aliases, r.URI)); err != nil {
				return err
			}
			what := fmt.Sprintf("This removes the MCP server %s%s, with %s.", r.URI, withAliases(r.Resource), ends)
			err = sure.ask(s, what)
		}
		if err != nil && !errors.Is(err, admin.ErrNotFound) { // the operation reports a missing resource
			return err
		}
		removed, err := admin.ResourceRemove.Do(c.Context(), by, admin.ResourceURL{URI: args[0]})
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(s.out, removed)
		}
		_, err = fmt.Fprintf(s.out, "removed %s; ended: %s\n", removed.URI, ofPeople(removed.Ended))
		return err
	})
}

// originOf names the source of a resource, and the resource that overrides it.
func originOf(r admin.Resource) string {
	if r.OverriddenBy == "" {
		return r.From
	}
	return r.From + ", overridden by: " + r.OverriddenBy
}

// toolsOf describes the tools of a resource that need more than its first scope.
func toolsOf(r admin.Resource) string {
	var all []string
	for _, t := range r.Tools {
		need := strings.Join(t.Scopes, " ")
		if t.Denied {
			need = "denied"
		}
		if t.Direct {
			need += ", not for a sub-agent"
		}
		if t.Clearance != nil {
			need += ", and " + t.Clearance.String()
		}
		all = append(all, t.Name+": "+need)
	}
	return strings.Join(all, "; ")
}

// rememberServed stores the resource from the command line of protect in the database, because no
// file contains it.
func (a *app) rememberServed(ctx context.Context) error {
	return (&admin.Service{Store: a.Store, Config: a.Config}).RememberServed(ctx, "protect")
}
