package postgres

import (
	"context"
	"crypto/rand"
)

const (
	// probeBytes suffice while there is room: a commit that reaches the log proves that the server
	// is a primary and accepts writes. PostgreSQL stops if it cannot write its log.
	probeBytes = 8
	// roomBytes is the size of a sign-in's writes, for a table that could not grow.
	roomBytes = 16 << 10
)

// Writable implements storage.Housekeeping. Once a verb has found a disk full, it writes as much as
// a sign-in, until that succeeds.
func (s *Store) Writable(ctx context.Context) error {
	value := make([]byte, probeBytes)
	full := s.pool.noRoom.Load()
	if full {
		value = make([]byte, roomBytes)
	}
	rand.Read(value) // never fails; PostgreSQL cannot compress it
	err := s.do(ctx, "Writable", func(ctx context.Context, q querier) error {
		var before []byte
		return one(ctx, q, []any{&before}, remember, "fact:probe", value)
	})
	if err == nil && full {
		s.pool.noRoom.Store(false)
	}
	return err
}
