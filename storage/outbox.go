package storage

import (
	"context"
	"time"
)

// The kinds of deliveries, as receivers choose them.
const (
	KindSessionRevoked   = "session-revoked"
	KindCredentialChange = "credential-change"
	KindAccountDisabled  = "account-disabled"
	KindAccountEnabled   = "account-enabled"
	KindAccountPurged    = "account-purged"
	KindGrantRevoked     = "grant-revoked"
	KindVerification     = "verification" // of the operator, by PutDelivery
)

// The bounds of the outbox.
const (
	// DeliveryFor is how long a delivery waits at most, and how long a receiver is told for that no
	// server names any more.
	DeliveryFor = 7 * 24 * time.Hour
	// MaxDeliveries is how many wait for one receiver at most.
	MaxDeliveries = 10000
)

// Outbox holds what receivers of security events are told, until they have it. The store writes a
// delivery for each receiver in the transaction of the change that it is about: an account that is
// disabled, enabled or deleted, a password, passkey or app that changes, StopEverything, a session at
// a provider that another than its person ends, and a grant as soon as it is marked as revoked. Its
// time is that of the change, by the clock of the store.
type Outbox interface {
	// NameReceivers has these receivers told from now on, each of its kinds. A receiver that no call
	// names for DeliveryFor is told nothing more.
	NameReceivers(ctx context.Context, all []EventReceiver, now time.Time) error
	// PutDelivery tells one receiver. ErrNotFound when it is not named.
	PutDelivery(ctx context.Context, d Delivery) error
	// TakeDelivery gives the caller the oldest delivery of a receiver until a time: of N concurrent
	// calls one gets it, and none gets a later one before it. ErrNotFound when there is none, when it
	// is not due at now, or when another caller has it.
	TakeDelivery(ctx context.Context, receiver string, now, until time.Time) (Delivery, error)
	// SettleDelivery removes a delivery that was taken, or, with a time, has it tried again then.
	// ErrSpent when it was taken again since.
	SettleDelivery(ctx context.Context, d Delivery, again time.Time, failed string) error
	// Backlogs says what waits for each receiver that is named, or for which something waits, by id.
	Backlogs(ctx context.Context, now time.Time) ([]Backlog, error)
}

// EventReceiver is who is told of security events.
type EventReceiver struct {
	ID    string
	Kinds []string
}

// Delivery is one event for one receiver.
type Delivery struct {
	ID       string // the jti of its token, at each try
	Receiver string
	Kind     string
	Subject  string // a person, or the client of a grant without one
	Detail   []byte // JSON object
	At       time.Time
	Tries    int64 // with the one that it was taken for
}

// Backlog is what waits for a receiver.
type Backlog struct {
	Receiver string
	Waiting  int
	Oldest   time.Time // zero: none waits
	Tries    int64     // of the oldest
	Failed   string    // why its last try did
}
