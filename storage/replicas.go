package storage

import (
	"context"
	"time"
)

// Processes is what the servers of one store know of each other.
type Processes interface {
	Leases
	Replicas
}

// Replica is a server that has the store, as it has told of itself.
type Replica struct {
	ID        string // of the process
	Name      string // of its machine, or as the operator has it
	Version   string // of the program
	Migration int    // the last step of the schema that the program knows
	Issuer    string
	Address   string // of its public listener
	StartedAt time.Time
	SeenAt    time.Time
	Skew      time.Duration // how far the clock of the store is ahead of that of its machine
	// AuditWaiting entries have yet to reach the audit log, and AuditLost never will, since its start.
	AuditWaiting int
	AuditLost    int64
	// PeerAddress is where it takes requests of sessions that it holds from other replicas; "": nowhere.
	PeerAddress string
	// Unreached names the replicas that it cannot pass requests to: for each a line with the ID, a space and the
	// reason. At most MaxUnreached bytes.
	Unreached string
}

// The bounds on what is kept of replicas.
const (
	ReplicaFor  = 24 * time.Hour // after it was last seen
	MaxReplicas = 256
	// MaxUnreached is the longest Replica.Unreached, in bytes.
	MaxUnreached = 4 << 10
)

// Replicas keeps which servers have the store.
type Replicas interface {
	// SeeReplica keeps r in place of what is kept of its ID, unless that was seen later. A sweep removes
	// what was not seen for ReplicaFor and, of more than MaxReplicas, those that were not seen for longest.
	SeeReplica(ctx context.Context, r Replica) error
	// ForgetReplica removes one that ends. No error when it is not known.
	ForgetReplica(ctx context.Context, id string) error
	// Replicas returns up to MaxReplicas that were seen less than ReplicaFor ago, the last seen first, and
	// the last step of the schema that the database has.
	Replicas(ctx context.Context, now time.Time) (seen []Replica, schema int, err error)
}
