package mcpresource

import (
	"context"
	"time"
)

// Replays stores ids that may be used once.
type Replays interface {
	// Use records id until the given time and reports whether it was new. For two concurrent calls,
	// exactly one gets true. An id is 32 arbitrary bytes.
	Use(ctx context.Context, id string, until time.Time) (first bool, err error)
}
