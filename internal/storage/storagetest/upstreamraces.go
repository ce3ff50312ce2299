package storagetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func raceDeparture(t *testing.T, e *env) {
	d := storage.Departure{Key: randomHash(), Sealed: []byte("x"), ExpiresAt: e.now.Add(time.Minute)}
	check(t, e.s.PutDeparture(e.ctx, d))
	var c tally
	compete(func(int) {
		_, err := e.s.TakeDeparture(e.ctx, d.Key, e.now)
		c.add(err, storage.ErrNotFound)
	})
	c.want(t, 1)
}

func raceClaim(t *testing.T, e *env) {
	a, _ := e.arrived(t)
	var c tally
	compete(func(int) {
		c.add(e.s.ClaimUpstream(e.ctx, a.Upstream.ID, 1, e.now, e.now.Add(time.Second)), storage.ErrSpent)
	})
	c.want(t, 1)
}

func raceSave(t *testing.T, e *env) {
	a, _ := e.arrived(t)
	var c tally
	compete(func(i int) {
		u := a.Upstream
		u.Version, u.Sealed = 1, fmt.Append(nil, i)
		c.add(e.s.SaveUpstream(e.ctx, u), storage.ErrSpent)
	})
	c.want(t, 1)
	u, err := e.s.Upstream(e.ctx, a.Upstream.ID)
	check(t, err)
	same(t, u.Version, int64(2))
}

func raceEndOnce(t *testing.T, e *env) {
	a, _ := e.arrived(t)
	var c tally
	compete(func(int) {
		_, err := e.s.EndUpstreamsOnce(e.ctx, []storage.UpstreamKey{{ID: a.Upstream.ID}}, "revoked",
			storage.Use{Purpose: "set", ID: "x", Expires: e.now.Add(time.Hour)}, e.now)
		c.add(err, storage.ErrSpent)
	})
	c.want(t, 1)
	e.wantUpstream(t, a.Upstream.ID, "revoked")
}

// raceArrive stores the arrival of one new user from many browsers at once.
func raceArrive(t *testing.T, e *env) {
	a := e.arrival()
	var c tally
	compete(func(int) {
		u, err := e.s.Arrive(e.ctx, e.again(a))
		if err == nil && u.ID != a.NewUser.ID {
			err = fmt.Errorf("arrived as %s", u.ID)
		}
		c.add(err)
	})
	c.want(t, racers)
	e.wantUsers(t, 1)
	all, err := e.s.Identities(e.ctx, a.NewUser.ID)
	check(t, err)
	live, err := e.s.ListUpstreams(e.ctx, "", 2*racers)
	check(t, err)
	if len(all) != 1 || len(live) != racers {
		t.Errorf("got %d identities and %d sessions, want 1 and %d", len(all), len(live), racers)
	}
}

// raceNames stores the arrivals of users with the same name.
func raceNames(t *testing.T, e *env) {
	var c tally
	compete(func(int) {
		a := e.arrival()
		a.NewUser.Name = "alice@acme"
		_, err := e.s.Arrive(e.ctx, a)
		c.add(err)
	})
	c.want(t, racers)
	e.wantUsers(t, racers)
}

func (e *env) wantUsers(t testing.TB, want int) {
	t.Helper()
	all, err := e.s.ListUsers(e.ctx, "", 2*racers)
	check(t, err)
	if len(all) != want {
		t.Errorf("got %d accounts, want %d", len(all), want)
	}
}

// raceLink lets many users ask for one account at a provider.
func raceLink(t *testing.T, e *env) {
	people := make([]person, racers)
	for i := range people {
		people[i] = e.person(t)
	}
	var c tally
	compete(func(i int) {
		a := e.link("acme", people[i].ID)
		a.Identity.Subject = "one"
		_, err := e.s.Arrive(e.ctx, a)
		c.add(err, storage.ErrExists)
	})
	c.want(t, 1)
}

// raceUnlink unlinks all accounts of a user without a password at once: one must stay.
func raceUnlink(t *testing.T, e *env) {
	const ways = 8
	a, u := e.tied(t)
	all := []storage.Identity{a.Identity}
	for range ways - 1 {
		b := e.link("other", u.ID)
		e.arrive(t, b)
		all = append(all, b.Identity)
	}
	var c tally
	compete(func(i int) {
		who := all[i%ways]
		_, err := e.s.Unlink(e.ctx, e.untie(u.ID, who))
		c.add(err, storage.ErrLast, storage.ErrNotFound)
	})
	c.want(t, ways-1)
	left, err := e.s.Identities(e.ctx, u.ID)
	check(t, err)
	if len(left) != 1 {
		t.Errorf("%d are left, want 1", len(left))
	}
}

