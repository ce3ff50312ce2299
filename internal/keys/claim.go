package keys

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// ErrOtherKey is returned by Claim and Belongs if the given master keys cannot open the sealed
// contents of the database.
var ErrOtherKey = errors.New("the secret key is not the one this database was made with")

// Fingerprints reads and sets the fingerprint of a database's master key, as in
// storage.Housekeeping.
type Fingerprints interface {
	Fingerprint(ctx context.Context, fp []byte) ([]byte, error)
}

// Claim assigns a new database to the first of the master keys. It returns ErrOtherKey if the
// database already belongs to another key.
func Claim(ctx context.Context, store Fingerprints, secretKeys [][]byte) error {
	if len(secretKeys) == 0 {
		return errors.New("keys: no secret key")
	}
	ring, err := secrets.NewRing(secretKeys[0])
	if err != nil {
		return err
	}
	if _, err := store.Fingerprint(ctx, ring.Fingerprint()); err != nil {
		return fmt.Errorf("the database cannot be read: %w", err)
	}
	return Belongs(ctx, store, secretKeys)
}

// Belongs returns ErrOtherKey if the database belongs to none of the master keys, current or older.
// It returns nil if the database belongs to no key yet.
func Belongs(ctx context.Context, store Fingerprints, secretKeys [][]byte) error {
	stored, err := store.Fingerprint(ctx, nil)
	if err != nil || len(stored) == 0 {
		return err
	}
	for _, k := range secretKeys {
		ring, err := secrets.NewRing(k)
		if err != nil {
			return err
		}
		if string(ring.Fingerprint()) == string(stored) {
			return nil
		}
	}
	return ErrOtherKey
}
