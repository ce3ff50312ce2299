package storage

import (
	"context"
	"time"
)

// The kinds of deliveries; receivers subscribe to them.
const (
	KindSessionRevoked   = "session-revoked"
	KindCredentialChange = "credential-change"
	KindAccountDisabled  = "account-disabled"
	KindAccountEnabled   = "account-enabled"
	KindAccountPurged    = "account-purged"
	KindGrantRevoked     = "grant-revoked"
	KindVerification     = "verification" // requested by an administrator, with PutDelivery
)

// The limits of the outbox.
const (
	// DeliveryFor is how long a delivery waits at most, and how long a receiver still gets
	// deliveries after the last server stops naming it.
	DeliveryFor = 7 * 24 * time.Hour
	// MaxDeliveries is the maximum number of waiting deliveries per receiver.
	MaxDeliveries = 10000
)

// Outbox queues security events for receivers until they are delivered. The store writes a delivery
// for each receiver in the transaction of the change itself. The changes are:
//
//   - an account is disabled, enabled or deleted
//   - a password, passkey or authenticator app changes
//   - StopEverything
//   - anyone but the user ends a session at a provider
//   - a grant is marked as revoked
//
// The delivery has the time of the change, by the clock of the store.
type Outbox interface {
	// NameReceivers registers receivers, each for its kinds. A receiver that no call names for
	// DeliveryFor gets no further deliveries.
	NameReceivers(ctx context.Context, all []EventReceiver, now time.Time) error
	// PutDelivery queues a delivery for one receiver. It returns ErrNotFound if the receiver is not
	// named.
	PutDelivery(ctx context.Context, d Delivery) error
	// TakeDelivery gives the caller the oldest delivery of a receiver until a time. One of N
	// concurrent calls gets it, and no call gets a later one before it. It returns ErrNotFound if
	// the queue is empty, the delivery is not due at now, or another caller has it.
	TakeDelivery(ctx context.Context, receiver string, now, until time.Time) (Delivery, error)
	// SettleDelivery removes a taken delivery, or with a time schedules another try. It returns
	// ErrSpent if the delivery was taken again since.
	SettleDelivery(ctx context.Context, d Delivery, again time.Time, failed string) error
	// Backlogs returns the queue of each receiver that is named or still has deliveries, by id.
	Backlogs(ctx context.Context, now time.Time) ([]Backlog, error)
}

// EventReceiver is a receiver of security events.
type EventReceiver struct {
	ID    string
	Kinds []string
}

// Delivery is one event for one receiver.
type Delivery struct {
	ID       string // the jti of its token, the same for each try
	Receiver string
	Kind     string
	Subject  string // a user, or the client of a grant without a user
	Detail   []byte // JSON object
	At       time.Time
	Tries    int64 // including the current one
}

// Backlog describes the queue of a receiver.
type Backlog struct {
	Receiver string
	Waiting  int
	Oldest   time.Time // zero: the queue is empty
	Tries    int64     // of the oldest
	Failed   string    // why the last try of the oldest failed
}
