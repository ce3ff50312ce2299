package keys

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// ErrOtherKey is returned by Claim and Belongs: the given master keys cannot open the sealed
// contents of the database.
var ErrOtherKey = errors.New("the secret key is not the one this database was made with")

// Fingerprints is the database that belongs to a master key, as storage.Housekeeping has it.
type Fingerprints interface {
	Fingerprint(ctx context.Context, fp []byte) ([]byte, error)
}

// Claim has a new database belong to the first of the master keys. ErrOtherKey when it
// belongs to another key already.
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

// Belongs returns ErrOtherKey when the database belongs to none of the master keys, be it the
// first or an older one, and nil when it belongs to no key yet.
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
