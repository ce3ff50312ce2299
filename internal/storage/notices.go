package storage

import (
	"context"
	"time"
)

// MaxNotices is how many notices are kept per user: the newest.
const MaxNotices = 50

// Notices stores notices about an account until its user has seen them.
type Notices interface {
	// PutNotice stores a notice, and removes the user's oldest ones beyond MaxNotices. It returns
	// ErrNotFound for an unknown user.
	PutNotice(ctx context.Context, n Notice) error
	// UnseenNotices returns a user's unseen notices, newest first.
	UnseenNotices(ctx context.Context, userID string) ([]Notice, error)
	// SeeNotices marks notices of a user as seen. It ignores unknown ids and ids of other users.
	SeeNotices(ctx context.Context, userID string, ids []string, now time.Time) error
}

// Notice tells a user that their account changed.
type Notice struct {
	ID     string // "ntc_" + random
	UserID string
	Kind   string // such as "password-changed"
	Detail string // the affected thing, such as the name of a provider; "" if the kind says everything
	At     time.Time
}
