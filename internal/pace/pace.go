// Package pace has long work leave the store to others.
package pace

import (
	"context"
	"time"
)

// Breathe waits for an eighth of the time that a batch took, for a second at most. Verbs of others also come between
// the statements of a batch.
func Breathe(ctx context.Context, took time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(min(took/8, time.Second)):
	}
}
