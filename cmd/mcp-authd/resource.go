package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newResourceCommand(s std) *cobra.Command {
	return group("resource", "Manage the MCP servers that tokens are issued for", newResourceAdd(s), newResourceList(s),
		completing(s, (*app).resourceURIs, newResourceSet(s)), completing(s, (*app).resourceURIs, newResourceRemove(s)))
}

// resourceFlags describe an MCP server.
type resourceFlags struct {
	name    string
	aliases []string
	scopes  []string
	marks   scopeMarks
	dpop    string
	json    bool
}

// scopeMarks say what people must know of scopes.
type scopeMarks struct {
	access              map[string]string
	required, dangerous []string
	acr, maxAge         map[string]string
}

func (m *scopeMarks) given() bool {
	return len(m.access)+len(m.required)+len(m.dangerous)+len(m.acr)+len(m.maxAge) > 0
}

// differ reports whether the scopes of a resource are not marked like that.
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
	for _, name := range m.required {
		if err := markScope(r, name, func(s *storage.ScopeText) { s.Required = true }); err != nil {
			return err
		}
	}
	for _, name := range m.dangerous {
		if err := markScope(r, name, func(s *storage.ScopeText) { s.Dangerous = true }); err != nil {
			return err
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
	c.Flags().StringVar(&f.name, "name", "", "name that people are shown ("+name+")")
	c.Flags().StringArrayVar(&f.aliases, "alias", nil,
		"another URL of it, so that one application can connect as several people; repeat for more"+aliases)
	c.Flags().StringArrayVar(&f.scopes, "scope", standard,
		"scope and, after '=', what it allows; repeat for more"+scopes)
	c.Flags().StringToStringVar(&f.marks.access, "access", nil,
		"SCOPE=read, write or admin; repeat for more. People can grant what is read alone")
	c.Flags().StringArrayVar(&f.marks.required, "required", nil, "scope that people cannot leave out; repeat for more")
	c.Flags().StringArrayVar(&f.marks.dangerous, "dangerous", nil,
		"scope that people get only by picking it; repeat for more")
	c.Flags().StringToStringVar(&f.marks.acr, "acr", nil,
		"SCOPE="+strings.Join(oauth.ACRs(), " or SCOPE=")+": how well people must have proved who they are for it; repeat for more")
	c.Flags().StringToStringVar(&f.marks.maxAge, "max-age", nil,
		"SCOPE=5m: how long ago at most they must have; repeat for more")
	c.Flags().StringVar(&f.dpop, "dpop", "",
		"optional or required: whether its tokens have to be bound to a key of the client (RFC 9449)")
	c.Flags().BoolVar(&f.json, "json", false, "print the resource as JSON")
}

// bind sets whether the tokens of a resource have to be bound to a key, if the flag says so.
func (f *resourceFlags) bind(r *storage.Resource) error {
	switch f.dpop {
	case "":
	case "optional":
		r.DPoP = storage.DPoPOptional
	case "required":
		r.DPoP = storage.DPoPRequired
	default:
		return fmt.Errorf("--dpop: %q is not one of optional, required", f.dpop)
	}
	return nil
}

func newResourceAdd(s std) *cobra.Command {
	var f resourceFlags
	return storeCommand(s, &cobra.Command{
		Use: "add URL", Short: "Add an MCP server", Args: cobra.ExactArgs(1),
		Long: "Adds an MCP server by its public URL. A running server sees it within seconds. The first scope\n" +
			"is granted by default. One that is there already stays as it is: resource set changes it.",
		Example: "  mcp-authd resource add https://mcp.example.com/mcp --name Notes --scope mcp=\"read your notes\" --scope notes:write=\"add notes\"\n" +
			"  mcp-authd resource add https://mcp.example.com/mcp --alias https://mcp.example.com/mcp@work",
	}, func(c *cobra.Command) { f.add(c, "default: the URL", "", "", []string{"mcp=use this server"}) },
		func(c *cobra.Command, a *app, args []string) error {
			r, err := newResource(args[0], f.name, f.scopes)
			if err == nil {
				err = errors.Join(f.marks.put(&r), f.bind(&r))
			}
			if err == nil {
				r.Aliases, err = f.aliasesOf(r.URI)
			}
			if err != nil {
				return err
			}
			f.remark(s, args[0], r)
			there, err := a.resource(c.Context(), r.URI)
			switch {
			case err == nil:
				return f.alreadyThere(s, c, there, r)
			case !errors.Is(err, storage.ErrNotFound):
				return err
			}
			if err := a.free(c.Context(), r.URI, append(r.Aliases, r.URI)); err != nil {
				return err
			}
			err = a.store.AddResource(c.Context(), r)
			if errors.Is(err, storage.ErrExists) {
				return fmt.Errorf("%s was added by another command at this moment; nothing was changed", r.URI)
			}
			if err != nil {
				return err
			}
			a.audit.Record(c.Context(), audit.ResourceChanged, slog.String("resource", r.URI),
				slog.String("what", "added"))
			return f.done(s, "added", r)
		})
}

// remark says what may surprise: another spelling, and tokens that travel in clear.
func (f *resourceFlags) remark(s std, raw string, r storage.Resource) {
	if raw != r.URI {
		fmt.Fprintf(s.err, "mcp-authd: %s is kept as %s\n", printable(raw), r.URI)
	}
	if oauth.InClear(r.URI) {
		fmt.Fprintf(s.err, "mcp-authd: warning: %s is plain http: tokens can be read on the way; use https\n", r.URI)
	}
}

// alreadyThere leaves the resource as it is, which is an error only if something else
// was asked for.
func (f *resourceFlags) alreadyThere(s std, c *cobra.Command, there, wanted storage.Resource) error {
	change := "change it with: mcp-authd resource set " + there.URI
	if there.Config {
		change = "it is in the configuration: change it there"
	}
	if c.Flags().Changed("name") && there.Name != wanted.Name ||
		c.Flags().Changed("scope") && !slices.Equal(scopeNames(there), scopeNames(wanted)) || f.marks.differ(there) ||
		c.Flags().Changed("alias") && !sameAliases(there, wanted) || f.dpop != "" && there.DPoP != wanted.DPoP {
		return fmt.Errorf("%s is there already, with the name %q%s and the scopes %s; nothing was changed; %s",
			there.URI, printable(there.Name), withAliases(there), strings.Join(scopeNames(there), " "), change)
	}
	return f.done(s, "nothing was changed, it is there already:", there)
}

func (f *resourceFlags) done(s std, what string, r storage.Resource) error {
	if f.json {
		return printJSON(s.out, r)
	}
	_, err := fmt.Fprintf(s.out, "%s %s\n", what, r.URI)
	return err
}

// resources returns those of the configuration and of the store.
func (a *app) resources(ctx context.Context) ([]storage.Resource, error) {
	stored, err := a.store.ListResources(ctx)
	return append(a.config.StorageResources(), stored...), err
}

// resource finds a resource by its canonical URI, or returns storage.ErrNotFound. A configured
// one goes before a stored one, as where tokens are issued: policy.NewCatalogue.
func (a *app) resource(ctx context.Context, uri string) (storage.Resource, error) {
	all, err := a.resources(ctx)
	if err != nil {
		return storage.Resource{}, err
	}
	for _, r := range all {
		if canonical, err := oauth.CanonicalResource(r.URI); err == nil && canonical == uri {
			return r, nil
		}
	}
	return storage.Resource{}, storage.ErrNotFound
}

// storedResource finds a resource that commands may change.
func (a *app) storedResource(ctx context.Context, raw string) (storage.Resource, error) {
	uri, err := oauth.CanonicalResource(raw)
	if err != nil {
		return storage.Resource{}, fmt.Errorf("%q: %w", raw, err)
	}
	r, err := a.resource(ctx, uri)
	switch {
	case errors.Is(err, storage.ErrNotFound) && a.aliasOf(ctx, uri) != "":
		return r, fmt.Errorf("%s is an alias of %s: change it there", uri, a.aliasOf(ctx, uri))
	case errors.Is(err, storage.ErrNotFound):
		return r, fmt.Errorf("there is no stored resource %s; see: mcp-authd resource list", uri)
	case r.Config:
		return r, fmt.Errorf("%s is in the configuration (%s): change it there", uri, a.configSource())
	}
	return r, err
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
		if !oauth.ValidScope(scope) || scope == oauth.OfflineAccess {
			return r, fmt.Errorf(
				"%q is not a scope of a resource (no spaces, quotes or backslashes; offline_access is the server's own)",
				scope,
			)
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
	return storeCommand(s, &cobra.Command{
		Use: "list", Short: "List MCP servers, and the scopes that their tools need", Args: cobra.NoArgs,
		Long: "Lists MCP servers with their scopes, and the tools that need more than the first scope where this\n" +
			"server is also the gateway. Of a directory of protect, it shows what protect was last started with.\n" +
			"A stored one that the configuration has as well is overridden: tokens are issued by the configuration.",
		Example: "  mcp-authd resource list --json\n  mcp-authd resource list --data DIR",
	},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, _ []string) error {
			all, err := a.listed(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, all)
			}
			t := newTable(s.out, "URL", "NAME", "SCOPES", "TOOLS THAT NEED MORE", "FROM")
			for _, r := range all {
				t.row(r.URI, r.Name, strings.Join(scopeNames(r.Resource), " "), r.tools(), r.origin())
				for _, alias := range r.Aliases {
					t.row(alias, "", "", "", "alias of "+r.URI)
				}
			}
			return t.flush()
		})
}

