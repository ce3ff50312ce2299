package storage

import (
	"context"
	"time"
)

// Draw is an amount to take from the allowance of a key. An allowance is measured by the time that
// it takes to refill.
type Draw struct {
	Key  Hash
	Cost time.Duration // the amount, from 1ms to Span
	Span time.Duration // the whole allowance
}

// Allowances are rate limits that all replicas share. An unused allowance is full, and needs no
// row.
type Allowances interface {
	// TakeAllowances takes the amounts of all draws and returns nil. If one is not available, it
	// takes nothing and returns how long each draw must wait, 0 for a draw that need not. The keys
	// must differ. Concurrent callers never take more than is available. An allowance never lacks
	// more than its span, so a clock that was set back makes no caller wait longer. Sweep removes
	// full allowances.
	TakeAllowances(ctx context.Context, draws []Draw, now time.Time) (waits []time.Duration, err error)
}
