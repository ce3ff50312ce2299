package cutting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

// slow is a store that needs a second for each 1,000 grants of a batch, and that completes batches only
// up to a size, from the second batch on up to then.
type slow struct {
	storage.Store
	size, then int
	asked      []int
	now        time.Time
}

func (s *slow) FollowCut(ctx context.Context, id string, now time.Time, limit int) (storage.Cut, error) {
	s.asked = append(s.asked, limit)
	s.now = s.now.Add(time.Duration(limit) * time.Millisecond)
	if limit > s.size {
		return storage.Cut{}, fmt.Errorf("follow cut: %w", context.DeadlineExceeded)
	}
	s.size = s.then
	return s.Store.FollowCut(ctx, id, now, limit)
}

// cutAll cuts every grant of an empty store.
func cutAll(t *testing.T, s storage.Store) storage.Cut {
	t.Helper()
	c, err := s.CutGrants(t.Context(), storage.Selection{All: true}, storage.ByOperator, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFollowersTakeTurns checks that only one of two followers works, that the other does not wait,
// and that it takes over when the first stops (OP-04).
func TestFollowersTakeTurns(t *testing.T) {
	s := installation.Store(t)
	told := 0
	record := audit.New(slog.New(slog.DiscardHandler), func(string, []slog.Attr) { told++ })
	one := Follower{Store: s, Holder: "one", Now: time.Now, Audit: record}
	other := one
	other.Holder = "other"
	first := cutAll(t, s)
	if held, err := one.Follow(t.Context(), first.ID, nil); !held || err != nil {
		t.Fatalf("got %t, %v", held, err)
	}
	second := cutAll(t, s)
	if held, err := other.Follow(t.Context(), second.ID, nil); held || err != nil {
		t.Errorf("beside one that is at it: got %t, %v", held, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := one.Release(ended); err != nil {
		t.Fatal(err)
	}
	var seen storage.Cut
	if held, err := other.Follow(t.Context(), second.ID, func(c storage.Cut) { seen = c }); !held || err != nil {
		t.Errorf("after it has given up: got %t, %v", held, err)
	}
	if !seen.Done || told != 2 {
		t.Errorf("heard of %+v, and %d events were recorded", seen, told)
	}
	if _, err := other.Follow(t.Context(), "cut_none", nil); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a cut that is gone: %v", err)
	}
}

// TestSlowDatabase checks that a batch that takes too long is repeated with half its size, but not
// forever, and that batches grow again when they are quick (OP-04).
func TestSlowDatabase(t *testing.T) {
	for _, c := range []struct {
		size, then int
		want       []int
		fail       bool
	}{
		{1300, 1300, []int{5000, 2500, 1250, 1250}, false},
		{400, 5000, []int{5000, 2500, 1250, 625, 312, 624}, false},
		{10, 10, []int{5000, 2500, 1250, 625, 312, 156, 100}, true},
	} {
		s := &slow{Store: installation.Store(t), size: c.size, then: c.then, now: time.Now()}
		cut := cutAll(t, s)
		f := Follower{Store: s, Holder: "one", Now: func() time.Time { return s.now }}
		_, err := f.Follow(t.Context(), cut.ID, nil)
		if (err != nil) != c.fail || !slices.Equal(s.asked, c.want) {
			t.Errorf("batches up to %d, then %d: got %v for %v", c.size, c.then, err, s.asked)
		}
	}
}
