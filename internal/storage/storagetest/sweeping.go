package storagetest

import (
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func leases(t *testing.T, e *env) {
	lease := func(task, holder string, after, until time.Duration, want bool) {
		t.Helper()
		got, err := e.s.Lease(e.ctx, task, holder, e.now.Add(after), e.now.Add(until))
		check(t, err)
		if got != want {
			t.Errorf("%s for %s at %v until %v: got %v, want %v", task, holder, after, until, got, want)
		}
	}
	lease("sweep", "a", 0, time.Minute, true)
	lease("sweep", "b", time.Second, time.Hour, false)
	lease("other", "b", time.Second, time.Hour, true)
	lease("sweep", "a", time.Second, 2*time.Minute, true)
	lease("sweep", "b", 2*time.Minute-time.Millisecond, time.Hour, false)
	lease("sweep", "b", 2*time.Minute, time.Hour, true)
	lease("sweep", "a", 3*time.Minute, time.Hour, false)
	lease("sweep", "b", 3*time.Minute, 3*time.Minute, true) // given up
	lease("sweep", "a", 3*time.Minute, time.Hour, true)
}

func raceLease(t *testing.T, e *env) {
	var c tally
	compete(func(i int) {
		held, err := e.s.Lease(e.ctx, "sweep", string(rune('A'+i)), e.now, e.now.Add(time.Minute))
		if err == nil && !held {
			err = storage.ErrSpent
		}
		c.add(err, storage.ErrSpent)
	})
	c.want(t, 1)
}

// sweeping checks the order of removing grants, Operations H2.
func sweeping(t *testing.T, e *env) {
	// The last grant stored is the first to expire.
	var grants []storage.Approval
	for i := range 4 {
		a := e.approval(e.person(t))
		a.Grant.ExpiresAt = e.now.Add(time.Duration(10-i) * time.Minute)
		check(t, e.s.Approve(e.ctx, a))
		token := e.redeem(t, e.redemption(a))
		for range 5 {
			r := e.rotation(a, token)
			token = successor(r, e.rotate(t, r))
		}
		grants = append(grants, a)
	}
	live, _ := e.granted(t)
	slices.Reverse(grants)
	known := func() (out []string) {
		all, err := e.s.ListGrants(e.ctx, "", "", "", 100)
		check(t, err)
		for _, g := range all {
			out = append(out, g.ID)
		}
		return out
	}
	end := storage.Retention{Now: e.now.Add(9 * time.Minute)} // after the end of three of the four
	for rounds, before := 0, len(known()); ; rounds++ {
		n, err := e.s.Sweep(e.ctx, end, 2)
		check(t, err)
		if n == 0 {
			break
		}
		if rounds > 50 {
			t.Fatal("it never ends")
		}
		left := known()
		for i, a := range grants {
			if slices.Contains(left, a.Grant.ID) && i < 5-len(left) {
				t.Errorf("%d grants are left, and the one that ended at position %d is among them", len(left), i)
			}
		}
		if before-len(left) > 2 {
			t.Errorf("%d grants in a sweep of at most 2", before-len(left))
		}
		before = len(left)
	}
	if left := known(); len(left) != 2 || !slices.Contains(left, live.Grant.ID) ||
		!slices.Contains(left, grants[3].Grant.ID) {
		t.Errorf("left are %v, want those that have not ended: %s, %s", left, live.Grant.ID, grants[3].Grant.ID)
	}
	e.wantLive(t, live, true)
}

// raceSweep sweeps from several replicas while clients refresh. It removes ended grants, and no
// live ones.
func raceSweep(t *testing.T, e *env) {
	var live []storage.Approval
	tokens := make([]storage.PresentedRefresh, racers)
	for i := range racers {
		a := e.approval(e.person(t))
		a.Grant.ExpiresAt = e.now.Add(time.Minute)
		check(t, e.s.Approve(e.ctx, a))
		_, err := e.s.RedeemCode(e.ctx, e.redemption(a))
		check(t, err)
		a, tokens[i] = e.granted(t)
		live = append(live, a)
	}
	e.now = e.now.Add(2 * time.Minute)
	var c tally
	compete(func(i int) {
		if i < 4 {
			for {
				n, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now, Rotated: e.now}, 3)
				if c.add(err); n == 0 {
					break
				}
			}
		}
		r := e.rotation(live[i], tokens[i])
		out, err := e.s.RotateRefresh(e.ctx, r)
		tokens[i] = successor(r, out)
		c.add(err)
	})
	if len(c.odd) > 0 {
		t.Errorf("errors: %v", c.odd)
	}
	_, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now}, 100) // removes grants that were locked then
	check(t, err)
	left, err := e.s.ListGrants(e.ctx, "", "", "", 1000)
	check(t, err)
	if len(left) != racers {
		t.Errorf("%d grants are left, want %d", len(left), racers)
	}
	for i, a := range live {
		e.wantLive(t, a, true)
		e.rotate(t, e.rotation(a, tokens[i]))
	}
}
