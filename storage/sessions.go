package storage

import (
	"context"
	"errors"
	"time"
)

// Sessions holds browser sign-ins.
type Sessions interface {
	// PutSession stores a new session. ErrNotFound when the account is gone or disabled, or has another
	// password or was stopped since the sign-in began; also when the session names one at an upstream
	// provider that has ended or is not the user's. In an account that began at a provider it rests on a
	// live one there, where none is named the newest of a sign-in, else a linked one: ErrHomeProvider
	// without one. It spends a RecoveryCode, or stores nothing: ErrSpent when that was used, ErrNotFound
	// when the user has no such code.
	PutSession(ctx context.Context, s Session, by SignInStart) error
	// HomeSession returns the session at a provider on which a new session of a user would rest that names
	// none: "" for an account that began at no provider. ErrHomeProvider when it would have none.
	HomeSession(ctx context.Context, userID string) (string, error)
	// Visit answers, in one round trip, who a browser belongs to and what that
	// person has consented to for one client and resource.
	Visit(ctx context.Context, v VisitKey) (Visit, error)
	// EndSession removes a session, and ends the one at an upstream provider that it began with if
	// nothing else rests on that, with its tokens among the Handbacks. To end it twice is no error.
	EndSession(ctx context.Context, h Hash, now time.Time) error
}

// SignInStart says how and when the sign-in of a session began. A verb that ends all sessions of a
// person also stops the sign-ins that began before it.
type SignInStart struct {
	PasswordHash string    // that was checked; "": no password was given
	At           time.Time // when the sign-in began; zero: not compared
	RecoveryCode *Hash     // that is spent with it; nil: none
}

// ErrProved: the person has proved who they are in that session after ProvedBefore, so it is not
// ended.
var ErrProved = errors.New("storage: the session was proved lately")

// SessionEnding says which sessions of a user another session may end.
type SessionEnding struct {
	UserID string
	// ProvedBefore spares the sessions in which the person has proved who they are at this time or
	// later: ErrProved. Zero: none is spared.
	ProvedBefore time.Time
	Now          time.Time
}

// UserSessions shows people their sessions, and ends them.
type UserSessions interface {
	// Sessions returns up to limit live sessions of a user, the newest first.
	Sessions(ctx context.Context, userID string, now time.Time, limit int) ([]Session, error)
	// EndSignIn is EndSession for the session of a user with an id. ErrNotFound when the user has
	// none of that id, be it another user's; ErrProved.
	EndSignIn(ctx context.Context, id string, e SessionEnding) error
	// EndOtherSignIns is EndSession for each session of a user but the one to keep, and returns how
	// many there were. ErrProved ends none.
	EndOtherSignIns(ctx context.Context, keep Hash, e SessionEnding) (int, error)
	// SeeSession notes that a session is used at a time, unless a use within SeenEvery before it
	// is noted. It returns no error when the session has ended.
	SeeSession(ctx context.Context, h Hash, at time.Time) error
}
