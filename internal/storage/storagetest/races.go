package storagetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func raceRedeem(t *testing.T, e *env) {
	a := e.approved(t)
	var c tally
	compete(func(int) {
		_, err := e.s.RedeemCode(e.ctx, e.redemption(a))
		c.add(err, storage.ErrSpent, storage.ErrRevoked)
	})
	c.want(t, 1)
	e.wantLive(t, a, false)
}

func raceRotate(t *testing.T, e *env) {
	a, refresh := e.granted(t)
	var c tally
	compete(func(int) {
		r := e.rotation(a, refresh)
		r.Grace = 0
		_, err := e.s.RotateRefresh(e.ctx, r)
		c.add(err, storage.ErrSpent, storage.ErrRevoked)
	})
	c.want(t, 1)
	e.wantLive(t, a, false)
}

func raceReplay(t *testing.T, e *env) {
	a, refresh := e.granted(t)
	var c tally
	var mu sync.Mutex
	got := map[storage.PresentedRefresh]int{}
	first := 0
	compete(func(int) {
		r := e.rotation(a, refresh)
		out, err := e.s.RotateRefresh(e.ctx, r)
		c.add(err)
		mu.Lock()
		defer mu.Unlock()
		if out.Generation == 0 {
			r.Next.Hash = storage.Hash(secrets.Hash(string(out.Sealed))) // made from the sealed value by each racer
		}
		got[successor(r, out)]++
		if !out.Replayed {
			first++
		}
	})
	c.want(t, racers)
	if first != 1 {
		t.Errorf("got %d rotations that are not replays, want 1", first)
	}
	if len(got) != 1 {
		t.Errorf("got %d different successors, want 1", len(got))
	}
	e.wantLive(t, a, true)
}

func raceFirstAdmin(t *testing.T, e *env) {
	compete(func(int) { // opens the connections first, because this would delay racers
		_, err := e.s.SetupOpen(e.ctx)
		check(t, err)
	})
	h := randomHash()
	check(t, e.s.PutSetupToken(e.ctx, h, e.now.Add(time.Hour), e.now))
	var c tally
	compete(func(i int) {
		u := storage.User{
			ID: fmt.Sprint("usr_", i), Name: fmt.Sprint("name", i), Role: storage.Administrator, CreatedAt: e.now,
		}
		c.add(e.s.CreateFirstAdmin(e.ctx, h, u, e.now), storage.ErrExists, storage.ErrNotFound)
	})
	c.want(t, 1)
	all, err := e.s.ListUsers(e.ctx, "", racers)
	check(t, err)
	if len(all) != 1 {
		t.Errorf("got %d accounts, want 1", len(all))
	}
}

func raceSpend(t *testing.T, e *env) {
	var c tally
	compete(func(int) { c.add(e.s.Spend(e.ctx, "jti", "x", e.now.Add(time.Hour)), storage.ErrSpent) })
	c.want(t, 1)
}

// raceProof also checks this beside verbs that wait for the disk.
func raceProof(t *testing.T, e *env) {
	var c, other tally
	compete(func(i int) {
		if i%2 == 0 {
			other.add(e.s.Spend(e.ctx, "jti", secrets.ID(""), e.now.Add(time.Hour)))
		}
		c.add(e.s.SpendProof(e.ctx, "dpop", "x", e.now.Add(time.Hour)), storage.ErrSpent)
	})
	c.want(t, 1)
	other.want(t, racers/2)
}

func raceFailures(t *testing.T, e *env) {
	key := randomHash()
	var c tally
	compete(func(int) {
		_, err := e.s.RecordFailure(e.ctx, key, e.now, time.Minute)
		c.add(err)
	})
	c.want(t, racers)
	n, _, err := e.s.FailureCount(e.ctx, key, e.now, time.Minute)
	check(t, err)
	if n != racers {
		t.Errorf("counted %d of %d", n, racers)
	}
}

func raceTries(t *testing.T, e *env) {
	for seen := range 2 {
		var c tally
		key := randomHash()
		if seen > 0 {
			check(t, e.s.TakeTry(e.ctx, key, 0, e.now, time.Minute))
		}
		compete(func(int) { c.add(e.s.TakeTry(e.ctx, key, seen, e.now, time.Minute), storage.ErrChanged) })
		c.want(t, 1)
	}
}

// raceApprove lets one user approve one new client in many tabs. The consent keeps every scope, and
// each code works.
func raceApprove(t *testing.T, e *env) {
	p := e.person(t)
	cl := e.client()
	var c tally
	compete(func(i int) {
		a := e.approval(p)
		a.Client, a.Grant.ClientID = &cl, cl.ID
		a.Grant.Scopes = oauth.Scopes{"mcp", fmt.Sprint("scope", i)}
		err := e.s.Approve(e.ctx, a)
		if err == nil {
			_, err = e.s.RedeemCode(e.ctx, e.redemption(a))
		}
		c.add(err)
	})
	c.want(t, racers)
	v, err := e.s.Visit(e.ctx,
		storage.VisitKey{Session: p.session, ClientID: cl.ID, Resource: "https://mcp.example/mcp", Now: e.now})
	check(t, err)
	if len(v.Consented) != racers+1 {
		t.Errorf("got %d scopes, want %d", len(v.Consented), racers+1)
	}
}

// raceCutOff disables accounts while they approve. In either order, no grant may be live
// afterwards.
func raceCutOff(t *testing.T, e *env) {
	people := make([]person, racers)
	for i := range people {
		people[i] = e.person(t)
	}
	var c tally
	var wg sync.WaitGroup
	compete(func(i int) {
		p := people[i]
		wg.Go(func() {
			c.add(e.s.SetUserDisabled(e.ctx, p.ID, true, e.now))
			c.add(e.s.SetUserDisabled(e.ctx, p.ID, false, e.now))
		})
		for range 3 {
			a := e.approval(p)
			a.Grant.ID = secrets.ID("gr_")
			if err := e.s.Approve(e.ctx, a); err != nil {
				wantErr(t, err, storage.ErrNotFound)
			}
		}
	})
	wg.Wait()
	c.want(t, 2*racers)
	for _, p := range people {
		live, err := e.s.ListGrants(e.ctx, p.ID, "", "", 10)
		check(t, err)
		if len(live) > 0 {
			t.Errorf("%d grants of %s outlived the account's disabling", len(live), p.ID)
		}
	}
}

// tally counts outcomes of concurrent verbs.
type tally struct {
	mu  sync.Mutex
	won int
	odd []error
}

// add counts a success; an error must be one of allowed.
func (c *tally) add(err error, allowed ...error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.won++
		return
	}
	for _, a := range allowed {
		if errors.Is(err, a) {
			return
		}
	}
	c.odd = append(c.odd, err)
}

func (c *tally) want(t *testing.T, won int) {
	t.Helper()
	if c.won != won {
		t.Errorf("got %d winners of %d, want %d", c.won, racers, won)
	}
	for _, err := range c.odd {
		t.Errorf("unexpected error: %v", err)
	}
}

// compete runs f in racers goroutines that start together.
func compete(f func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i := range racers {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			f(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}
