package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// names returns n names that begin with prefix.
func names(prefix string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(prefix, i))
	}
	return out
}

// TestM1WhatRunsLateEndsNoGrant (operations M1): PostgreSQL hangs for longer than a verb and the
// grace, and then runs the statements in its sockets. The clients, which got status 503, try again
// and all continue.
func TestM1WhatRunsLateEndsNoGrant(t *testing.T) {
	const n, grace, hang = 12, 10 * time.Second, 12 * time.Second
	ctx, server := t.Context(), pgtest.StartOwn(t)
	defer server.Resume()
	// The server hangs for as long as our clock is behind.
	var clock later
	// In this mode a statement is sent whole, like all prepared ones.
	s := open(t, server.URL()+"&default_query_exec_mode=exec", Options{Now: clock.now})
	defer s.Close()
	ids := names("g", n)
	tokens := grants(t, s, ids...)
	var verbs []func() error
	for i := range ids {
		verbs = append(verbs, func() error {
			_, err := s.RotateRefresh(ctx,
				storage.RotateRefresh{Token: tokens[i], ClientID: "c", Now: clock.now(), Grace: grace,
					Next: storage.Refresh{ExpiresAt: time.Now().Add(time.Hour)}})
			return err
		})
	}
	for _, id := range names("code", n) {
		approve(t, s, id)
		verbs = append(verbs, func() error {
			_, err := s.RedeemCode(ctx,
				storage.RedeemCode{Hash: hashOf("code " + id), GrantID: id, ClientID: "c", Now: clock.now(),
					Refresh: &storage.Refresh{Secret: hashOf("secret " + id), ExpiresAt: time.Now().Add(time.Hour)}})
			return err
		})
	}
	warm(t, s, len(verbs))
	var warmed string
	if err := s.pool.QueryRow(ctx, "SELECT clock_timestamp()::text").Scan(&warmed); err != nil {
		t.Fatal(err)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	clock.add(-hang)
	s.timeout = time.Second
	lost := 0
	for _, err := range together(verbs) {
		if errors.Is(err, context.DeadlineExceeded) {
			lost++
		}
	}
	if lost != len(verbs) {
		t.Fatalf("%d of %d verbs were left open", lost, len(verbs))
	}
	clock.add(hang)
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	// The statements in the sockets have run once the abandoned connections are gone.
	if err := server.WaitFor(`SELECT NOT EXISTS (SELECT 1 FROM pg_stat_activity
		WHERE application_name = 'mcp-authd' AND backend_start < '` + warmed + `')`); err != nil {
		t.Fatal(err)
	}
	s.timeout = time.Minute
	warm(t, s, len(verbs)) // because the grace is shorter than opening many connections may take
	for i, err := range together(verbs) {
		if err != nil {
			t.Errorf("client %d tries again: %v", i, err)
		}
	}
}

// warm opens n connections and uses each.
func warm(t *testing.T, s *Store, n int) {
	t.Helper()
	var verbs []func() error
	for i := range n {
		verbs = append(verbs,
			func() error { _, err := s.pool.Exec(t.Context(), "SELECT pg_sleep(0.2)", i); return err })
	}
	_ = together(verbs)
}

func together(verbs []func() error) []error {
	errs := make([]error, len(verbs))
	var wg sync.WaitGroup
	for i, verb := range verbs {
		wg.Go(func() { errs[i] = verb() })
	}
	wg.Wait()
	return errs
}

// TestM2ReplicasWithDifferentClocks (operations M2): parallel refreshes by two replicas, one of
// which is 65 seconds ahead, are not reuse.
func TestM2ReplicasWithDifferentClocks(t *testing.T) {
	ctx, url := t.Context(), pgtest.Start(t).Database(t)
	ahead := func() time.Time { return time.Now().Add(65 * time.Second) }
	stores := []*Store{open(t, url, Options{}), open(t, url, Options{Now: ahead})}
	defer stores[0].Close()
	defer stores[1].Close()
	if right, wrong := stores[0].Skew(), stores[1].Skew(); right.Abs() > sameClock ||
		(wrong+65*time.Second).Abs() > 2*time.Second {
		t.Errorf("the clocks differ from the database's by %s and %s, want about 0s and -65s", right, wrong)
	}
	own := []func() time.Time{time.Now, ahead}
	for i, token := range grants(t, stores[0], names("g", 5)...) {
		var verbs []func() error
		for n := range 6 {
			s, now := stores[n%2], own[n%2]
			verbs = append(verbs, func() error {
				now := s.Correct(now())
				_, err := s.RotateRefresh(ctx,
					storage.RotateRefresh{Token: token, ClientID: "c", Now: now, Grace: time.Minute,
						Next: storage.Refresh{ExpiresAt: now.Add(time.Hour)}})
				return err
			})
		}
		if err := errors.Join(together(verbs)...); err != nil {
			t.Errorf("grant %d: %v", i, err)
		}
	}
}

// TestM2ALeapOfOurClock: decisions follow how the clock runs, regardless of how it is set.
func TestM2ALeapOfOurClock(t *testing.T) {
	at := time.Now()
	c := &dbClock{own: func() time.Time { return at }}
	c.note(at, at.Add(10*time.Millisecond), at.Add(30*time.Second))
	for _, v := range []struct{ passed, want time.Duration }{{0, 30 * time.Second}, {time.Minute, 90 * time.Second}} {
		if got := c.correct(at.Add(v.passed)).Sub(at.Round(0)); (got - v.want).Abs() > 10*time.Millisecond {
			t.Errorf("%s later it is %s, want %s", v.passed, got, v.want)
		}
	}
	c.note(at, at.Add(time.Millisecond), at.Add(30*time.Second+50*time.Millisecond))
	if got := c.ahead; (got - 30*time.Second).Abs() > 10*time.Millisecond {
		t.Errorf("a measurement that agrees has moved it to %s", got)
	}
	if c.due() {
		t.Error("it was measured just now")
	}
	at = at.Add(measureEvery + time.Second)
	if !c.due() || c.due() {
		t.Error("it is not due once after its time")
	}
}
