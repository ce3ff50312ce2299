package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newResourceCommand(s std) *cobra.Command {
	return group("resource", "Manage the MCP servers that tokens are issued for", newResourceAdd(s), newResourceList(s), newResourceRemove(s))
}

func newResourceAdd(s std) *cobra.Command {
	var name string
	var scopes []string
	return storeCommand(s, &cobra.Command{
		Use: "add URL", Short: "Add or change an MCP server", Args: cobra.ExactArgs(1),
		Long:    "Adds an MCP server by its public URL. A running server sees it within seconds. The first scope\nis granted by default.",
		Example: "  mcp-authd resource add https://mcp.example.com/mcp --name Notes --scope mcp=\"read your notes\" --scope notes:write=\"add notes\"",
	}, func(c *cobra.Command) {
		c.Flags().StringVar(&name, "name", "", "name that people are shown (default: the URL)")
		c.Flags().StringArrayVar(&scopes, "scope", []string{"mcp=use this server"}, "scope and, after '=', what it allows; repeat for more")
	}, func(c *cobra.Command, a *app, args []string) error {
		r, err := newResource(args[0], name, scopes)
		if err != nil {
			return err
		}
		if err := a.store.PutResource(c.Context(), r); err != nil {
			return err
		}
		a.audit.Record(c.Context(), audit.ResourceChanged, slog.String("resource", r.URI), slog.String("what", "added"))
		_, err = fmt.Fprintf(s.out, "added %s\n", r.URI)
		return err
	})
}

func newResource(raw, name string, scopes []string) (storage.Resource, error) {
	uri, err := oauth.CanonicalResource(raw)
	if err != nil {
		return storage.Resource{}, fmt.Errorf("%q: %w", raw, err)
	}
	r := storage.Resource{URI: uri, Name: name, CreatedAt: time.Now()}
	if name == "" {
		r.Name = uri
	}
	for i, s := range scopes {
		scope, text, _ := strings.Cut(s, "=")
		if !oauth.ValidScope(scope) || scope == oauth.OfflineAccess {
			return r, fmt.Errorf("%q is not a scope of a resource (no spaces, quotes or backslashes; offline_access is the server's own)", scope)
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
	return storeCommand(s, &cobra.Command{Use: "list", Short: "List MCP servers", Args: cobra.NoArgs, Example: "  mcp-authd resource list --json"},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, _ []string) error {
			stored, err := a.store.ListResources(c.Context())
			if err != nil {
				return err
			}
			all := append(a.config.StorageResources(), stored...)
			if asJSON {
				if all == nil {
					all = []storage.Resource{}
				}
				return printJSON(s.out, all)
			}
			t := newTable(s.out, "URL", "NAME", "SCOPES", "FROM")
			for _, r := range all {
				from, names := "store", []string{}
				if r.Config {
					from = "configuration"
				}
				for _, sc := range r.Scopes {
					names = append(names, sc.Name)
				}
				t.row(r.URI, r.Name, strings.Join(names, " "), from)
			}
			return t.flush()
		})
}

func newResourceRemove(s std) *cobra.Command {
	return storeCommand(s, &cobra.Command{
		Use: "remove URL", Short: "Remove an MCP server and revoke every grant for it", Args: cobra.ExactArgs(1),
		Example: "  mcp-authd resource remove https://mcp.example.com/mcp",
	}, nil, func(c *cobra.Command, a *app, args []string) error {
		uri, err := oauth.CanonicalResource(args[0])
		if err != nil {
			return fmt.Errorf("%q: %w", args[0], err)
		}
		err = a.store.RemoveResource(c.Context(), uri, time.Now())
		if errors.Is(err, storage.ErrNotFound) {
			return fmt.Errorf("there is no stored resource %s; see: mcp-authd resource list", uri)
		}
		if err != nil {
			return err
		}
		a.audit.Record(c.Context(), audit.ResourceChanged, slog.String("resource", uri), slog.String("what", "removed"))
		_, err = fmt.Fprintf(s.out, "removed %s\n", uri)
		return err
	})
}
