package main

import (
	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// roleFlags holds the flags --role and --admin for a new account.
type roleFlags struct{ role admin.Role }

func (f *roleFlags) add(c *cobra.Command) {
	const says = "administration role: administrator, auditor, support or none"
	c.Flags().Func("role", says, func(name string) (err error) {
		f.role, err = admin.ParseRole(name)
		return err
	})
	c.Flags().BoolFunc("admin", "the same as --role administrator", func(string) error {
		f.role = admin.Administrator
		return nil
	})
	c.MarkFlagsMutuallyExclusive("role", "admin")
}

func newUserSetRole(s std) *cobra.Command {
	var out answering
	return callerCommand(s, admin.UserSetRole, &cobra.Command{
		Use: "NAME ROLE", Example: "carol auditor\ncarol none", Args: cobra.ExactArgs(2),
	}, out.add, func(c *cobra.Command, by admin.Caller, args []string) error {
		u, err := admin.UserSetRole.Do(c.Context(), by, admin.UserRole{Name: args[0], Role: args[1]})
		if err != nil {
			return err
		}
		role := string(u.Role)
		if role == "" {
			role = admin.NoRole
		}
		return out.print(s, u, "the role of %s is %s", u.Name, role)
	})
}
