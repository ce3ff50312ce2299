package storage

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Connection is a grant as its user sees it.
type Connection struct {
	Grant
	GivenAgent  string    // the approving browser, in words; "": not known
	GivenFrom   string    // the network of the approval; "": not known
	FirstUsedAt time.Time // when the client got its first token
	UsedAt      time.Time // when it got its last one
	UsedFrom    string    // the network of the last token request; "": not known
	LastCall    ToolCall  // see LastCalls
}

// Connections lists and restricts the grants of one user. A change to one grant applies to all
// grants of its application: the clients with the same Client.Application, for the same user and
// resource. Another user's grant is treated as unknown.
type Connections interface {
	// Connections returns up to limit live, redeemed grants of a user, with an id less than before
	// ("": any), newest first. It excludes program keys.
	Connections(ctx context.Context, userID, before string, now time.Time, limit int) ([]Connection, error)
	// Connection returns one connection or program key of the user, or ErrNotFound.
	Connection(ctx context.Context, userID, id string, now time.Time) (Connection, error)
	// NarrowGrant reduces the scopes of a grant's application: each of its grants keeps only its
	// scopes in to, and a grant that keeps none ends. It forgets the consents to all other scopes,
	// so that a client must ask for them again. Unredeemed codes expire. offline_access stays: it
	// is not a permission, and the client stays signed in.
	//
	// It returns ErrWider for a scope that none of the grants has, and ErrNotFound if the grant is
	// not live. It returns ErrNothing, and changes nothing, if all grants would end.
	NarrowGrant(ctx context.Context, userID, id string, to oauth.Scopes, now time.Time) error
	// PauseGrant pauses the application of a grant, and those that are merged with it, at the grant's
	// resource until it is resumed, see Pauses. A concurrent merge pauses what it adds. Its tokens are
	// inactive. Its refresh tokens stay, and return ErrPaused. Its codes expire, and the consents to it
	// are forgotten. Approve, ApproveDevice and GrantAssertion return ErrPaused for it, even after its
	// grants and clients are gone.
	//
	// A program key is its own application without a second grant, so the pause is on its grant
	// only. Pausing twice is not an error. It returns ErrNotFound if the grant is not live, and
	// ErrFull, without a change, if the user has MaxPauses.
	PauseGrant(ctx context.Context, userID, id string, now time.Time) error
	// ResumeGrant ends a pause, including its entry in Pauses, for all that PauseGrant pauses. It
	// returns no error if the application is not paused, and ErrNotFound if the grant is not live.
	ResumeGrant(ctx context.Context, userID, id string, now time.Time) error
}

// Stops ends all sessions and grants of a user at once.
type Stops interface {
	// StopEverything ends every session of a user, revokes every grant, forgets every consent and
	// ends the links of kind LinkReset, in one transaction. Sessions at upstream providers end as
	// well; their tokens are then among the Handbacks. The account stays. A sign-in that began by
	// now, here or at a provider, can no longer begin a session: see PutSession and Arrive.
	StopEverything(ctx context.Context, userID string, now time.Time) error
}

// ErrWider: the grant does not have all of the scopes; it can only be reduced.
var ErrWider = errors.New("storage: the grant does not have all of the scopes")

// ErrNothing: the grant would keep no scope.
var ErrNothing = errors.New("storage: no scope would be left")
