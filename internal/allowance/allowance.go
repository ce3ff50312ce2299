package allowance

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	// shareUnpaid is the part of an allowance that a replica may let through before it takes it from the
	// store.
	shareUnpaid = 32
	// patience is how long a request waits for the store. Then it is counted here alone.
	patience = 2 * time.Second
	// alone is how long the store is not asked after it did not answer.
	alone = 5 * time.Second
)

// Draw is what a request takes from the bucket of a key.
type Draw = bounded.Draw[string]

// Limits makes the limiters of a server.
type Limits struct {
	store storage.Allowances // nil: each replica counts alone
	now   func() time.Time
	log   *slog.Logger
	until atomic.Int64 // when the store is asked again, in nanoseconds since the epoch
}

// New returns limits that replicas share in a store; nil: each of them counts alone.
func New(store storage.Allowances, now func() time.Time, log *slog.Logger) *Limits {
	return &Limits{store: store, now: now, log: log}
}

// Limiter returns the limiter for a purpose, with place for size keys. Limiters of different purposes
// have no key in common.
func (l *Limits) Limiter(purpose string, size int) *Limiter {
	return &Limiter{
		limits: l, purpose: purpose,
		local: bounded.NewLimiter[string](size, l.now),
		marks: bounded.New[string, mark](size, l.now),
	}
}

// shared reports whether the store is asked now.
func (l *Limits) shared() bool { return l.store != nil && l.now().UnixNano() >= l.until.Load() }

// take asks the store. ok is false when it does not answer.
func (l *Limits) take(ctx context.Context, draws []storage.Draw) (waits []time.Duration, ok bool) {
	asked, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := l.now()
	waits, err := l.store.TakeAllowances(asked, draws, now)
	if err != nil && ctx.Err() == nil && l.until.Swap(now.Add(alone).UnixNano()) <= now.UnixNano() {
		l.log.LogAttrs(ctx, slog.LevelWarn,
			"limits on requests cannot be counted in the database; this replica counts alone for a while",
			slog.Any("cause", err))
	}
	return waits, err == nil
}

// keyOf is the key of a bucket in the store.
func keyOf(purpose, key string) storage.Hash { return sha256.Sum256([]byte(purpose + "\x00" + key)) }
