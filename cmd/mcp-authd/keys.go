package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/keys"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newKeysCommand(s std) *cobra.Command {
	return group("keys", "Manage the signing keys", newKeysList(s), newKeysRotate(s), newKeysRevoke(s))
}

// keyManager manages the signing keys, for commands that do not run the server.
func (a *app) keyManager(ctx context.Context) (*keys.Manager, error) {
	return keys.New(ctx, keys.Config{
		Store: a.store, SecretKeys: a.keys, Algorithm: a.config.Tokens.Algorithm,
		PublishAhead: a.config.Keys.Policy().PublishAhead,
		AccessTTL:    time.Duration(a.config.Tokens.AccessTTL), Audit: a.audit, Logger: a.log,
	})
}

// keysCommand is a command that changes the signing keys.
func keysCommand(
	s std, c *cobra.Command, flags func(*cobra.Command), run func(*cobra.Command, *app, *keys.Manager, []string) error,
) *cobra.Command {
	return storeCommand(s, c, flags, func(c *cobra.Command, a *app, args []string) error {
		if err := a.claim(c.Context(), a.store); err != nil { // a first key is sealed under ours
			return err
		}
		m, err := a.keyManager(c.Context())
		if err != nil {
			return err
		}
		return run(c, a, m, args)
	})
}

func newKeysList(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "list", Short: "List the signing keys that are published", Args: cobra.NoArgs,
		Example: "  mcp-authd keys list --json",
		Long: "Lists the signing keys that are published: a next key signs nothing yet, the active one signs,\n" +
			"a retired one is there for the tokens that it signed.",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, _ []string) error {
			all, err := a.store.Keys(c.Context(), time.Now()) // a manager would make a first one
			if err != nil {
				return err
			}
			return printKeys(s, all, time.Duration(a.config.Keys.PublishAhead), asJSON)
		})
}

func newKeysRotate(s std) *cobra.Command {
	var now, revoke, asJSON bool
	var sure confirmation
	c := keysCommand(s, &cobra.Command{
		Use: "rotate", Short: "Replace the signing key", Args: cobra.NoArgs,
		Example: "  mcp-authd keys rotate\n  mcp-authd keys rotate --now --revoke",
		Long: "Publishes the next signing key, with which a running server begins to sign when resource servers\n" +
			"have had time to fetch it (keys.publish_ahead). The present one then stays published until every\n" +
			"token that it signed has expired.\n\n" +
			"With --now the new key signs as soon as every replica knows it, in ten seconds. With --now --revoke,\n" +
			"for a key in the wrong hands, every other key is taken out as well and the new one signs at once:\n" +
			"all access tokens end, and clients refresh theirs.",
	}, func(c *cobra.Command) {
		sure.add(c)
		c.Flags().BoolVar(&asJSON, "json", false, "print the keys that are published then as JSON")
		c.Flags().BoolVar(&now, "now", false, "sign with the new key in ten seconds")
		c.Flags().BoolVar(&revoke, "revoke", false, "with --now: take out all other keys")
	}, func(c *cobra.Command, a *app, m *keys.Manager, _ []string) error {
		said, err := rotate{now, revoke, sure}.run(c.Context(), s, a, m)
		if err != nil {
			return err
		}
		if !asJSON {
			_, err = fmt.Fprintln(s.out, said)
			return err
		}
		all, err := m.List(c.Context())
		if err != nil {
			return err
		}
		return printKeys(s, all, m.PublishAhead(), true)
	})
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if revoke && !now {
			return usageError{
				errors.New("--revoke needs --now: a key that may be known to others must not go on signing"),
				c.CommandPath(),
			}
		}
		return nil
	}
	return c
}

// rotate is how signing keys are to be replaced.
type rotate struct {
	now, revoke bool
	sure        confirmation
}

