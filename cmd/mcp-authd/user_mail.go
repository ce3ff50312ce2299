package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

func newUserSetMail(s std) *cobra.Command {
	return storeCommand(s, &cobra.Command{
		Use: "set-mail NAME [ADDRESS]", Short: "Say where a person gets mail; without an address: nowhere",
		Long: "Says where a person gets mail about the account, and links to get back into it. " +
			"Only the operator says so: what a provider claims is not used.",
		Example: "  mcp-authd user set-mail alice alice@example.com", Args: cobra.RangeArgs(1, 2),
	}, nil, onAccounts(func(c *cobra.Command, u *users.Users, args []string) error {
		address := ""
		if len(args) > 1 {
			address = args[1]
		}
		if err := u.SetMail(c.Context(), args[0], address); err != nil {
			return admin.ExplainUser(err, args[0])
		}
		_, err := fmt.Fprintf(s.out, "mail to %s goes to: %s\n", args[0], orNowhere(address))
		return err
	}))
}

func orNowhere(address string) string {
	if address == "" {
		return "nowhere"
	}
	return address
}
