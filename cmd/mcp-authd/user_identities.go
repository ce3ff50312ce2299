package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

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
				t.row(cmp.Or(v.Connector, v.Issuer), cmp.Or(v.Label, v.Tenant), v.Subject, moment(v.CreatedAt),
					moment(v.LastUsedAt), ifText(v.Began, "yes"))
			}
			return t.flush()
		})
}
