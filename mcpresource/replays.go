package mcpresource

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
)

// Replays remembers what may be used once.
type Replays interface {
	// Use records id until then and reports whether it was new; of two concurrent calls, one gets
	// true. An id is 32 bytes of any value.
	Use(ctx context.Context, id string, until time.Time) (first bool, err error)
}

const memoryReplays = 100_000 // 16 MB when all are in use

func newMemoryReplays(size int, now func() time.Time) *replays {
	return &replays{bounded.New[string, struct{}](size, now)}
}

type replays struct {
	used *bounded.Map[string, struct{}]
}

func (m *replays) Use(_ context.Context, id string, until time.Time) (bool, error) {
	return m.used.Add(id, struct{}{}, until.Add(time.Nanosecond)), nil // a proof is good until then, and then
}
