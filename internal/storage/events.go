package storage

import (
	"context"
	"time"
)

// Events passes events from commands to the log of a server.
type Events interface {
	// PutEvent stores an event that a server has yet to log.
	PutEvent(ctx context.Context, e Event) error
	// TakeEvents returns up to limit unlogged events, oldest first. Each goes to one of N servers,
	// which must confirm within EventLease that it is logged. After that, another server gets it.
	TakeEvents(ctx context.Context, limit int, now time.Time) ([]Event, error)
	// LoggedEvents records that the events with the ids are logged. No server gets them again.
	LoggedEvents(ctx context.Context, ids []string, now time.Time) error
}

// EventLease is how long a server has to log an event that it took.
const EventLease = time.Minute

// Event is an action of a command, for the log of a server.
type Event struct {
	ID     string
	At     time.Time
	Name   string // such as "user.changed"
	Fields []byte // JSON object
}

// RevokedBy is the cause of a grant's end.
type RevokedBy string

// The causes of a grant's end.
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

// GrantSuperseded is the event that a sweep stores when it revokes grants because of newer ones.
// Its fields are user, client_id, resource and grants, the number of grants.
const GrantSuperseded = "grant.superseded"

// DeliveriesDropped is the event that a sweep stores when more than MaxDeliveries waited for a
// receiver. Its fields are receiver and deliveries, the number of dropped ones.
const DeliveriesDropped = "securityevent.dropped"
