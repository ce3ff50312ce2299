package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

func newUserWays(s std) *cobra.Command {
	var asJSON bool
	list := callerCommand(s, admin.UserWays, &cobra.Command{
		Use: "NAME", Args: cobra.ExactArgs(1), Example: "alice --json\nremove alice way_...",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			found, err := admin.UserWays.Do(c.Context(), by, admin.UserName{Name: args[0]})
			if err != nil {
				return err
			}
			return printWays(s, found.Items, asJSON)
		})
	list.AddCommand(newUserWaysRemove(s))
	return list
}

func printWays(s std, all []admin.Way, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, all)
	}
	t := newTable(s.out, "WAY", "KIND", "NAME", "STATE", "SINCE", "LAST USED")
	for _, w := range all {
		t.row(w.ID, w.Kind, w.Name, stateOfWay(w), sinceOf(w, w.CreatedAt), sinceOf(w, w.LastUsedAt))
	}
	return t.flush()
}

// sinceOf returns "" for the password and recovery codes, which have no times.
func sinceOf(w admin.Way, at time.Time) string {
	if w.CreatedAt.IsZero() {
		return ""
	}
	return label.Moment(at)
}

// stateOfWay describes the state of an authentication method.
func stateOfWay(w admin.Way) string {
	switch {
	case w.Kind == "recovery":
		return fmt.Sprint(w.Left, " left")
	case !w.Works && w.RPID != "":
		return "for " + w.RPID + ", not served"
	case !w.Works:
		return "not offered"
	case w.RPID != "":
		return "for " + w.RPID
	}
	return ""
}

func newUserWaysRemove(s std) *cobra.Command {
	var in admin.UserWay
	var sure confirmation
	var out answering
	return callerCommand(s, admin.UserWaysRemove, &cobra.Command{
		Use: "NAME WAY", Args: cobra.ExactArgs(2), Example: "alice way_...",
	}, func(c *cobra.Command) {
		sure.add(c)
		out.add(c)
		c.Flags().BoolVar(&in.Force, "force", false, "even if the user then has no authentication method")
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		in.Name, in.Way = args[0], args[1]
		if err := sure.ask(s, "This removes "+in.Way+" of "+in.Name+"."); err != nil {
			return err
		}
		removed, err := admin.UserWaysRemove.Do(c.Context(), by, in)
		if err != nil {
			return err
		}
		return out.print(s, removed, "removed the %s %q of %s", removed.Kind, removed.Name, in.Name)
	})
}

// resealApps encrypts the secrets of authenticator apps again with the current master key.
func (a *app) resealApps(ctx context.Context) (int, error) {
	ring, err := secrets.NewRing(a.Keys...)
	if err != nil {
		return 0, err
	}
	return ways.Reseal(ctx, a.Store, ring)
}

func newUserSessions(s std) *cobra.Command {
	var asJSON bool
	list := callerCommand(s, admin.UserSessions, &cobra.Command{
		Use: "NAME", Args: cobra.ExactArgs(1), Example: "alice --json\nend alice ses_...",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			found, err := admin.UserSessions.Do(c.Context(), by, admin.UserName{Name: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, found.Items)
			}
			t := newTable(s.out, "SESSION", "BROWSER", "FROM", "PROVED BY", "SINCE", "LAST USED", "UNTIL")
			for _, v := range found.Items {
				t.row(v.ID, v.Browser, v.Network, strings.Join(v.Methods, " "), label.Moment(v.CreatedAt),
					label.Moment(v.SeenAt), label.Moment(v.ExpiresAt))
			}
			return t.flush()
		})
	list.AddCommand(newUserSessionsEnd(s))
	return list
}

func newUserSessionsEnd(s std) *cobra.Command {
	var out answering
	return callerCommand(s, admin.UserSessionsEnd, &cobra.Command{
		Use: "NAME SESSION", Args: cobra.ExactArgs(2), Example: "alice ses_...",
	}, out.add, func(c *cobra.Command, by admin.Caller, args []string) error {
		in := admin.UserSession{Name: args[0], Session: args[1]}
		ended, err := admin.UserSessionsEnd.Do(c.Context(), by, in)
		if err != nil {
			return err
		}
		return out.print(s, ended, "ended %s of %s", in.Session, in.Name)
	})
}

func newUserIdentities(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.UserIdentities, &cobra.Command{
		Use: "NAME", Args: cobra.ExactArgs(1), Example: "ada@github --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			found, err := admin.UserIdentities.Do(c.Context(), by, admin.UserName{Name: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, found.Items)
			}
			t := newTable(s.out, "CONNECTOR OR ISSUER", "ACCOUNT", "SUBJECT", "SINCE", "LAST SIGN-IN", "BEGAN WITH IT")
			for _, v := range found.Items {
				t.row(cmp.Or(v.Connector, v.Issuer), cmp.Or(v.Label, v.Tenant), v.Subject, label.Moment(v.CreatedAt),
					label.Moment(v.LastUsedAt), ifText(v.Began, "yes"))
			}
			return t.flush()
		})
}
