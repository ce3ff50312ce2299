package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
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
			if !a.config.Login.Local {
				return errors.New(
					"login.local is false: people do not sign in with passwords, so there is no account to set up",
				)
			}
			link, err := a.setupLink(c.Context())
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

const setupFile = "setup-link"

// setupLink creates a setup link and writes it to the data directory, readable only by its owner.
func (a *app) setupLink(ctx context.Context) (string, error) {
	u, err := a.accounts()
	if err != nil {
		return "", err
	}
	link, _, err := u.SetupLink(ctx, a.config.Issuer)
	path := filepath.Join(a.config.DataDir, setupFile)
	if errors.Is(err, users.ErrExists) {
		_ = os.Remove(path) // from an earlier start, no longer valid
	}
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(a.config.DataDir, 0o700); err != nil {
		return "", a.explainDirectory(fmt.Errorf("the data directory cannot be made: %w", err))
	}
	if err := keepLink(path, link); err != nil {
		_ = os.Remove(path) // an earlier one is no longer valid
		return "", a.explainDirectory(fmt.Errorf("the setup link cannot be kept: %w", err))
	}
	return link, nil
}

// keepLink replaces path with a new file. It never opens an existing file: root runs this in a
// directory of the server's user, who could have placed a link there.
func keepLink(path, link string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".setup-link-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(link + "\n")
	if err == nil {
		err = secrets.HandOver(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
