package storage

import (
	"context"
	"errors"
	"time"
)

// Sessions stores browser sign-ins.
type Sessions interface {
	// PutSession stores a new session.
	//
	// ErrNotFound: the account is gone or disabled, or its password changed or it was stopped since
	// the sign-in began. Also, the session names a session at an upstream provider that has ended
	// or is not the user's.
	//
	// In an account that began at a provider, the session depends on a live session there. If it
	// names none, that is the newest session of a sign-in, otherwise a linked one. ErrHomeProvider:
	// there is no such session.
	//
	// It uses up a RecoveryCode, or stores nothing: ErrSpent if the code was already used,
	// ErrNotFound if the user has no such code.
	PutSession(ctx context.Context, s Session, by SignInStart) error
	// HomeSession returns the provider session that a new session of a user would depend on if it
	// names none. It returns "" for an account that did not begin at a provider, and
	// ErrHomeProvider if no live session exists there.
	HomeSession(ctx context.Context, userID string) (string, error)
	// Visit returns, in one round trip, the account of a browser and what its user has consented to
	// for one client and resource.
	Visit(ctx context.Context, v VisitKey) (Visit, error)
	// EndSession removes a session. It also ends the upstream session that began it, if no other
	// record depends on that; its tokens are then among the Handbacks. Ending it twice is not an
	// error.
	EndSession(ctx context.Context, h Hash, now time.Time) error
}

// SignInStart says how and when the sign-in of a session began. A verb that ends all sessions of a
// user also stops the sign-ins that began before it.
type SignInStart struct {
	PasswordHash string    // the checked hash; "": no password was given
	At           time.Time // when the sign-in began; zero: not compared
	RecoveryCode *Hash     // used up with it; nil: none
}

// ErrProved: the user has proved their identity in that session since ProvedBefore, so it does not
// end.
var ErrProved = errors.New("storage: the session was proved lately")

// SessionEnding says which sessions of a user another session may end.
type SessionEnding struct {
	UserID string
	// ProvedBefore spares sessions in which the user proved their identity at this time or later:
	// ErrProved. Zero spares no session.
	ProvedBefore time.Time
	Now          time.Time
}

// UserSessions shows users their sessions, and ends them.
type UserSessions interface {
	// Sessions returns up to limit live sessions of a user, newest first.
	Sessions(ctx context.Context, userID string, now time.Time, limit int) ([]Session, error)
	// EndSignIn is EndSession for the session of a user with an id. It returns ErrNotFound if the
	// user has no session with that id, also for another user's session; and ErrProved.
	EndSignIn(ctx context.Context, id string, e SessionEnding) error
	// EndOtherSignIns is EndSession for each session of a user except keep, and returns how many
	// there were. If it returns ErrProved, it ended none.
	EndOtherSignIns(ctx context.Context, keep Hash, e SessionEnding) (int, error)
	// SeeSession records the use of a session at a time, unless a use within SeenEvery before it is
	// recorded. It returns no error if the session has ended.
	SeeSession(ctx context.Context, h Hash, at time.Time) error
}
