package keys

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// databaseFile is the database that belongs to a key file in the same directory, by the names
// that the commands of mcp-authd expect.
const databaseFile = "mcp-authd.db"

// SecretFile returns the master key that is kept in the file at path, for the SecretKeys
// of authserver.Config and its like. A file that is not there is made, with its
// directory, readable to its owner alone: keep it with the backups of the database,
// which is of no use without it. The file holds at least 32 bytes, as base64 or hex.
//
// It is an error when another user can have read or replaced the file, and when it is missing
// beside a database (mcp-authd.db in the same directory): a new key would open nothing in it.
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
