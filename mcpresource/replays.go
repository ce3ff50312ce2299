package mcpresource

import (
	"context"
	"time"
)

// Replays remembers what may be used once.
type Replays interface {
	// Use records id until then and reports whether it was new; of two concurrent calls, one gets
	// true. An id is 32 bytes of any value.
	Use(ctx context.Context, id string, until time.Time) (first bool, err error)
}
