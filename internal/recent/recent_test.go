package recent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

var errAway = errors.New("the store is away")

func TestValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, away := 0, errAway
		v := recent.Value[int]{Now: time.Now, Read: func(context.Context) (int, error) {
			reads++
			return reads, away
		}}
		want := func(value int, failure error) {
			t.Helper()
			if got, err := v.Load(t.Context()); !errors.Is(err, failure) || err == nil && got != value {
				t.Errorf("got %d, %v, want %d, %v", got, err, value, failure)
			}
		}
		want(0, errAway) // never read
		away = nil
		want(2, nil)
		want(2, nil) // cached
		wait.Advance(recent.TTL)
		want(3, nil)
		away = errAway
		wait.Advance(recent.TTL)
		want(3, nil) // the earlier value stays,
		away = nil
		want(3, nil) // and not every request tries to read
		wait.Advance(recent.TTL)
		want(5, nil)
	})
}

// TestStrict checks that access decisions never use a value read before the store became
// unavailable (RU-19).
func TestStrict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs bool
		var away error
		v := recent.Value[int]{Now: time.Now, Strict: true, Read: func(ctx context.Context) (int, error) {
			ctx, cancel := context.WithTimeout(ctx, recent.TTL) // as a store does
			defer cancel()
			if hangs {
				<-ctx.Done()
			}
			return 1, errors.Join(away, ctx.Err())
		}}
		want := func(failure bool) {
			t.Helper()
			if got, err := v.Load(t.Context()); (err != nil) != failure || err == nil && got != 1 {
				t.Errorf("got %d, %v", got, err)
			}
		}
		want(false)
		away = errAway
		want(false) // cached
		wait.Advance(recent.TTL)
		want(true)
		want(true)
		away, hangs = nil, true
		ended := make(chan error)
		load := func() {
			_, err := v.Load(t.Context())
			ended <- err
		}
		go load()
		synctest.Wait()
		want(false) // while another request reads
		if err := <-ended; err == nil {
			t.Error("a store that hangs has an answer")
		}
		go load()
		synctest.Wait()
		want(true)
		if err := <-ended; err == nil {
			t.Error("a store that hangs has an answer")
		}
	})
}

// TestCrowdAfterQuiet checks that an expired value is read once for all concurrent requests, and
// that none of them fails (OP-03). If the reading request is canceled, another takes over.
func TestCrowdAfterQuiet(t *testing.T) {
	for _, strict := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			reads := 0
			answer := make(chan int)
			v := recent.Value[int]{Now: time.Now, Strict: strict, Read: func(ctx context.Context) (int, error) {
				reads++
				select {
				case n := <-answer:
					return n, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			}}
			first, leave := context.WithCancel(t.Context())
			gone := make(chan error)
			go func() {
				_, err := v.Load(first)
				gone <- err
			}()
			synctest.Wait()
			got := make(chan int)
			crowd := func() {
				for range 8 {
					go func() {
						n, err := v.Load(t.Context())
						if err != nil {
							t.Error(err)
						}
						got <- n
					}()
				}
				synctest.Wait()
			}
			crowd()
			leave()
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Errorf("the caller that left: %v", err)
			}
			answer <- 1
			for range 8 {
				if n := <-got; n != 1 {
					t.Errorf("got %d", n)
				}
			}
			if reads != 2 {
				t.Errorf("%d reads before the first value", reads)
			}
			wait.Advance(3 * recent.TTL)
			crowd()
			answer <- 2
			for range 8 {
				if n := <-got; strict && n != 2 {
					t.Errorf("strict: got %d", n)
				}
			}
			if reads != 3 {
				t.Errorf("%d reads after a quiet time", reads)
			}
		})
	}
}

// TestOperatorsReading checks that a read that other requests wait for does not use the connections
// for administrators (OP-08).
func TestOperatorsReading(t *testing.T) {
	v := recent.Value[bool]{Now: time.Now, Read: func(ctx context.Context) (bool, error) {
		return storage.IsAside(ctx), nil
	}}
	if aside, err := v.Load(storage.Aside(t.Context())); aside || err != nil {
		t.Errorf("got %t, %v", aside, err)
	}
}

// TestForget checks that a forgotten value is read again, even if a read was already running.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan chan int)
		v := recent.Value[int]{Now: time.Now, Read: func(context.Context) (int, error) {
			c := make(chan int)
			begun <- c
			return <-c, nil
		}}
		got := make(chan int)
		load := func() {
			n, err := v.Load(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- n
		}
		go load()
		old := <-begun
		v.Forget()
		go load()
		fresh := <-begun
		fresh <- 2
		old <- 1
		<-got
		<-got
		if n, err := v.Load(t.Context()); n != 2 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	})
}

func TestStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := false
		v := recent.Value[int]{Now: time.Now, Read: func(ctx context.Context) (int, error) {
			if hangs {
				<-ctx.Done()
			}
			return 1, ctx.Err()
		}}
		if _, err := v.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		hangs = true
		wait.Advance(recent.TTL)
		first := make(chan time.Duration)
		load := func() time.Duration {
			began := time.Now()
			if got, err := v.Load(t.Context()); got != 1 || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
			return time.Since(began)
		}
		go func() { first <- load() }()
		synctest.Wait()
		for range 32 {
			if took := load(); took != 0 {
				t.Errorf("a request waited %s beside the reading request", took)
			}
		}
		if took := <-first; took != recent.TTL {
			t.Errorf("the request that reads waited for %s", took)
		}
	})
}
