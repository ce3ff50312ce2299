package main

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/storage"
)

func newUserIdentities(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "identities NAME", Short: "List the accounts at providers that are linked to an account",
		Args: cobra.ExactArgs(1),
		Long: "Lists the accounts at providers by which a person signs in, and then what issuers of trust entries call\n" +
			"the person, for whom they need no sign-in (trust link).",
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
			links, err := a.trustLinksOf(c.Context(), u.ID, "", 10*trustLinksShown)
			if err != nil {
				return err
			}
			return printIdentities(s, all, links, asJSON)
		})
}

// identityView is an account at a provider as commands show it, or at an issuer that is trusted.
type identityView struct {
	Connector  string    `json:"connector"` // "": at an issuer
	Subject    string    `json:"subject"`
	Label      string    `json:"label,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	Began      bool      `json:"began"` // the account here began with it

	Issuer string                `json:"issuer,omitempty"` // and what follows: not of providers
	Tenant string                `json:"tenant,omitempty"`
	Kind   storage.TrustNameKind `json:"kind,omitempty"`
	By     storage.LinkBy        `json:"by,omitempty"`
}

func printIdentities(s std, all []storage.Identity, links []storage.TrustLink, asJSON bool) error {
	views := make([]identityView, 0, len(all)+len(links))
	for _, i := range all {
		views = append(views, identityView{
			Connector: i.Connector, Subject: i.Subject, Label: i.Label, CreatedAt: i.CreatedAt,
			LastUsedAt: i.LastUsedAt, Began: i.Began,
		})
	}
	for _, l := range links {
		views = append(views, identityView{
			Subject: l.Subject, CreatedAt: l.CreatedAt, Began: l.By == storage.LinkedByCreation, Issuer: l.Issuer,
			Tenant: l.Tenant, Kind: l.Kind, By: l.By,
		})
	}
	if asJSON {
		return printJSON(s.out, views)
	}
	t := newTable(s.out, "CONNECTOR OR ISSUER", "ACCOUNT", "SUBJECT", "SINCE", "LAST SIGN-IN", "BEGAN WITH IT")
	for _, v := range views {
		t.row(cmp.Or(v.Connector, v.Issuer), cmp.Or(v.Label, v.Tenant), v.Subject, moment(v.CreatedAt),
			moment(v.LastUsedAt), ifText(v.Began, "yes"))
	}
	return t.flush()
}
