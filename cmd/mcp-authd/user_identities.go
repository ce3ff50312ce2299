package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/storage"
)

func newUserIdentities(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "identities NAME", Short: "List the accounts at providers that are linked to an account",
		Args:    cobra.ExactArgs(1),
		Example: "  mcp-authd user identities ada@github --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			u, err := a.person(c.Context(), args[0])
			if err != nil {
				return err
			}
			all, err := a.store.Identities(c.Context(), u.ID)
			if err != nil {
				return err
			}
			return printIdentities(s, all, asJSON)
		})
}

// identityView is an account at a provider as commands show it.
type identityView struct {
	Connector  string    `json:"connector"`
	Subject    string    `json:"subject"`
	Label      string    `json:"label,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	Began      bool      `json:"began"` // the account here began with it
}

func printIdentities(s std, all []storage.Identity, asJSON bool) error {
	views := make([]identityView, 0, len(all))
	for _, i := range all {
		views = append(views, identityView{i.Connector, i.Subject, i.Label, i.CreatedAt, i.LastUsedAt, i.Began})
	}
	if asJSON {
		return printJSON(s.out, views)
	}
	t := newTable(s.out, "CONNECTOR", "ACCOUNT", "SUBJECT", "SINCE", "LAST SIGN-IN", "BEGAN WITH IT")
	for _, v := range views {
		t.row(v.Connector, v.Label, v.Subject, moment(v.CreatedAt), moment(v.LastUsedAt), ifText(v.Began, "yes"))
	}
	return t.flush()
}
