package keys

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// databaseFile is the name of the database beside a key file, which the commands of mcp-authd use.
const databaseFile = "mcp-authd.db"

// SecretFile returns the master key in the file at path, for the SecretKeys of authserver.Config
// and similar types. If the file does not exist, SecretFile creates it and its directory, readable
// only by the owner. Keep the file with the backups of the database, which is useless without it.
// The file holds at least 32 bytes, as base64 or hex.
//
// SecretFile returns an error if another user could have read or replaced the file. It also returns
// an error if the file is missing beside a database (mcp-authd.db in the same directory): a new key
// could not open that database.
func SecretFile(path string) ([]byte, error) {
	if _, err := secrets.Guard(path, os.Getenv("KUBERNETES_SERVICE_HOST") != ""); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	key, err := secrets.KeptKey(path, filepath.Join(filepath.Dir(path), databaseFile))
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return key, nil
}
