package dpop

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
)

// memorySize is how many proofs are remembered: 16 MB when all are in use.
const memorySize = 100_000

// Memory remembers the proofs that were used, in the memory of one program.
type Memory struct {
	used *bounded.Map[string, struct{}]
}

// NewMemory returns a Memory by a clock.
func NewMemory(now func() time.Time) *Memory { return newMemory(memorySize, now) }

func newMemory(size int, now func() time.Time) *Memory {
	return &Memory{bounded.New[string, struct{}](size, now)}
}

// Use records id until then, and reports whether it was new; of two concurrent calls, one gets true.
func (m *Memory) Use(_ context.Context, id string, until time.Time) (bool, error) {
	return m.used.Add(id, struct{}{}, until.Add(time.Nanosecond)), nil // a proof is good until then, and then
}
