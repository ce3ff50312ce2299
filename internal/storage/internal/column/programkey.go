package column

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// LiveKey is the condition that the grant g of a program key is not revoked. Expiry and cuts are
// checked separately.
const LiveKey = "g.for_program AND g.revoked_at IS NULL"

// GoneKeys is the condition that the client of a program key is removed with its grant. A tombstone
// stays.
const GoneKeys = "source = '" + string(storage.SourcePerson) + "' AND deleted_at IS NULL"

// NoCode returns a random digest for the row of a grant without a code. It matches no code.
func NoCode() []byte {
	h := make([]byte, len(storage.Hash{}))
	rand.Read(h) // never fails
	return h
}

// CheckProgramKey refuses a key that no program could use, or that would never expire.
func CheckProgramKey(k storage.ProgramKey) error {
	c, g := k.Client, k.Grant
	if c.ID != g.ClientID || c.Source != storage.SourcePerson || c.SecretHash == nil || len(c.GrantTypes) > 0 ||
		!g.ExpiresAt.After(g.CreatedAt) {
		return fmt.Errorf("client %q of source %q with grant %q must be an API key", c.ID, c.Source, g.ID)
	}
	return nil
}

// UnusableKey returns why the grant of a key is not usable, nil if it is.
func UnusableKey(g storage.Grant, cut bool, now time.Time) error {
	switch {
	case cut || !g.RevokedAt.IsZero():
		return storage.ErrRevoked
	case !now.Before(g.ExpiresAt):
		return storage.ErrExpired
	case !g.PausedAt.IsZero():
		return storage.ErrPaused
	}
	return nil
}
