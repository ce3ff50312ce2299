// Package growth measures how fast a database grows, from its size on each of the last days (OP-02).
package growth

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Store is the part of the store that is measured.
type Store interface {
	Size(ctx context.Context) (storage.Size, error)
	Remember(ctx context.Context, name string, value []byte) (before []byte, err error)
}

const (
	fact = "sizes" // the name under which the store remembers samples
	day  = 24 * time.Hour
	// days bounds for how long a sample is kept, and so the time over which the growth is an average.
	days = 30
)

// sample is the size of the database on a day.
type sample struct {
	Day  int64 `json:"day"` // since 1970, UTC
	Used int64 `json:"used"`
}

// Growth is the size of a database and its growth.
type Growth struct {
	storage.Size
	// PerDay is the growth in bytes a day, on average over Days. It is negative when the database shrinks.
	PerDay int64
	Days   int // 0: not known before tomorrow
}

// Full returns in how many days the disk is full at this rate; false: never, or unknown.
func (g Growth) Full() (days int64, known bool) {
	if g.Days == 0 || g.PerDay <= 0 || g.Free < 0 {
		return 0, false
	}
	return g.Free / g.PerDay, true
}

// Note remembers the size of the database, once a day, and returns its growth. Replicas may do this at the same
// time: the first one that notes a day wins, or another one notes the same size.
func Note(ctx context.Context, store Store, now time.Time) (Growth, error) {
	g, samples, err := look(ctx, store, now)
	if err != nil {
		return g, err
	}
	today := dayOf(now)
	if slices.ContainsFunc(samples, func(s sample) bool { return s.Day == today }) {
		return g, nil
	}
	value, err := json.Marshal(append(samples, sample{today, g.Used}))
	if err != nil {
		return g, err
	}
	_, err = store.Remember(ctx, fact, value)
	return g, err
}

// Look returns the size and the growth of the database.
func Look(ctx context.Context, store Store, now time.Time) (Growth, error) {
	g, _, err := look(ctx, store, now)
	return g, err
}

// look returns the growth, and the samples of the last days that it was measured with.
func look(ctx context.Context, store Store, now time.Time) (g Growth, samples []sample, err error) {
	if g.Size, err = store.Size(ctx); err != nil {
		return g, nil, err
	}
	value, err := store.Remember(ctx, fact, nil)
	if err != nil {
		return g, nil, err
	}
	if len(value) > 0 {
		if err := json.Unmarshal(value, &samples); err != nil {
			return g, nil, fmt.Errorf("growth: the sizes of earlier days cannot be read: %w", err)
		}
	}
	today := dayOf(now)
	samples = slices.DeleteFunc(samples, func(s sample) bool { return s.Day > today || s.Day < today-days })
	if len(samples) > 0 && samples[0].Day < today {
		g.Days = int(today - samples[0].Day)
		g.PerDay = (g.Used - samples[0].Used) / int64(g.Days)
	}
	return g, samples, nil
}

func dayOf(t time.Time) int64 { return t.Unix() / int64(day/time.Second) }
