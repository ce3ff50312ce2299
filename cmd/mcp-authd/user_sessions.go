package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

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
				t.row(v.ID, v.Browser, v.Network, strings.Join(v.Methods, " "), moment(v.CreatedAt), moment(v.SeenAt),
					moment(v.ExpiresAt))
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
