package storage

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Connection is a grant as the person who gave it sees it.
type Connection struct {
	Grant
	GivenAgent  string    // the browser that it was given in, in words; "": not known
	GivenFrom   string    // the network that it was given from; "": not known
	FirstUsedAt time.Time // when the client got its first token
	UsedAt      time.Time // when it got its last one
	UsedFrom    string    // the network that it got it from; "": not known
	LastCall    ToolCall  // see LastCalls
}

// Connections are the grants of one person, who sees them, and has each of them do less. A grant
// of another person is as unknown as one that never was.
type Connections interface {
	// Connections returns up to limit grants of a user that are live and were redeemed, with an
	// id less than before ("": any), the newest first; keys for programs are not among them.
	Connections(ctx context.Context, userID, before string, now time.Time, limit int) ([]Connection, error)
	// Connection returns one of them, or a key for a program. ErrNotFound.
	Connection(ctx context.Context, userID, id string, now time.Time) (Connection, error)
	// NarrowGrant leaves a grant fewer scopes, and forgets the consent to the others, so that a
	// client which wants them again has to ask. offline_access stays: it is no permission, and the
	// client is as signed in as it was. ErrWider for a scope that the grant has not; ErrNotFound when
	// it is not live.
	NarrowGrant(ctx context.Context, userID, id string, to oauth.Scopes, now time.Time) error
	// PauseGrant has a grant give nothing until it is resumed: its tokens are inactive, its refresh
	// tokens are ErrPaused, and stay. No error when it is paused. ErrNotFound when it is not live.
	PauseGrant(ctx context.Context, userID, id string, now time.Time) error
	// ResumeGrant ends a pause. It returns no error when the grant is not paused. ErrNotFound when the grant is not
	// live.
	ResumeGrant(ctx context.Context, userID, id string, now time.Time) error
}

// Stops ends everything of a person at once.
type Stops interface {
	// StopEverything ends every session of a user, also those at upstream providers, whose
	// tokens are then among the Handbacks, revokes every grant and forgets every consent, all at
	// once. The account stays. No session begins of a sign-in that began by now, here or at a provider:
	// see PutSession and Arrive.
	StopEverything(ctx context.Context, userID string, now time.Time) error
}

// ErrWider: the grant does not have all of the scopes; it can be narrowed only.
var ErrWider = errors.New("storage: the grant does not have all of the scopes")
