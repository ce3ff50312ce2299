package storage

import (
	"context"
	"time"
)

// MaxNotices is how many notices of one person are kept: the newest.
const MaxNotices = 50

// Notices keeps what happened to an account until its person has seen it.
type Notices interface {
	// PutNotice stores a notice, and forgets the oldest of its user beyond MaxNotices.
	// ErrNotFound when there is no such user.
	PutNotice(ctx context.Context, n Notice) error
	// UnseenNotices returns what a user has not seen yet, newest first.
	UnseenNotices(ctx context.Context, userID string) ([]Notice, error)
	// SeeNotices marks notices of a user as seen. Ids of others', or unknown ones, change nothing.
	SeeNotices(ctx context.Context, userID string, ids []string, now time.Time) error
}

// Notice is something that happened to an account, for its person.
type Notice struct {
	ID     string // "ntc_" + random
	UserID string
	Kind   string // such as "password-changed"
	Detail string // what it happened to, such as the name of a provider; "" when the kind says all
	At     time.Time
}
