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
	// shareUnpaid is the part of a burst, 1/shareUnpaid, that a replica may admit on its own.
	shareUnpaid = 32
	// patience limits how long a request waits for the store before it is counted here alone.
	patience = 2 * time.Second
	// alone is how long a replica counts alone after the store did not answer.
	alone = 5 * time.Second
)

// Draw is the amount that a request takes from the bucket of a key.
type Draw = bounded.Draw[string]

// Limits creates the limiters of a server.
type Limits struct {
	store storage.Allowances // if nil, each replica counts alone
	now   func() time.Time
	log   *slog.Logger
	until atomic.Int64 // when to ask the store again, in nanoseconds since the epoch
}

// New returns limits that replicas share through a store. If store is nil, each replica counts
// alone.
func New(store storage.Allowances, now func() time.Time, log *slog.Logger) *Limits {
	return &Limits{store: store, now: now, log: log}
}

// Limiter returns a limiter for one purpose that holds up to size keys. Limiters of different
// purposes share no keys.
func (l *Limits) Limiter(purpose string, size int) *Limiter {
	return &Limiter{
		limits: l, purpose: purpose,
		local: bounded.NewLimiter[string](size, l.now),
		marks: bounded.New[string, mark](size, l.now),
	}
}

// shared reports whether to ask the store now.
func (l *Limits) shared() bool { return l.store != nil && l.now().UnixNano() >= l.until.Load() }

// take asks the store. ok is false if the store fails or does not answer in time.
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

// keyOf returns the key of a bucket in the store.
func keyOf(purpose, key string) storage.Hash { return sha256.Sum256([]byte(purpose + "\x00" + key)) }