// raceUnlinkSignIn unlinks a provider account while its holder signs in with it. It must stay
// unlinked.
func raceUnlinkSignIn(t *testing.T, e *env) {
	for range 5 {
		a, u := e.tied(t)
		a.NewUser = nil
		e.arrive(t, e.link("other", u.ID)) // another method to sign in
		var c tally
		compete(func(i int) {
			if i == racers/2 {
				_, err := e.s.Unlink(e.ctx, e.untie(u.ID, a.Identity))
				c.add(err)
				return
			}
			if _, err := e.s.Arrive(e.ctx, e.again(a)); err != nil {
				c.add(err, storage.ErrNotFound)
			}
		})
		c.want(t, 1)
		left, err := e.s.Identities(e.ctx, u.ID)
		check(t, err)
		same(t, len(left), 1)
	}
}

// raceEnd ends one session from many callers: one of them ends it.
func raceEnd(t *testing.T, e *env) {
	a, _ := e.arrived(t)
	var c tally
	compete(func(i int) {
		k := storage.UpstreamKey{ID: a.Upstream.ID}
		if i%2 == 0 {
			k = storage.UpstreamKey{Connector: "acme", Subject: a.Upstream.Subject}
		}
		all, err := e.s.EndUpstreams(e.ctx, k, "revoked", e.now)
		if err == nil && len(all) == 0 {
			err = storage.ErrSpent
		}
		c.add(err, storage.ErrSpent)
	})
	c.want(t, 1)
}

// raceEndApprove ends provider sessions while users approve in the browser sessions that depend on
// them, and begin others. In either order, no grant and no browser session may be live afterwards.
func raceEndApprove(t *testing.T, e *env) {
	const tries = 3
	arrived := make([]storage.Arrival, racers)
	users := make([]storage.User, racers)
	begun := make([][tries]storage.Hash, racers)
	for i := range arrived {
		arrived[i], users[i] = e.arrived(t)
	}
	var c tally
	var wg sync.WaitGroup
	compete(func(i int) {
		wg.Go(func() {
			_, err := e.s.EndUpstreams(e.ctx,
				storage.UpstreamKey{Connector: "acme", Subject: arrived[i].Identity.Subject}, "revoked", e.now)
			c.add(err)
		})
		for n := range tries {
			begun[i][n] = randomHash()
			err := e.s.PutSession(e.ctx,
				storage.Session{Hash: begun[i][n], UserID: users[i].ID, UpstreamID: arrived[i].Upstream.ID,
					CreatedAt: e.now, ExpiresAt: e.now.Add(time.Hour)},
				storage.SignInStart{})
			if err != nil {
				wantErr(t, err, storage.ErrNotFound)
			}
			a := e.approval(person{User: users[i], session: arrived[i].Session.Hash})
			if err := e.s.Approve(e.ctx, a); err != nil {
				wantErr(t, err, storage.ErrNotFound)
			}
		}
	})
	wg.Wait()
	c.want(t, racers)
	for i := range arrived {
		live, err := e.s.ListGrants(e.ctx, users[i].ID, "", "", 10)
		check(t, err)
		if len(live) > 0 {
			t.Errorf("%d grants of %s outlived the session at the provider", len(live), users[i].ID)
		}
		for _, h := range begun[i] {
			_, err := e.s.Visit(e.ctx, storage.VisitKey{Session: h, Now: e.now})
			wantErr(t, err, storage.ErrNotFound)
		}
		e.wantFarewell(t, arrived[i].Session.Hash, "acme", "revoked")
		e.wantUpstream(t, arrived[i].Upstream.ID, "revoked")
	}
}

// raceArriveCutOff stores arrivals while their accounts are disabled, deleted and their sessions
// ended. No session begun earlier may be live when an account is enabled again.
func raceArriveCutOff(t *testing.T, e *env) {
	first := make([]storage.Arrival, racers)
	for i := range first {
		first[i], _ = e.arrived(t)
	}
	var c tally
	var wg sync.WaitGroup
	const tries = 3
	later := make([][tries]storage.Arrival, racers)
	compete(func(i int) {
		id := first[i].NewUser.ID
		wg.Go(func() {
			if i%4 == 0 {
				c.add(e.s.DeleteUser(e.ctx, id, e.now))
				return
			}
			c.add(e.s.SetUserDisabled(e.ctx, id, true, e.now))
		})
		wg.Go(func() {
			_, err := e.s.EndUpstreams(e.ctx, storage.UpstreamKey{UserID: id}, "revoked", e.now)
			c.add(err)
		})
		for n := range tries {
			a := e.again(first[i])
			a.NewUser = nil
			later[i][n] = a
			_, err := e.s.Arrive(e.ctx, a)
			c.add(err, storage.ErrRevoked, storage.ErrNotFound)
		}
	})
	wg.Wait()
	c.won = 0 // the number of early arrivals does not matter
	c.want(t, 0)
	for i := range first {
		id := first[i].NewUser.ID
		if err := e.s.SetUserDisabled(e.ctx, id, false, e.now); err != nil && !errors.Is(err, storage.ErrNotFound) {
			t.Error(err)
		}
		_, err := e.s.UpstreamFor(e.ctx, id, "acme", "")
		wantErr(t, err, storage.ErrNotFound)
		for _, a := range later[i] {
			_, err = e.s.Visit(e.ctx, storage.VisitKey{Session: a.Session.Hash, Now: e.now})
			wantErr(t, err, storage.ErrNotFound)
		}
	}
}
