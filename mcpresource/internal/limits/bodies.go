package limits

import (
	"errors"
	"maps"
	"sync"
)

// Bodies limits the memory for request bodies of all callers, from the first byte read until the
// request ends. One caller gets at most a quarter of the memory that the others leave, so that no
// number of callers can take all of it. Requests without a token count as one caller. The guards of
// a process should share one Bodies.
type Bodies struct {
	most, share int64

	mu    sync.Mutex // guards the fields below
	total int64
	of    map[string]int64
}

// DefaultBodies lets one caller send eight bodies of the maximum size at once.
const DefaultBodies = 128 << 20

// NewBodies returns a limit of the given number of bytes.
func NewBodies(bytes int64) *Bodies {
	return &Bodies{most: bytes, share: bytes / 4, of: map[string]int64{}}
}

// Share returns the most bytes of one caller.
func Share(b *Bodies) int64 { return b.share }

// usage contains the counters of a Bodies, in bytes.
type usage struct {
	Most, Share, Total int64
	Of                 map[string]int64 // by caller
}

// UsageOf returns the counters of b.
func UsageOf(b *Bodies) usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return usage{b.most, b.share, b.total, maps.Clone(b.of)}
}

var (
	ErrShare = errors.New("mcpresource: the bodies of one caller take too much memory")
	ErrFull  = errors.New("mcpresource: the bodies of all requests take too much memory")
)

// Take counts n bytes for who. If that exceeds a limit, it counts nothing and returns ErrShare or
// ErrFull.
func Take(b *Bodies, who string, n int64) error {
	if n == 0 { // the end of a body, which may be empty: nothing to give back later
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.of[who]+n > b.share:
		return ErrShare
	case b.of[who]+n > (b.most-(b.total-b.of[who]))/4:
		return ErrFull
	}
	b.total += n
	b.of[who] += n
	return nil
}

// Give stops counting n bytes of who.
func Give(b *Bodies, who string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total -= n
	if b.of[who] -= n; b.of[who] == 0 {
		delete(b.of, who)
	}
}
