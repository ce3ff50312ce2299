package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

const SetupFile = "setup-link"

// SetupLink creates a setup link and writes it to the data directory, readable only by its owner.
func (in *Installation) SetupLink(ctx context.Context) (string, error) {
	u, err := in.Users()
	if err != nil {
		return "", err
	}
	link, _, err := u.SetupLink(ctx, in.Config.Issuer)
	path := filepath.Join(in.Config.DataDir, SetupFile)
	if errors.Is(err, users.ErrExists) {
		_ = os.Remove(path) // from an earlier start, no longer valid
	}
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(in.Config.DataDir, 0o700); err != nil {
		return "", in.explainDirectory(fmt.Errorf("the data directory cannot be made: %w", err))
	}
	if err := keepLink(path, link); err != nil {
		_ = os.Remove(path) // an earlier one is no longer valid
		return "", in.explainDirectory(fmt.Errorf("the setup link cannot be kept: %w", err))
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
