package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/acme"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// resealed counts the data encrypted again with the current master key.
type resealed struct {
	SigningKeys        int  `json:"signing_keys"`
	ProviderSessions   int  `json:"provider_sessions"`
	Apps               int  `json:"authenticator_apps"`
	Certificates       int  `json:"certificate_files"`
	RefreshTokensEnded bool `json:"refresh_tokens_ended"`
}

func newSecretCommand(s std) *cobra.Command {
	var tokens bool
	var sure confirmation
	var out answering
	rotate := commandOn((*installation.Installation).OpenWithNewKey, s, &cobra.Command{
		Use: "rotate", Short: "Move the database to the present secret_key", Args: cobra.NoArgs,
		Example: "  mcp-authd secret rotate\n  mcp-authd secret rotate --refresh-tokens",
		Long: "Encrypts the secrets in the database again, with secret_key, while servers run. First give every\n" +
			"replica the new key as secret_key, and the old one in secret_key_old. Afterwards you can remove the\n" +
			"old one. The command may be repeated.\n\n" +
			"If the database and its master key are in the wrong hands, use --refresh-tokens: it also replaces\n" +
			"the key of refresh tokens. All refresh tokens end, and users go through the browser again.",
	}, func(c *cobra.Command) {
		sure.add(c)
		out.add(c)
		c.Flags().BoolVar(&tokens, "refresh-tokens", false, "also revoke all refresh tokens")
	}, func(c *cobra.Command, a *app, _ []string) error {
		if tokens {
			if err := sure.ask(s,
				"This ends every refresh token. People keep their approvals, but go through the browser again."); err != nil {
				return err
			}
		}
		m, err := a.Parts().KeyManager(c.Context())
		if err != nil {
			return err
		}
		d, err := a.Parts().Delegation()
		if err != nil {
			return err
		}
		// The signing keys come last: with them, the database records that it belongs to the new
		// key.
		sessions, err := d.Reseal(c.Context())
		if err != nil {
			return err
		}
		apps, err := a.resealApps(c.Context())
		if err != nil {
			return err
		}
		certificates, err := a.resealCertificates(c.Context())
		if err != nil {
			return err
		}
		n, err := m.Reseal(c.Context())
		if err != nil {
			return err
		}
		if tokens {
			if err := m.RenewTokenKey(c.Context()); err != nil {
				return err
			}
			if !out.json {
				fmt.Fprintln(s.out, "every earlier refresh token has ended")
			}
		}
		done := resealed{SigningKeys: n, ProviderSessions: sessions, Apps: apps, Certificates: certificates,
			RefreshTokensEnded: tokens}
		return out.print(s, done,
			"the database belongs to secret_key; signing keys sealed again: %d, sessions at providers: %d, "+
				"authenticator apps: %d, files of certificates: %d", n, sessions, apps, certificates)
	})
	return group("secret", "Change the master key", rotate)
}

// resealCertificates encrypts certificates from ACME again with the current master key.
func (a *app) resealCertificates(ctx context.Context) (int, error) {
	ring, err := secrets.NewRing(a.Keys...)
	if err != nil {
		return 0, err
	}
	return acme.Reseal(ctx, a.Store, ring)
}
