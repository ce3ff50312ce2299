package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newKeysCommand(s std) *cobra.Command {
	return group("keys", "Manage the signing keys", newKeysList(s), newKeysRotate(s), newKeysRevoke(s))
}

func newKeysList(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.KeysList, &cobra.Command{Args: cobra.NoArgs, Example: "--json"},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			all, err := admin.KeysList.Do(c.Context(), by, admin.None{})
			if err != nil {
				return err
			}
			return printKeys(s, all.Items, asJSON)
		})
}

func newKeysRotate(s std) *cobra.Command {
	var how admin.KeyRotation
	var asJSON bool
	var sure confirmation
	c := callerCommand(s, admin.KeysRotate, &cobra.Command{Args: cobra.NoArgs, Example: "\n--now --revoke"},
		func(c *cobra.Command) {
			sure.add(c)
			c.Flags().BoolVar(&asJSON, "json", false, "print the published keys as JSON afterwards")
			c.Flags().BoolVar(&how.Now, "now", false, "sign with the new key in fifteen seconds")
			c.Flags().BoolVar(&how.Revoke, "revoke", false, "with --now: revoke all other keys")
		}, func(c *cobra.Command, by admin.Caller, _ []string) error {
			said := "rotated"
			if how.Revoke {
				ends, err := tokensEnd(c.Context(), by)
				if err == nil {
					err = sure.ask(s, "This takes out every signing key and makes a new one. "+ends)
				}
				if err != nil {
					return err
				}
				said = "rotated, and revoked all other keys; resource servers follow when they fetch the key set again\n" + ends
			}
			all, err := admin.KeysRotate.Do(c.Context(), by, how)
			if err != nil {
				return err
			}
			if asJSON {
				return printKeys(s, all.Items, true)
			}
			for _, k := range all.Items {
				if k.ID == all.Published {
					said = fmt.Sprintf("published %s; a running server signs with it from %s on", k.ID, label.Moment(k.ActivatesAt))
				}
			}
			_, err = fmt.Fprintln(s.out, said)
			return err
		})
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if how.Revoke && !how.Now {
			return usageError{
				errors.New("--revoke needs --now: a key that may be known to others must not go on signing"),
				c.CommandPath(),
			}
		}
		return nil
	}
	return c
}

// tokensEnd describes the effect of revoking signing keys.
func tokensEnd(ctx context.Context, by admin.Caller) (string, error) {
	found, err := admin.GrantCounted.Do(ctx, by, admin.Which{})
	if err != nil {
		return "", err
	}
	published, err := admin.KeysList.Do(ctx, by, admin.None{})
	return fmt.Sprintf(
		"Access tokens that they signed end (the last would in %s); %s go on: their applications refresh.",
		published.AccessTTL, ofPeople(found.GrantCount)), err
}

func newKeysRevoke(s std) *cobra.Command {
	var sure confirmation
	var asJSON bool
	return callerCommand(s, admin.KeysRevoke, &cobra.Command{
		Use: "KID...", Args: cobra.MinimumNArgs(1), Example: "5Xq1Jm0cZr8",
	}, func(c *cobra.Command) {
		sure.add(c)
		c.Flags().BoolVar(&asJSON, "json", false, "print the published keys as JSON afterwards")
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		ends, err := tokensEnd(c.Context(), by)
		if err != nil {
			return err
		}
		if err := sure.ask(s, "This takes out "+strings.Join(args, ", ")+". "+ends); err != nil {
			return err
		}
		var left admin.SigningKeys
		for _, id := range args {
			if left, err = admin.KeysRevoke.Do(c.Context(), by, admin.KeyID{ID: id}); err != nil {
				return err
			}
			if !asJSON {
				fmt.Fprintf(s.out, "revoked %s\n", id)
			}
		}
		if asJSON {
			return printKeys(s, left.Items, true)
		}
		return nil
	})
}

// thenOf describes the next step in the life of a key.
func thenOf(v admin.Key) string {
	switch {
	case !v.ExpiresAt.IsZero():
		return "gone at " + label.Moment(v.ExpiresAt)
	case !v.ActivatesAt.IsZero():
		return "signs from " + label.Moment(v.ActivatesAt)
	}
	return ""
}

func printKeys(s std, all []admin.Key, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, all)
	}
	t := newTable(s.out, "KID", "ALG", "STATE", "CREATED", "THEN")
	for _, v := range all {
		t.row(v.ID, v.Algorithm, v.State, label.Moment(v.CreatedAt), thenOf(v))
	}
	return t.flush()
}
