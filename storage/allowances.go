package storage

import (
	"context"
	"time"
)

// Draw is what is taken from the allowance of a key. An allowance is measured by the time in which it
// comes back.
type Draw struct {
	Key  Hash
	Cost time.Duration // what is taken, from 1ms to Span
	Span time.Duration // the whole allowance
}

// Allowances are limits on requests that all replicas share. An allowance that is not in use is whole,
// and takes no row.
type Allowances interface {
	// TakeAllowances takes what all draws ask for and returns nil, or takes nothing and returns for each
	// draw how long it has to wait, 0 for one that would not. The keys differ. What callers take at the
	// same time is never more than there is. An allowance never lacks more than its span: a clock that
	// was set back makes no caller wait longer. Sweep removes allowances that are whole.
	TakeAllowances(ctx context.Context, draws []Draw, now time.Time) (waits []time.Duration, err error)
}
