package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

func newUserSetMail(s std) *cobra.Command {
	var out answering
	return callerCommand(s, admin.UserSetMail, &cobra.Command{
		Use: "NAME [ADDRESS]", Example: "alice alice@example.com", Args: cobra.RangeArgs(1, 2),
	}, out.add, func(c *cobra.Command, by admin.Caller, args []string) error {
		in := admin.NewMail{Name: args[0]}
		if len(args) > 1 {
			in.Mail = args[1]
		}
		u, err := admin.UserSetMail.Do(c.Context(), by, in)
		if err != nil {
			return err
		}
		return out.print(s, u, "mail to %s goes to: %s", in.Name, cmp.Or(in.Mail, "nowhere"))
	})
}
