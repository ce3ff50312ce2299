package storage

import (
	"context"
	"time"
)

// KeyedRequests holds the requests for which their callers have chosen a key, so that each is carried
// out once, however often it comes.
type KeyedRequests interface {
	// BeginKeyed stores a request that begins, unless one of its key is stored and has not expired: of N
	// concurrent calls one begins. It returns what is then stored, and whether this call has stored it.
	// ErrFull when the caller has that many others that have not expired, or a few more after a race.
	BeginKeyed(
		ctx context.Context, r KeyedRequest, most int, now time.Time,
	) (stored KeyedRequest, begun bool, err error)
	// EndKeyed keeps the answer to a request that has none. ErrSpent for a request that has one,
	// ErrNotFound for one that is not stored.
	EndKeyed(ctx context.Context, key Hash, sealed []byte) error
	// ForgetKeyed removes a request without an answer, of which nothing was carried out. Any other is
	// left alone.
	ForgetKeyed(ctx context.Context, key Hash) error
}

// KeyedRequest is a request with a key of its caller.
type KeyedRequest struct {
	Key       Hash // of the caller and their key
	Caller    Hash
	Digest    []byte    // of the input
	Until     time.Time // it has ended by then, one way or the other
	ExpiresAt time.Time
	Sealed    []byte // the answer; nil: there is none
}
