package jwks

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func has(key string) func([]string) bool {
	return func(keys []string) bool { return slices.Contains(keys, key) }
}

// TestSet: AS-205 RS-46, when a key set is fetched, and which keys callers get until then.
func TestSet(t *testing.T) {
	type step struct {
		pass    time.Duration
		publish string // the key of the set; "": the server is down
		key     string // that the caller needs
		want    error
		fetches int // in all, after those in the background
	}
	errDown := errors.New("down")
	for name, steps := range map[string][]step{
		"fresh keys": {
			{0, "a", "a", nil, 1}, {0, "b", "a", nil, 1}, {time.Minute - 1, "b", "a", nil, 1},
		},
		"an unknown key waits for the pause": {
			{0, "a", "a", nil, 1}, {10*time.Second - 1, "b", "b", ErrNoKey, 1}, {1, "b", "b", nil, 2},
			{0, "b", "c", ErrNoKey, 2}, {10 * time.Second, "b", "c", ErrNoKey, 3},
		},
		"without keys the pause is shorter": {
			{0, "", "a", errDown, 1}, {time.Second - 1, "a", "a", errDown, 1}, {1, "a", "a", nil, 2},
		},
		"old keys are fetched in the background": {
			{0, "a", "a", nil, 1}, {time.Minute, "b", "a", nil, 2}, {0, "b", "a", ErrNoKey, 2}, {0, "b", "b", nil, 2},
		},
		"a caller waits instead of using older keys": {
			{0, "a", "a", nil, 1}, {2 * time.Minute, "b", "a", ErrNoKey, 2},
		},
		"during an outage keys are used for an hour more": {
			{0, "a", "a", nil, 1}, {time.Hour, "", "a", nil, 2}, {0, "", "a", nil, 2}, {0, "", "b", errDown, 2},
			{time.Minute - 1, "", "a", nil, 3}, {1, "a", "a", errDown, 3}, {time.Second, "a", "a", nil, 4},
		},
		"after an outage old keys are fetched in the background": {
			{0, "a", "a", nil, 1}, {30 * time.Minute, "", "a", nil, 2}, {10 * time.Second, "b", "a", nil, 3},
			{0, "b", "b", nil, 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var published string
				fetches, now := 0, time.Now()
				set := &Set[string]{
					Fetch: func(context.Context) ([]string, time.Duration, error) {
						if fetches++; published == "" {
							return nil, 0, errDown
						}
						return []string{published}, time.Minute, nil
					},
					Now:   func() time.Time { return now },
					Pause: 10 * time.Second,
					Retry: time.Second,
					Grace: time.Minute,
					Stale: time.Hour,
				}
				for i, s := range steps {
					now = now.Add(s.pass)
					published = s.publish
					_, err := set.Find(t.Context(), has(s.key))
					synctest.Wait()
					if !errors.Is(err, s.want) || fetches != s.fetches {
						t.Errorf("step %d: got %v after %d fetches, want %+v", i+1, err, fetches, s)
					}
				}
			})
		})
	}
}

// TestOneFetch: AS-205, callers share a fetch, which does not end with one of them.
func TestOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fetches, found atomic.Int32
		answer, now := make(chan struct{}), time.Now()
		set := &Set[string]{
			Fetch: func(ctx context.Context) ([]string, time.Duration, error) {
				fetches.Add(1)
				<-answer
				return []string{"a"}, Forever, ctx.Err()
			},
			Now: func() time.Time { return now },
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := set.Find(ctx, has("a"))
			gone <- err
		}()
		synctest.Wait()
		for range 100 {
			go func() {
				if _, err := set.Find(t.Context(), has("a")); err == nil {
					found.Add(1)
				}
			}()
		}
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the first caller: got %v", err)
		}
		close(answer)
		synctest.Wait()
		now = now.Add(100 * 365 * 24 * time.Hour)
		if _, err := set.Find(t.Context(), has("a")); err != nil || found.Load() != 100 || fetches.Load() != 1 {
			t.Errorf("got %v, %d of 100 callers have the key, %d fetches", err, found.Load(), fetches.Load())
		}
		if <-set.start(t.Context(), "", 0); fetches.Load() != 1 {
			t.Error("a caller that saw no keys fetches them again after another's fetch")
		}
		if err := set.Refresh(t.Context()); err != nil || fetches.Load() != 2 {
			t.Errorf("Refresh: got %v, %d fetches", err, fetches.Load())
		}
	})
}

// TestUses: AS-205, uses share keys, but not allowances. Without a grace callers wait for keys that
// are no longer fresh, also after a failure: one of them may be withdrawn.
func TestUses(t *testing.T) {
	errDown, errRefused := errors.New("down"), errors.New("refused")
	now, key, down := time.Now(), "a", false
	set := &Set[string]{
		Fetch: func(context.Context) ([]string, time.Duration, error) {
			if down {
				return nil, 0, errDown
			}
			return []string{key}, time.Minute, nil
		},
		Now:   func() time.Time { return now },
		Stale: time.Hour,
		Pause: time.Second,
		Allow: func(use string) error {
			if use == "logout" {
				return errRefused
			}
			return nil
		},
	}
	for i, step := range []struct {
		pass       time.Duration
		publish    string
		down       bool
		use, needs string
		want       error
	}{
		{0, "a", false, "logout", "a", errRefused},
		{0, "a", false, "answer", "a", nil},
		{0, "a", false, "logout", "a", nil},
		{time.Second, "b", false, "logout", "b", errRefused},
		{0, "b", false, "answer", "b", nil},
		{0, "b", false, "logout", "a", ErrNoKey},
		{time.Minute, "c", true, "answer", "b", nil},
		{time.Second, "c", false, "logout", "b", nil},
		{0, "c", false, "answer", "b", ErrNoKey},
	} {
		now, key, down = now.Add(step.pass), step.publish, step.down
		if _, err := set.FindFor(t.Context(), step.use, has(step.needs)); !errors.Is(err, step.want) {
			t.Errorf("step %d: got %v, want %+v", i+1, err, step)
		}
	}
}
