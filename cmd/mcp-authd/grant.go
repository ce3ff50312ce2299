package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newGrantCommand(s std) *cobra.Command {
	return group("grant", "Show and revoke grants of users to applications", newGrantList(s),
		completing(s, (*app).grantIDs, newGrantShow(s)), completing(s, (*app).grantIDs, newGrantRevoke(s)),
		completing(s, (*app).grantIDs, newGrantNarrow(s)), completing(s, (*app).grantIDs, newGrantPause(s)),
		completing(s, (*app).grantIDs, newGrantResume(s)), newGrantPauses(s), newGrantFinish(s), newGrantCount(s))
}

// selection selects grants by names or IDs.
type selection struct{ user, client, resource string }

func (f *selection) add(s std, c *cobra.Command) {
	c.Flags().StringVar(&f.user, "user", "", "only of this user (name or id)")
	c.Flags().StringVar(&f.client, "client", "", "only to this client (name or id)")
	c.Flags().StringVar(&f.resource, "resource", "", "only for this MCP server (URL)")
	for flag, list := range map[string]lister{
		"user": (*app).userNames, "client": (*app).clientIDs, "resource": (*app).resourceURIs,
	} {
		_ = c.RegisterFlagCompletionFunc(flag, flagCompletion(s, list)) // the flag exists
	}
}

// which returns the selection as input of an operation.
func (f selection) which() admin.Which {
	return admin.Which{User: f.user, Client: f.client, Resource: f.resource}
}

func newGrantList(s std) *cobra.Command {
	var which selection
	var asJSON, tree bool
	return callerCommand(s, admin.GrantList, &cobra.Command{
		Args: cobra.NoArgs, Example: "--user alice\n--client Claude --json\n--tree",
	}, func(c *cobra.Command) {
		which.add(s, c)
		c.Flags().BoolVar(&tree, "tree", false, "include helpers (sub-agents) that got reduced tokens from clients")
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, by admin.Caller, _ []string) error {
		views, err := admin.Everything(func(p admin.Paging) (admin.Page[admin.Grant], error) {
			return admin.GrantList.Do(c.Context(), by, admin.GrantsWanted{Paging: p, Which: which.which(), Tree: tree})
		})
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(s.out, views)
		case tree:
			return printTree(s, views)
		}
		return printGrants(s, views)
	})
}

func newGrantCount(s std) *cobra.Command {
	var which selection
	var asJSON bool
	return callerCommand(s, admin.GrantCounted, &cobra.Command{Args: cobra.NoArgs, Example: "--client Claude"},
		func(c *cobra.Command) {
			which.add(s, c)
			c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
		}, func(c *cobra.Command, by admin.Caller, _ []string) error {
			n, err := admin.GrantCounted.Do(c.Context(), by, which.which())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, n)
			}
			_, err = fmt.Fprintf(s.out, "%s, to %s\n", ofPeople(n.GrantCount),
				label.Count(n.Applications, "application", "applications"))
			return err
		})
}

func newGrantShow(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.GrantShow, &cobra.Command{
		Use: "ID", Args: cobra.ExactArgs(1), Example: "grt_... --json",
	},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			v, err := admin.GrantShow.Do(c.Context(), by, admin.GrantID{ID: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, v)
			}
			printFields(s.out, "id", v.ID, "user", userText(v), "client", clientText(v), "client id", v.Client,
				"resource", v.Resource, "scope", v.Scope, "rests on", restsOn(v), "since", label.Moment(v.CreatedAt),
				"until", label.Moment(v.ExpiresAt))
			if len(v.Helpers) == 0 {
				return nil
			}
			fmt.Fprintln(s.out)
			return printTree(s, []admin.Grant{v})
		})
}

func newGrantRevoke(s std) *cobra.Command {
	var many manyGrants
	var log pastLog
	var asJSON bool
	c := callerCommand(s, admin.GrantRevoke, &cobra.Command{
		Short: "Revoke a grant, or all grants of a user, a client, an MCP server or a provider",
		Long: "A helper (nod_..., see grant list --tree) is revoked with the helpers below it. With flags, the\n" +
			"command revokes all grants that match every flag: it shows the number, asks for confirmation, and\n" +
			"then marks them as revoked. If you interrupt it, access has ended all the same, and a running\n" +
			"server, or grant finish, completes the rest. With --from-log it repeats every revocation that is in\n" +
			"a server's JSON log and missing in the database, for example after a failover or a restored backup:\n" +
			"grants, users, clients, MCP servers, sessions at providers.",
		Use: "ID | HELPER | --user NAME | --client NAME | --resource URL | --provider ID | --all | --from-log FILE",
		Example: "grt_...\n--user alice --client Claude\n--all --yes\n" +
			"--from-log server.log --since 30m",
		Args: cobra.MaximumNArgs(1),
	}, func(c *cobra.Command) {
		many.add(s, c)
		log.add(c)
		c.Flags().BoolVar(&asJSON, "json", false, "print the revoked grants as JSON; for more than a thousand, the scope of the revocation")
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		switch {
		case log.file != "":
			local, ok := by.(*here)
			if !ok {
				return errors.New("--from-log compares a log with the database, so it needs the database")
			}
			return log.repeat(c.Context(), s, local.app, &many.sure, asJSON)
		case len(args) == 0:
			return many.end(c.Context(), s, by, asJSON)
		case isHelper(args[0]):
			return revokeHelper(c.Context(), s, by, args[0], asJSON)
		}
		g, err := admin.GrantRevoke.Do(c.Context(), by, admin.GrantID{ID: args[0]})
		if err != nil {
			return err
		}
		return printRevoked(s, []admin.Grant{g}, asJSON)
	})
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if err := log.check(many.check(len(args)), len(args) == 0 && many.none()); err != nil {
			return usageError{err, c.CommandPath()}
		}
		return nil
	}
	return c
}