// run replaces them, and says what was done.
func (r rotate) run(ctx context.Context, s std, a *app, m *keys.Manager) (string, error) {
	switch {
	case r.revoke:
		ends, err := a.tokensEnd(ctx)
		if err != nil {
			return "", err
		}
		if err := r.sure.ask(s, "This takes out every signing key and makes a new one. "+ends); err != nil {
			return "", err
		}
		return "rotated, and revoked all other keys; resource servers follow when they fetch the key set again\n" +
			ends, m.RevokeAll(ctx)
	case r.now:
		return "rotated", m.Rotate(ctx)
	}
	next, err := m.Publish(ctx)
	return fmt.Sprintf("published %s; a running server signs with it from %s on", next.ID,
		moment(next.CreatedAt.Add(m.PublishAhead()))), err
}

// tokensEnd says what revoking signing keys ends.
func (a *app) tokensEnd(ctx context.Context) (string, error) {
	grants, err := a.someGrants(ctx, storage.Selection{})
	return fmt.Sprintf(
		"Access tokens that they signed end (the last would in %s); %s go on: their applications refresh.",
		a.config.Tokens.AccessTTL, ofPeople(grants.Count())), err
}

func newKeysRevoke(s std) *cobra.Command {
	var sure confirmation
	return keysCommand(s, &cobra.Command{
		Use: "revoke KID...", Short: "Revoke signing keys at once", Args: cobra.MinimumNArgs(1),
		Example: "  mcp-authd keys revoke 5Xq1Jm0cZr8",
		Long: "Takes signing keys out of the published set at once, because others may know them. If the active key\n" +
			"is among them, a new one replaces it; for ten seconds, until every replica knows that one, a retired\n" +
			"key that is still published may sign. Access tokens that revoked keys signed end; clients refresh theirs.",
	}, sure.add, func(c *cobra.Command, a *app, m *keys.Manager, args []string) error {
		ends, err := a.tokensEnd(c.Context())
		if err != nil {
			return err
		}
		if err := sure.ask(s, "This takes out "+strings.Join(args, ", ")+". "+ends); err != nil {
			return err
		}
		for _, id := range args {
			err := m.Revoke(c.Context(), id)
			if errors.Is(err, keys.ErrNotFound) {
				return fmt.Errorf("no key %q is published; see: mcp-authd keys list", id)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(s.out, "revoked %s\n", id)
		}
		return nil
	})
}

// keyView is a signing key as commands show it.
type keyView struct {
	ID          string    `json:"kid"`
	Algorithm   string    `json:"alg"`
	State       string    `json:"state"`
	CreatedAt   time.Time `json:"created_at"`
	ActivatesAt time.Time `json:"activates_at,omitzero"` // a next key, at the earliest
	ActivatedAt time.Time `json:"activated_at,omitzero"`
	RetiredAt   time.Time `json:"retired_at,omitzero"`
	ExpiresAt   time.Time `json:"expires_at,omitzero"`
}

// then says what comes next in the life of a key.
func (v keyView) then() string {
	switch {
	case !v.ExpiresAt.IsZero():
		return "gone at " + moment(v.ExpiresAt)
	case !v.ActivatesAt.IsZero():
		return "signs from " + moment(v.ActivatesAt)
	}
	return ""
}

func printKeys(s std, all []storage.SigningKey, ahead time.Duration, asJSON bool) error {
	views := make([]keyView, 0, len(all))
	for _, k := range all {
		v := keyView{
			k.ID, k.Algorithm, string(k.State), k.CreatedAt, time.Time{}, k.ActivatedAt, k.RetiredAt, k.ExpiresAt,
		}
		if k.State == storage.KeyNext {
			v.ActivatesAt = k.CreatedAt.Add(ahead)
		}
		views = append(views, v)
	}
	if asJSON {
		return printJSON(s.out, views)
	}
	t := newTable(s.out, "KID", "ALG", "STATE", "CREATED", "THEN")
	for _, v := range views {
		t.row(v.ID, v.Algorithm, v.State, moment(v.CreatedAt), v.then())
	}
	return t.flush()
}
