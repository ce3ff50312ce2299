package storage

import (
	"context"
	"time"
)

// RemoteSignIns holds what browsers ask of people on other devices: to be signed in (PE-15).
type RemoteSignIns interface {
	// PutRemoteSignIn stores a request. ErrExists when its code is taken.
	PutRemoteSignIn(ctx context.Context, r RemoteSignIn) error
	// RemoteSignInByCode returns the request that waits for a decision under a code. ErrNotFound
	// for any other code.
	RemoteSignInByCode(ctx context.Context, code Hash, now time.Time) (RemoteSignIn, error)
	// RemoteSignIn returns the request of the browser with a secret, decided or not. ErrNotFound,
	// also when it has expired.
	RemoteSignIn(ctx context.Context, secret Hash, now time.Time) (RemoteSignIn, error)
	// DecideRemoteSignIn decides a request: of N concurrent decisions one counts. The session of
	// the person who approves is named, and none by a person who denies. ErrSpent when it was decided
	// before, ErrExpired when it has expired or is not known; ErrNotFound when the session is not
	// live, which leaves the request undecided.
	DecideRemoteSignIn(ctx context.Context, secret Hash, approver *Hash, now time.Time) error
	// CollectRemoteSignIn is PutSession for the browser of a request that was approved: of N
	// concurrent calls one begins its session. The session that approved has to be live still and of
	// the same user, so that what ends that before ends this, too. ErrSpent when the session was
	// begun before, ErrExpired when the request has expired or is not known; ErrNotFound when it is
	// not approved, or not any more, and as PutSession says.
	CollectRemoteSignIn(ctx context.Context, secret Hash, s Session, now time.Time) error
}

// RemoteSignIn is a request of a browser to be signed in by a person on another device, and what a
// person has decided about it.
type RemoteSignIn struct {
	Secret      Hash   // of what the browser alone holds
	Code        Hash   // of what it shows
	Agent       string // the browser, in words; "": not known
	Address     string // where it asks from, as people are shown it
	CreatedAt   time.Time
	ExpiresAt   time.Time
	DecidedAt   time.Time // zero: it waits for a decision
	Approver    *Hash     // the session of the person who approved; nil: it was not approved
	CollectedAt time.Time // when the session of the browser began; zero: it has not
}
