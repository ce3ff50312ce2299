package authserver

import (
	"context"
	"time"
)

// DPoPPolicy configures how tokens are bound to clients' keys (RFC 9449). Any client may bind its
// tokens. Clients and resources can require it.
type DPoPPolicy struct {
	// Nonce requires every proof at the token endpoint to carry a nonce of this server (RFC 9449
	// §8). So proofs cannot be created in advance. A nonce is valid for two to five minutes.
	Nonce bool
	// Replays records used proofs. Default: in memory. Several replicas should share one.
	Replays ProofReplays
}

// ProofReplays records ids that may be used once. It is the same as in package mcpresource.
type ProofReplays interface {
	// Use records id until the given time, and reports whether it was new. If two calls are
	// concurrent, one gets true. An id is 32 arbitrary bytes.
	Use(ctx context.Context, id string, until time.Time) (first bool, err error)
}
