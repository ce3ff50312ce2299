package column

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Length returns d in milliseconds, rounded up, so that a positive cost is never free.
func Length(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Lacks returns how much an allowance that will be full again at full lacks now.
func Lacks(full, now int64, d storage.Draw) int64 { return min(max(full-now, 0), Length(d.Span)) }

// Wait returns how long a draw must wait for an allowance that lacks this much, 0 for not at all.
func Wait(lacks int64, d storage.Draw) time.Duration {
	return time.Duration(max(lacks+Length(d.Cost)-Length(d.Span), 0)) * time.Millisecond
}