func printRevoked(s std, all []admin.Grant, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, all)
	}
	var out strings.Builder
	for _, v := range all {
		fmt.Fprintf(&out, "revoked %s (%s, %s)\n", v.ID, label.Printable(holder(v)), v.Resource)
	}
	_, err := io.WriteString(s.out, out.String())
	return err
}

// clientText returns the name of the client, marked if it is an API key.
func clientText(v admin.Grant) string {
	if v.ProgramKey {
		return v.ClientName + " (key for a program)"
	}
	return v.ClientName
}

// userText returns the user. The grant of a workload has none.
func userText(v admin.Grant) string {
	if v.User == "" {
		return ""
	}
	return v.UserName + " (" + v.User + ")"
}

// holder returns the user and the client of a grant. A workload has no user.
func holder(v admin.Grant) string {
	if v.User == "" {
		return clientText(v)
	}
	return v.UserName + ", " + clientText(v)
}

// restsOn returns the connector or trusted issuer that the grant depends on.
func restsOn(v admin.Grant) string {
	if v.Trust != "" {
		return "given by " + v.Trust
	}
	return v.Connector
}

func printGrants(s std, all []admin.Grant) error {
	t := newTable(s.out, "ID", "USER", "CLIENT", "RESOURCE", "SCOPE", "RESTS ON", "SINCE")
	for _, v := range all {
		t.row(v.ID, v.UserName, clientText(v), v.Resource, v.Scope, restsOn(v), label.Moment(v.CreatedAt))
	}
	return t.flush()
}

// printTree prints grants with their sub-agents below them.
func printTree(s std, views []admin.Grant) error {
	var out strings.Builder
	for _, v := range views {
		of := holder(v)
		fmt.Fprintf(&out, "%s  %s, %s: %s\n", v.ID, label.Printable(of), label.Printable(v.Resource),
			label.Printable(v.Scope))
		for _, h := range v.Helpers {
			fmt.Fprintf(&out, "%s%s  %s: %s, until %s\n", strings.Repeat("    ", h.Depth), h.ID,
				label.Printable(h.Name), label.Printable(h.Scope), label.Moment(h.ExpiresAt))
		}
	}
	_, err := io.WriteString(s.out, out.String())
	return err
}

// isHelper reports whether an ID belongs to a sub-agent.
func isHelper(id string) bool { return strings.HasPrefix(id, "nod_") }

// revokeHelper revokes a sub-agent, with those below it.
func revokeHelper(ctx context.Context, s std, by admin.Caller, id string, asJSON bool) error {
	n, err := admin.HelperRevoke.Do(ctx, by, admin.HelperID{ID: id})
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(s.out, []admin.Helper{n})
	}
	_, err = fmt.Fprintf(s.out, "revoked %s (%s, of %s), with the helpers below it\n", n.ID, label.Printable(n.Name), n.Grant)
	return err
}

// manyGrants holds the flags that select many grants to revoke.
type manyGrants struct {
	selection
	provider string
	all      bool
	sure     confirmation
}

func (m *manyGrants) add(s std, c *cobra.Command) {
	m.selection.add(s, c)
	c.Flags().StringVar(&m.provider, "provider", "",
		"all grants from sign-ins at this provider (connector id), and the sign-ins")
	c.Flags().BoolVar(&m.all, "all", false, "every grant")
	m.sure.add(c)
}

// none reports whether no selection is given.
func (m *manyGrants) none() bool { return m.selection == selection{} && m.provider == "" && !m.all }

// check returns an error unless one grant, or one selection of many, is given.
func (m *manyGrants) check(ids int) error {
	kinds := ids
	for _, named := range []bool{m.selection != selection{}, m.provider != "", m.all} {
		if named {
			kinds++
		}
	}
	if kinds != 1 {
		return errors.New(
			"name one grant by its id, or several with --user, --client or --resource, with --provider, or with --all",
		)
	}
	return nil
}

// end revokes the grants, and prints the result.
func (m *manyGrants) end(ctx context.Context, s std, by admin.Caller, asJSON bool) error {
	which := admin.GrantsToEnd{Which: m.which(), Provider: m.provider, All: m.all}
	consequence := fmt.Sprintf("This ends every grant and every sign-in that rests on the provider %s.", m.provider)
	if m.provider == "" {
		found, err := admin.GrantCounted.Do(ctx, by, which.Which)
		if err != nil {
			return err
		}
		consequence = "This ends " + ofPeople(found.GrantCount) + "."
		if found.Pauses > 0 {
			consequence += " It also ends " + label.Count(found.Pauses, "pause", "pauses") + "."
		}
		if found.Grants == 0 && !found.More && found.Pauses == 0 {
			return errors.New("there is no live grant of that kind; see: mcp-authd grant list")
		}
	}
	if err := m.sure.ask(s, consequence); err != nil {
		return err
	}
	ended, err := admin.GrantRevokeMany.Do(ctx, by, which)
	switch {
	case err != nil:
		return err
	case ended.Cut != nil && asJSON:
		return printJSON(s.out, ended.Cut)
	case ended.Cut != nil:
		_, err = fmt.Fprintf(s.out, "revoked: %s\n", ofPeople(ended.GrantCount))
		return err
	}
	if err := printRevoked(s, ended.Items, asJSON); err != nil || asJSON || ended.Pauses == 0 {
		return err
	}
	_, err = fmt.Fprintf(s.out, "ended: %s\n", label.Count(ended.Pauses, "pause", "pauses"))
	return err
}
