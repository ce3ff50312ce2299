package storage

import (
	"context"
	"time"
)

// KeyedRequests stores requests with an idempotency key chosen by the caller, so that each is
// carried out once, however often it is sent.
type KeyedRequests interface {
	// BeginKeyed stores a new request, unless one with its key is stored and has not expired. One
	// of N concurrent calls stores it. It returns the stored request, and whether this call stored
	// it. It returns ErrFull if the caller already has most unexpired requests; a race may admit a
	// few more.
	BeginKeyed(
		ctx context.Context, r KeyedRequest, most int, now time.Time,
	) (stored KeyedRequest, begun bool, err error)
	// EndKeyed stores the response to a request without a response. It returns ErrSpent for a
	// request that has one, and ErrNotFound for an unknown one.
	EndKeyed(ctx context.Context, key Hash, sealed []byte) error
	// ForgetKeyed removes a request without a response that was not carried out at all. It leaves
	// any other request alone.
	ForgetKeyed(ctx context.Context, key Hash) error
}

// KeyedRequest is a request with an idempotency key.
type KeyedRequest struct {
	Key       Hash // of the caller and the caller's key
	Caller    Hash
	Digest    []byte    // of the input
	Until     time.Time // by then it has ended, successfully or not
	ExpiresAt time.Time
	Sealed    []byte // the response; nil: none yet
}
