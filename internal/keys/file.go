package keys

import (
	"fmt"
	"os"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// SecretFile returns the master key in the file at path. If the file does not exist, SecretFile
// creates it and its directory, readable only by the owner. Keep the file with the backups of the
// database, which is useless without it. The file holds at least 32 bytes, as base64 or hex.
//
// SecretFile returns an error if another user could have read or replaced the file. It also returns
// an error if the file is missing and the SQLite file database exists: a new key could not open it.
func SecretFile(path, database string) ([]byte, error) {
	if _, err := secrets.Guard(path, os.Getenv("KUBERNETES_SERVICE_HOST") != ""); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	key, err := secrets.KeptKey(path, database)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return key, nil
}
