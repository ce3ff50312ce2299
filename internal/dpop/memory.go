package dpop

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
)

// memorySize is the number of remembered proofs. A full memory takes 16 MB.
const memorySize = 100_000

// Memory remembers used proofs in the memory of one program.
type Memory struct {
	used *bounded.Map[string, struct{}]
}

// NewMemory returns a Memory with a clock.
func NewMemory(now func() time.Time) *Memory { return newMemory(memorySize, now) }

func newMemory(size int, now func() time.Time) *Memory {
	return &Memory{bounded.New[string, struct{}](size, now)}
}

// Use records id until the given time, and reports whether it was new. If two calls are concurrent,
// only one gets true.
func (m *Memory) Use(_ context.Context, id string, until time.Time) (bool, error) {
	return m.used.Add(id, struct{}{}, until.Add(time.Nanosecond)), nil // the proof is still valid at until
}
