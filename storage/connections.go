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
	// once. The account stays. No session begins of a sign-in here that began by now: see PutSession.
	// One that is under way at a provider is proved there, and goes on.
	StopEverything(ctx context.Context, userID string, now time.Time) error
}

// SignInStart says how and when the sign-in of a session began. A verb that ends all sessions of a
// person also stops the sign-ins that began before it.
type SignInStart struct {
	PasswordHash string    // that was checked; "": no password was given
	At           time.Time // when the sign-in began; zero: not compared
}

// SignInEnd says which sessions of a user another session may end.
type SignInEnd struct {
	UserID string
	// ProvedBefore spares the sessions in which the person has proved who they are at this time or
	// later: ErrProved. Zero: none is spared.
	ProvedBefore time.Time
	Now          time.Time
}

// Ends is nil for a session that may end, and ErrProved for one that is spared.
func (e SignInEnd) Ends(s Session) error {
	if !e.ProvedBefore.IsZero() && !s.Proved().Before(e.ProvedBefore) {
		return ErrProved
	}
	return nil
}

// ErrWider: the grant does not have all of the scopes; it can be narrowed only.
var ErrWider = errors.New("storage: the grant does not have all of the scopes")

// ErrProved: the person has proved who they are in that session after ProvedBefore, so it is not
// ended.
var ErrProved = errors.New("storage: the session was proved lately")

// UserSessions shows people their sessions, and ends them.
type UserSessions interface {
	// Sessions returns up to limit live sessions of a user, the newest first.
	Sessions(ctx context.Context, userID string, now time.Time, limit int) ([]Session, error)
	// EndSignIn is EndSession for the session of a user with an id. ErrNotFound when the user has
	// none of that id, be it another user's; ErrProved.
	EndSignIn(ctx context.Context, id string, e SignInEnd) error
	// EndOtherSignIns is EndSession for each session of a user but the one to keep, and returns how
	// many there were. ErrProved ends none.
	EndOtherSignIns(ctx context.Context, keep Hash, e SignInEnd) (int, error)
	// SeeSession notes that a session is used at a time, unless a use within SeenEvery before it
	// is noted. It returns no error when the session has ended.
	SeeSession(ctx context.Context, h Hash, at time.Time) error
}