func newResourceRemove(s std) *cobra.Command {
	var sure confirmation
	return storeCommand(s, &cobra.Command{
		Use: "remove URL", SuggestFor: []string{"delete", "rm"},
		Short: "Remove an MCP server and revoke every grant for it", Args: cobra.ExactArgs(1),
		Long: "Removes an MCP server with its aliases and ends every grant for it. Says what will end, and asks\n" +
			"on a terminal.",
		Example: "  mcp-authd resource remove https://mcp.example.com/mcp",
	}, sure.add, func(c *cobra.Command, a *app, args []string) error {
		r, err := a.storedResource(c.Context(), args[0])
		if err != nil {
			service, unmade := a.admin()
			if unmade != nil {
				return unmade
			}
			return service.Unfinished(c.Context(), err, func(k storage.Cut) bool { return k.Resource != "" })
		}
		grants, err := a.grantsAt(c.Context(), append(r.Aliases, r.URI))
		if err != nil {
			return err
		}
		ends := ofPeople(grants.Count())
		what := fmt.Sprintf("This removes the MCP server %s%s, with %s.", r.URI, withAliases(r), ends)
		if err := sure.ask(s, what); err != nil {
			return err
		}
		if err := a.store.RemoveResource(c.Context(), r.URI, time.Now()); err != nil {
			return err
		}
		a.audit.Record(c.Context(), audit.ResourceChanged, slog.String("resource", r.URI),
			slog.String("what", "removed"))
		_, err = fmt.Fprintf(s.out, "removed %s; ended: %s\n", r.URI, ends)
		return errors.Join(err, a.followCuts(c.Context()))
	})
}
