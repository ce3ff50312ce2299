package storage

import (
	"context"
	"time"
)

// Processes combines the roles about the servers of one store.
type Processes interface {
	Leases
	Replicas
}

// Replica is a server that uses the store, as it describes itself.
type Replica struct {
	ID        string // of the process
	Name      string // of its machine, or as configured
	Version   string // of the program
	Migration int    // the last schema step that the program knows
	Issuer    string
	Address   string // of its public listener
	StartedAt time.Time
	SeenAt    time.Time
	Skew      time.Duration // how far the clock of the store is ahead of the machine's clock
	// AuditWaiting entries have yet to reach the audit log. AuditLost counts the entries since its
	// start that never will.
	AuditWaiting int
	AuditLost    int64
	// PeerAddress is where it accepts requests from other replicas for sessions that it holds; "":
	// nowhere.
	PeerAddress string
	// Unreached lists the replicas that it cannot pass requests to: one line each, with the ID, a
	// space and the reason. At most MaxUnreached bytes.
	Unreached string
}

// The limits on stored replicas.
const (
	ReplicaFor  = 24 * time.Hour // after it was last seen
	MaxReplicas = 256
	// MaxUnreached is the longest Replica.Unreached, in bytes.
	MaxUnreached = 4 << 10
)

// Replicas stores which servers use the store.
type Replicas interface {
	// SeeReplica stores r in place of the record with its ID, unless that was seen later. A sweep
	// removes replicas not seen for ReplicaFor and, beyond MaxReplicas, those not seen for longest.
	SeeReplica(ctx context.Context, r Replica) error
	// ForgetReplica removes a replica that shuts down. It returns no error for an unknown one.
	ForgetReplica(ctx context.Context, id string) error
	// Replicas returns up to MaxReplicas replicas seen less than ReplicaFor ago, last seen first,
	// and the last schema step of the database.
	Replicas(ctx context.Context, now time.Time) (seen []Replica, schema int, err error)
}
