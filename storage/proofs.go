package storage

import (
	"context"
	"time"
)

// Proofs records proofs of possession (RFC 9449), each of which is over within minutes.
type Proofs interface {
	// SpendProof records (purpose, id) until expires. ErrSpent when it was recorded before, by whichever
	// process; of N concurrent calls one succeeds. It shares its records with Spend.
	//
	// It does not wait until the record is on the disk, or on a standby: the record survives the end of any process of
	// ours, but a crash of the database server (with SQLite: of the machine), or a failover, may lose
	// those of the second before. Whatever else is stored waits as ever, and for these too.
	SpendProof(ctx context.Context, purpose, id string, expires time.Time) error
}
