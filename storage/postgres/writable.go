package postgres

import (
	"context"
	"crypto/rand"
)

const (
	// probeBytes are enough where there is room: a commit that reaches the log shows that this
	// is a primary which takes writes. A PostgreSQL that cannot write its log stops.
	probeBytes = 8
	// roomBytes are as much as a sign-in writes, for when a table could not grow.
	roomBytes = 16 << 10
)

// Writable implements storage.Housekeeping. Once a verb has found a disk full, it writes as much
// as a sign-in, until that fits.
func (s *Store) Writable(ctx context.Context) error {
	value := make([]byte, probeBytes)
	full := s.pool.noRoom.Load()
	if full {
		value = make([]byte, roomBytes)
	}
	rand.Read(value) // never fails; PostgreSQL cannot compress it
	_, err := s.Remember(ctx, "probe", value)
	if err == nil && full {
		s.pool.noRoom.Store(false)
	}
	return err
}
