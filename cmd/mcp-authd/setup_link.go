package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/users"
)

func newSetupLinkCommand(s std) *cobra.Command {
	var where settings
	var out answering
	c := &cobra.Command{
		Use:     "setup-link",
		Short:   "Print a new one-time link to create the first administrator",
		Example: "  mcp-authd setup-link",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := where.open(c.Context(), s)
			if err != nil {
				return err
			}
			defer a.Close()
			if !a.Config.Login.Local {
				return errors.New(
					"login.local is false: people do not sign in with passwords, so there is no account to set up",
				)
			}
			link, err := a.SetupLink(c.Context())
			if errors.Is(err, users.ErrExists) {
				return errors.New("there is an administrator already; add accounts with: mcp-authd user add NAME")
			}
			if err != nil {
				return err
			}
			return out.print(s, map[string]string{"url": link}, "%s", link)
		},
	}
	where.add(c)
	out.add(c)
	return c
}
