package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newClientRotateSecret(s std) *cobra.Command {
	var sure confirmation
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "rotate-secret ID", Short: "Give a client a new secret and print it, once", Args: cobra.ExactArgs(1),
		Long:    "Replaces the secret of a client that the operator has added. The earlier one ends within seconds, its\ngrants go on. Asks on a terminal.",
		Example: "  mcp-authd client rotate-secret Robot --yes",
	}, func(c *cobra.Command) {
		sure.add(c)
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, a *app, args []string) error {
		client, err := a.client(c.Context(), args[0])
		switch {
		case err != nil:
			return err
		case client.Source == storage.SourceConfig:
			return fmt.Errorf("the client %q is in the configuration: change its secret there", client.ID)
		case client.Source == storage.SourcePerson:
			return fmt.Errorf("the client %q is a key that a person made for a program: its person makes another one on the "+
				"account page, and you end this one with: mcp-authd client delete %s", client.ID, client.ID)
		case client.Source != storage.SourceStatic || !client.HasSecret():
			return fmt.Errorf("the client %q has no secret of the operator's (it is %s, with the method %s)",
				client.ID, client.Source, client.AuthMethod)
		}
		if err := sure.ask(s, fmt.Sprintf("This ends the present secret of the client %s.", client.ID)); err != nil {
			return err
		}
		secret, err := a.newSecret(c.Context(), client)
		if err != nil {
			return err
		}
		return printClientSecret(s, client, secret, asJSON)
	})
}

func (a *app) newSecret(ctx context.Context, client storage.Client) (string, error) {
	secret := secrets.Token("")
	hash := storage.Hash(secrets.Hash(secret))
	client.SecretHash = &hash
	err := a.store.ReplaceClient(ctx, client, time.Now())
	if errors.Is(err, storage.ErrRevoked) {
		return "", fmt.Errorf("the client %q was deleted", client.ID)
	}
	if err != nil {
		return "", err
	}
	a.audit.Record(ctx, audit.ClientChanged, audit.Client(client), slog.String("what", "secret"))
	return secret, nil
}

func newClientDelete(s std) *cobra.Command {
	var sure confirmation
	return storeCommand(s, &cobra.Command{
		Use: "delete ID", SuggestFor: []string{"remove", "rm"},
		Short: "Delete a client and revoke everything it was granted",
		Long: "Deletes a client, by id or name, revokes its grants, and keeps its id from being used again, also when the\n" +
			"client registered itself and was never stored. Says what will end, and asks on a terminal. If it is interrupted\n" +
			"afterwards, access has ended, and a running server goes on to the status lists, or grant finish.",
		Example: "  mcp-authd client delete mcp_...\n  mcp-authd client delete Claude --yes", Args: cobra.ExactArgs(1),
	}, sure.add, func(c *cobra.Command, a *app, args []string) error {
		client, err := a.namedClient(c.Context(), args[0])
		if err != nil {
			return a.unfinished(c.Context(), err, func(k storage.Cut) bool { return k.ClientID != "" })
		}
		grants, err := a.someGrants(c.Context(), storage.Selection{ClientID: client.ID})
		if err != nil {
			return err
		}
		ends, name := grants.ofPeople(), client.Name
		if name == "" {
			name = client.ID
		}
		if err := sure.ask(s, fmt.Sprintf("This ends the client %s for good, with %s.", name, ends)); err != nil {
			return err
		}
		if err := a.store.DeleteClient(c.Context(), client.ID, time.Now()); err != nil {
			return err
		}
		a.audit.Record(c.Context(), audit.ClientDeleted, audit.Client(client))
		_, err = fmt.Fprintf(s.out, "deleted %s; ended: %s\n", client.ID, ends)
		return errors.Join(err, a.followCuts(c.Context()))
	})
}
