package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newResourceSet(s std) *cobra.Command {
	var f resourceFlags
	var sure confirmation
	c := storeCommand(s, &cobra.Command{
		Use: "set URL", Short: "Change the name, the aliases or the scopes of an MCP server", Args: cobra.ExactArgs(1),
		Long: "Changes only the given settings. Scopes replace all earlier ones with what was said of\n" +
			"them; the first is granted by default. --access, --required and --dangerous mark the scopes that\n" +
			"there are. Aliases replace all earlier ones. Grants stay, but scopes that are gone are good for\n" +
			"nothing, and an alias that is gone ends every grant for it.",
		Example: "  mcp-authd resource set https://mcp.example.com/mcp --name \"Team notes\"\n" +
			"  mcp-authd resource set https://mcp.example.com/mcp --access notes:read=read --dangerous notes:delete\n" +
			"  mcp-authd resource set https://mcp.example.com/mcp --alias https://mcp.example.com/mcp@work\n" +
			"  mcp-authd resource set https://mcp.example.com/mcp --dpop required",
	}, func(c *cobra.Command) {
		sure.add(c)
		f.add(c, "default: as it is", "; \"\" for none", " (default: as they are)", nil)
	},
		func(c *cobra.Command, a *app, args []string) error {
			r, err := a.storedResource(c.Context(), args[0])
			if err != nil {
				return err
			}
			changed, err := newResource(r.URI, f.name, f.scopes)
			if err != nil {
				return err
			}
			if f.name != "" {
				r.Name = changed.Name
			}
			if len(f.scopes) > 0 {
				r.Scopes = changed.Scopes
			}
			if err := errors.Join(f.marks.put(&r), f.bind(&r)); err != nil {
				return err
			}
			before := r.Aliases
			if c.Flags().Changed("alias") {
				if r.Aliases, err = f.aliasesOf(r.URI); err != nil {
					return err
				}
			}
			if err := a.replaceResource(c.Context(), s, sure, r, before); err != nil {
				return err
			}
			return f.done(s, "changed", r)
		})
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if f.name == "" && len(f.scopes) == 0 && !f.marks.given() && f.dpop == "" && !c.Flags().Changed("alias") {
			return usageError{
				errors.New("say what to change with --name, --alias, --scope, --access, --required, --dangerous or --dpop"),
				c.CommandPath(),
			}
		}
		return nil
	}
	return c
}

// replaceResource stores a resource that had other aliases before, and ends the grants of those that
// it has no more.
func (a *app) replaceResource(
	ctx context.Context, s std, sure confirmation, r storage.Resource, before []string,
) error {
	if err := a.free(ctx, r.URI, r.Aliases); err != nil {
		return err
	}
	gone := slices.DeleteFunc(slices.Clone(before), func(u string) bool { return slices.Contains(r.Aliases, u) })
	grants, err := a.grantsAt(ctx, gone)
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		what := fmt.Sprintf("This removes %s, with %s.", strings.Join(gone, ", "), ofPeople(grants.Count()))
		if err := sure.ask(s, what); err != nil {
			return err
		}
	}
	err = a.store.ReplaceResource(ctx, r, time.Now())
	if errors.Is(err, storage.ErrExists) {
		return errors.New("an alias was taken by another command at this moment; nothing was changed")
	}
	if err != nil {
		return err
	}
	a.audit.Record(ctx, audit.ResourceChanged, slog.String("resource", r.URI), slog.String("what", "changed"))
	if len(gone) == 0 {
		return nil
	}
	for _, alias := range gone {
		a.audit.Record(ctx, audit.ResourceChanged, slog.String("resource", alias), slog.String("what", "removed"))
	}
	return a.followCuts(ctx)
}

// aliasesOf are the aliases that the flags give a resource.
func (f *resourceFlags) aliasesOf(uri string) ([]string, error) {
	given := slices.DeleteFunc(slices.Clone(f.aliases), func(a string) bool { return a == "" })
	return oauth.CanonicalAliases(uri, given)
}

func sameAliases(a, b storage.Resource) bool {
	return slices.Equal(slices.Sorted(slices.Values(a.Aliases)), slices.Sorted(slices.Values(b.Aliases)))
}

// withAliases is what a sentence says about the aliases of a resource, behind its name.
func withAliases(r storage.Resource) string {
	if len(r.Aliases) == 0 {
		return ""
	}
	return ", the aliases " + strings.Join(r.Aliases, " ")
}

// free returns an error when a resource other than the one with the URI of has one of the URLs.
func (a *app) free(ctx context.Context, of string, urls []string) error {
	all, err := a.resources(ctx)
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
				return fmt.Errorf("%s is a resource already; nothing was changed", url)
			case hasAlias(r, url):
				return fmt.Errorf("%s is an alias of %s already; nothing was changed", url, r.URI)
			}
		}
	}
	return nil
}

// aliasOf is the resource that a canonical URL is an alias of, "" when it is none.
func (a *app) aliasOf(ctx context.Context, url string) string {
	all, _ := a.resources(ctx) // the caller has an error to tell about
	for _, r := range all {
		if hasAlias(r, url) {
			return r.URI
		}
	}
	return ""
}

func hasAlias(r storage.Resource, url string) bool {
	return slices.ContainsFunc(r.Aliases, func(alias string) bool { return policy.Canonical(alias) == url })
}

// grantsAt returns live grants for any of the URLs, as far as an operator is shown them.
func (a *app) grantsAt(ctx context.Context, urls []string) (out admin.SomeGrants, err error) {
	for _, url := range urls {
		some, err := a.someGrants(ctx, storage.Selection{Resource: url})
		if err != nil {
			return out, err
		}
		out.List, out.More = append(out.List, some.List...), out.More || some.More
	}
	return out, nil
}
