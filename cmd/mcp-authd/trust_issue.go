package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func newTrustIssue(s std) *cobra.Command {
	return group("issue", "Manage the authorization servers that clients can get assertions for",
		newTrustIssueAdd(s), newTrustIssueList(s), newTrustIssueRemove(s))
}

// audienceFlags describe an audience to add.
type audienceFlags struct {
	resources, scopes, clients []string
	mail                       bool
	maxAge                     time.Duration
	json                       bool
}

func (f *audienceFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringArrayVar(&f.resources, "resource", nil, "MCP server there that clients may request; repeat for more")
	fl.StringArrayVar(&f.scopes, "scope", nil, "scope there that clients may request; repeat for more")
	fl.StringArrayVar(&f.clients, "client", nil,
		"client that may get assertions, with =ID if its id at the audience differs; repeat for more")
	fl.BoolVar(&f.mail, "email", false, "include the mail address of the user")
	fl.DurationVar(&f.maxAge, "max-age", 0, "maximum age of the sign-in (default: no limit)")
	fl.BoolVar(&f.json, "json", false, "print the audience as JSON")
}

func newTrustIssueAdd(s std) *cobra.Command {
	var f audienceFlags
	c := callerCommand(s, admin.TrustIssueAdd, &cobra.Command{
		Use: "AUDIENCE", Args: cobra.ExactArgs(1),
		Example: "https://as.partner.example --resource https://mcp.partner.example/mcp --scope read --client desk=desk-at-partner",
	}, f.add, func(c *cobra.Command, by admin.Caller, args []string) error {
		in, err := f.audience(args[0])
		if err != nil {
			return err
		}
		added, err := admin.TrustIssueAdd.Do(c.Context(), by, in)
		if err != nil {
			return err
		}
		if f.json {
			return printJSON(s.out, added)
		}
		_, err = fmt.Fprintf(s.out, "added %s\n", added.Issuer)
		return err
	})
	c.Long += " Add it with:\n\n  mcp-authd client add --scope openid --auth-method client_secret_basic --redirect-uri URL"
	return c
}

// audience returns the audience that the flags describe.
func (f *audienceFlags) audience(issuer string) (admin.NewAudience, error) {
	in := admin.NewAudience{
		Issuer: issuer, Resources: f.resources, Scopes: f.scopes, Mail: f.mail, MaxAge: storage.Age(f.maxAge),
	}
	if len(f.resources) == 0 || len(f.scopes) == 0 || len(f.clients) == 0 {
		return in, errors.New("say what may be asserted to whom: --resource, --scope and --client, each once at least")
	}
	for _, pair := range f.clients {
		id, there, mapped := strings.Cut(pair, "=")
		if !mapped {
			there = id
		}
		if id == "" || there == "" {
			return in, fmt.Errorf("--client %s: it is ID or ID=ID-AT-THE-AUDIENCE", pair)
		}
		in.Clients = append(in.Clients, storage.AudienceClient{ID: id, There: there})
	}
	return in, nil
}

func newTrustIssueList(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.TrustIssueList, &cobra.Command{Args: cobra.NoArgs, Example: "--json"},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			all, err := admin.TrustIssueList.Do(c.Context(), by, admin.None{})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, all.Items)
			}
			t := newTable(s.out, "AUDIENCE", "RESOURCES", "SCOPES", "CLIENTS")
			for _, v := range all.Items {
				var clients []string
				for _, c := range v.Clients {
					clients = append(clients, c.ID)
				}
				slices.Sort(clients)
				t.row(v.Issuer, strings.Join(v.Resources, " "), strings.Join(v.Scopes, " "), strings.Join(clients, " "))
			}
			return t.flush()
		})
}

func newTrustIssueRemove(s std) *cobra.Command {
	var sure confirmation
	var out answering
	return callerCommand(s, admin.TrustIssueRemove, &cobra.Command{
		Use: "AUDIENCE", SuggestFor: []string{"delete", "rm"}, Args: cobra.ExactArgs(1),
		Example: "https://as.partner.example",
	}, flags(sure.add, out.add), func(c *cobra.Command, by admin.Caller, args []string) error {
		if err := sure.ask(s, "This ends assertions of who people are to "+args[0]+"."); err != nil {
			return err
		}
		removed, err := admin.TrustIssueRemove.Do(c.Context(), by, admin.AudienceIssuer{Issuer: args[0]})
		if err != nil {
			return err
		}
		return out.print(s, removed, "removed %s", args[0])
	})
}
