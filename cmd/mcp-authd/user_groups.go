package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

func newUserGroups(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.UserGroups, &cobra.Command{
		Use: "NAME", Args: cobra.ExactArgs(1), Example: "ada@company\nada@company --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			found, err := admin.UserGroups.Do(c.Context(), by, admin.UserName{Name: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, found.Items)
			}
			t := newTable(s.out, "PROVIDER", "GROUPS", "ORGANIZATIONS", "TEAMS", "SAID AT", "WITHHELD")
			for _, m := range found.Items {
				var withheld []string
				for _, w := range m.Withheld {
					withheld = append(withheld, w.Resource+": "+strings.Join(w.Scopes, " "))
				}
				t.row(m.Connector, strings.Join(m.Groups, " "), strings.Join(m.Organizations, " "),
					strings.Join(m.Teams, " "), moment(m.SaidAt), strings.Join(withheld, "; "))
			}
			return t.flush()
		})
}
