package storage

import (
	"context"
	"time"
)

// Events hands what commands do over to the log of a server.
type Events interface {
	// PutEvent stores an event that no server has logged yet.
	PutEvent(ctx context.Context, e Event) error
	// TakeEvents returns up to limit events that no server has logged, oldest first: of N servers, one
	// gets each. It gets them for EventLease, in which it says that they are logged; after that another
	// one gets them.
	TakeEvents(ctx context.Context, limit int, now time.Time) ([]Event, error)
	// LoggedEvents notes that events, by their ids, are logged. No server gets them again.
	LoggedEvents(ctx context.Context, ids []string, now time.Time) error
}

// EventLease is how long the server that has taken an event has, to log it.
const EventLease = time.Minute

// Event is something that a command did, for the log of a server.
type Event struct {
	ID     string
	At     time.Time
	Name   string // such as "user.changed"
	Fields []byte // JSON object
}

// RevokedBy says who or what ended a grant.
type RevokedBy string

// What ends a grant.
const (
	ByOperator      RevokedBy = "operator"
	ByClient        RevokedBy = "client" // RFC 7009
	ByReuse         RevokedBy = "reuse of a code or refresh token"
	ByPassword      RevokedBy = "new password"
	ByDisabled      RevokedBy = "user disabled"
	ByUserDeleted   RevokedBy = "user deleted"
	ByClientDeleted RevokedBy = "client deleted"
	ByResource      RevokedBy = "resource removed"
	ByConsent       RevokedBy = "consent withdrawn"
	ByProvider      RevokedBy = "end of the session at the provider"
	ByNewer         RevokedBy = "newer grants"
	ByPerson        RevokedBy = "the person" // on their account page
	ByTrust         RevokedBy = "end of the trust entry"
	ByUnlinked      RevokedBy = "person unlinked from the issuer"
	ByIssuer        RevokedBy = "security event of the issuer"
)

// GrantSuperseded is the event that a sweep leaves when it ends grants for newer ones; its
// fields are user, client_id, resource and grants, their number.
const GrantSuperseded = "grant.superseded"

// DeliveriesDropped is the event that a sweep leaves when more than MaxDeliveries waited for a
// receiver; its fields are receiver and deliveries, the number of those that it has lost.
const DeliveriesDropped = "securityevent.dropped"
