package storage

import (
	"context"
	"time"
)

// RemoteSignIns stores requests of browsers to be signed in by a user on another device (PE-15).
type RemoteSignIns interface {
	// PutRemoteSignIn stores a request. It returns ErrExists if its code is taken.
	PutRemoteSignIn(ctx context.Context, r RemoteSignIn) error
	// RemoteSignInByCode returns the request that waits for a decision under a code. It returns
	// ErrNotFound for any other code.
	RemoteSignInByCode(ctx context.Context, code Hash, now time.Time) (RemoteSignIn, error)
	// RemoteSignIn returns the request of the browser with a secret, decided or not. It returns
	// ErrNotFound if the request is unknown or expired.
	RemoteSignIn(ctx context.Context, secret Hash, now time.Time) (RemoteSignIn, error)
	// DecideRemoteSignIn decides a request; one of N concurrent decisions counts. The approver is
	// the session of the user who approves, nil to deny. It returns ErrSpent if the request was
	// already decided, and ErrExpired if it is expired or unknown. It returns ErrNotFound, and
	// leaves the request undecided, if the session is not live.
	DecideRemoteSignIn(ctx context.Context, secret Hash, approver *Hash, now time.Time) error
	// CollectRemoteSignIn is PutSession for the browser of an approved request. One of N concurrent
	// calls begins its session. The approving session must still be live and of the same user, so
	// an event that ended it also prevents the new session.
	//
	// It returns ErrSpent if the session was already begun, and ErrExpired if the request is
	// expired or unknown. It returns ErrNotFound if the request is not or no longer approved, and
	// like PutSession.
	CollectRemoteSignIn(ctx context.Context, secret Hash, s Session, now time.Time) error
}

// RemoteSignIn is a browser's request to be signed in by a user on another device, with the user's
// decision.
type RemoteSignIn struct {
	Secret      Hash   // of a value that only the browser has
	Code        Hash   // of the code that the browser shows
	Agent       string // the browser, in words; "": not known
	Address     string // the address of the request, as users see it
	CreatedAt   time.Time
	ExpiresAt   time.Time
	DecidedAt   time.Time // zero: undecided
	Approver    *Hash     // the session of the user who approved; nil: not approved
	CollectedAt time.Time // when the session of the browser began; zero: not yet
}
