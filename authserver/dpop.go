package authserver

import (
	"context"
	"time"
)

// DPoPPolicy says how tokens are bound to keys of clients (RFC 9449). Every client may have its tokens
// bound; which have to be, clients and resources say.
type DPoPPolicy struct {
	// Nonce has every proof at the token endpoint carry a nonce of this server, so that none is of use
	// that was made ahead of time (RFC 9449 §8). A nonce is good for two to five minutes.
	Nonce bool
	// Replays remembers the proofs that were used. Default: in memory, which several replicas want to
	// replace.
	Replays ProofReplays
}

// ProofReplays remembers what may be used once. It is that of package mcpresource.
type ProofReplays interface {
	// Use records id until then, and reports whether it was new; of two concurrent calls, one gets
	// true. An id is 32 bytes of any value.
	Use(ctx context.Context, id string, until time.Time) (first bool, err error)
}
