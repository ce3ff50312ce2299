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

// Connections are the grants of one person, who sees them, and has each of them do less. What is done to one
// is done to all of its application: of the clients with the same Client.Application, for the same person and
// resource. A grant of another person is as unknown as one that never was.
type Connections interface {
	// Connections returns up to limit grants of a user that are live and were redeemed, with an
	// id less than before ("": any), the newest first; keys for programs are not among them.
	Connections(ctx context.Context, userID, before string, now time.Time, limit int) ([]Connection, error)
	// Connection returns one of them, or a key for a program. ErrNotFound.
	Connection(ctx context.Context, userID, id string, now time.Time) (Connection, error)
	// NarrowGrant leaves the application of a grant fewer scopes: each of its grants keeps of them what it
	// has, and one that keeps none ends. The consents to all others are forgotten, so that a client which
	// wants them again has to ask, and codes that were not redeemed expire. offline_access stays: it is no
	// permission, and the client is as signed in as it was. ErrWider for a scope that none of the grants has;
	// ErrNothing, and nothing is changed, when all would end; ErrNotFound when the grant is not live.
	NarrowGrant(ctx context.Context, userID, id string, to oauth.Scopes, now time.Time) error
	// PauseGrant has the application of a grant get nothing until it is resumed, see Pauses: its tokens are
	// inactive, its refresh tokens are ErrPaused, and stay; its codes expire, and the consents to it are forgotten.
	// Approve, ApproveDevice and GrantAssertion give it nothing, which is ErrPaused, whatever becomes of its grants
	// and clients. A key for a program is its own application, which gets no second grant: the pause is the grant's.
	// No error when it is paused. ErrNotFound when the grant is not live. ErrFull, and nothing is changed, when
	// MaxPauses of the person last.
	PauseGrant(ctx context.Context, userID, id string, now time.Time) error
	// ResumeGrant ends a pause, that of Pauses too. It returns no error when the application is not paused.
	// ErrNotFound when the grant is not live.
	ResumeGrant(ctx context.Context, userID, id string, now time.Time) error
}

// Stops ends everything of a person at once.
type Stops interface {
	// StopEverything ends every session of a user, also those at upstream providers, whose
	// tokens are then among the Handbacks, revokes every grant, forgets every consent and ends the links of
	// LinkReset, all at once. The account stays. No session begins of a sign-in that began by now, here or at
	// a provider: see PutSession and Arrive.
	StopEverything(ctx context.Context, userID string, now time.Time) error
}

// ErrWider: the grant does not have all of the scopes; it can be narrowed only.
var ErrWider = errors.New("storage: the grant does not have all of the scopes")

// ErrNothing: no scope would be left.
var ErrNothing = errors.New("storage: no scope would be left")
