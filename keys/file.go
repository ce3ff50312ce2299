package keys

import (
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// SecretFile returns the master key that is kept in the file at path, for the SecretKeys
// of authserver.Config and its like. A file that is not there is made, with its
// directory, readable to its owner alone: keep it with the backups of the database,
// which is of no use without it. The file holds at least 32 bytes, as base64 or hex.
func SecretFile(path string) ([]byte, error) {
	key, err := secrets.KeptKey(path)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return key, nil
}
