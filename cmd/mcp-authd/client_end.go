package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

func newClientRotateSecret(s std) *cobra.Command {
	var sure confirmation
	var asJSON bool
	return callerCommand(s, admin.ClientRotateSecret, &cobra.Command{
		Use: "ID", Args: cobra.ExactArgs(1), Example: "Robot --yes",
	}, func(c *cobra.Command) {
		sure.add(c)
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		client, err := admin.ClientShow.Do(c.Context(), by, admin.ClientID{ID: args[0]})
		if err != nil {
			return err
		}
		if err := client.HasOwnSecret(); err != nil {
			return err
		}
		if err := sure.ask(s, fmt.Sprintf("This ends the present secret of the client %s.", client.ID)); err != nil {
			return err
		}
		changed, err := admin.ClientRotateSecret.Do(c.Context(), by, admin.ClientID{ID: client.ID})
		if err != nil {
			return err
		}
		return printClientSecret(s, changed, asJSON)
	})
}

func newClientDelete(s std) *cobra.Command {
	var sure confirmation
	var out answering
	return callerCommand(s, admin.ClientDelete, &cobra.Command{
		Use: "ID", SuggestFor: []string{"remove", "rm"}, Args: cobra.ExactArgs(1), Example: "mcp_...\nClaude --yes",
	}, flags(sure.add, out.add), func(c *cobra.Command, by admin.Caller, args []string) error {
		found, err := admin.GrantCounted.Do(c.Context(), by, admin.Which{Client: args[0]})
		if err != nil {
			return err
		}
		if err := sure.ask(s, fmt.Sprintf("This ends the client %s for good, with %s.",
			cmp.Or(found.ClientName, found.Client), ofPeople(found.GrantCount))); err != nil {
			return err
		}
		deleted, err := admin.ClientDelete.Do(c.Context(), by, admin.ClientID{ID: found.Client})
		if err != nil {
			return err
		}
		return out.print(s, deleted, "deleted %s; ended: %s", deleted.ID, ofPeople(deleted.Ended))
	})
}
