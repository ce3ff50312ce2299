package storage

import (
	"context"
	"time"
)

// Proofs records proofs of possession (RFC 9449), which expire within minutes.
type Proofs interface {
	// SpendProof records (purpose, id) until expires. It returns ErrSpent if any process recorded
	// the pair before; one of N concurrent calls succeeds. It shares its records with Spend.
	//
	// It does not wait until the record is on disk or on a standby. The record survives the end of
	// any of our processes. But a crash of the database server (with SQLite: of the machine), or a
	// failover, may lose the records of the last second. All other writes still wait, also for
	// these records.
	SpendProof(ctx context.Context, purpose, id string, expires time.Time) error
}
