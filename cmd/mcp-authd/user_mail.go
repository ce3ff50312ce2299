package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

func newUserSetMail(s std) *cobra.Command {
	return callerCommand(s, admin.UserSetMail, &cobra.Command{
		Use: "NAME [ADDRESS]", Example: "alice alice@example.com", Args: cobra.RangeArgs(1, 2),
	}, nil, func(c *cobra.Command, by admin.Caller, args []string) error {
		in := admin.NewMail{Name: args[0]}
		if len(args) > 1 {
			in.Mail = args[1]
		}
		if _, err := admin.UserSetMail.Do(c.Context(), by, in); err != nil {
			return err
		}
		_, err := fmt.Fprintf(s.out, "mail to %s goes to: %s\n", in.Name, cmp.Or(in.Mail, "nowhere"))
		return err
	})
}
