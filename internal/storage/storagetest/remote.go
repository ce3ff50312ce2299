package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// remote stores the request of a browser.
func (e *env) remote(t testing.TB) storage.RemoteSignIn {
	t.Helper()
	r := storage.RemoteSignIn{
		Secret: randomHash(), Code: randomHash(), Agent: "Firefox on Linux", Address: "192.0.2.7",
		CreatedAt: e.now, ExpiresAt: e.now.Add(5 * time.Minute),
	}
	check(t, e.s.PutRemoteSignIn(e.ctx, r))
	return r
}

// begins returns the session that a browser is about to get.
func (e *env) begins(userID string) storage.Session {
	return storage.Session{
		Hash: randomHash(), UserID: userID, AuthTime: e.now, CreatedAt: e.now, ExpiresAt: e.now.Add(time.Hour),
		Methods: []string{"pwd", "device"}, ProvedAt: time.UnixMilli(1).UTC(), Agent: "Firefox on Linux",
		Address: "192.0.2.0/24", SeenAt: e.now,
	}
}

// approvedRemote returns an approved request of a browser.
func (e *env) approvedRemote(t testing.TB) (storage.RemoteSignIn, person) {
	t.Helper()
	p, r := e.person(t), e.remote(t)
	check(t, e.s.DecideRemoteSignIn(e.ctx, r.Secret, &p.session, e.now))
	return r, p
}

func remoteSignIns(t *testing.T, e *env) {
	t.Run("a request is found by its code while it waits, and by its secret until it expires", func(t *testing.T) {
		r := e.remote(t)
		byCode, err := e.s.RemoteSignInByCode(e.ctx, r.Code, e.now)
		check(t, err)
		same(t, byCode, r)
		for _, at := range []time.Time{e.now, r.ExpiresAt.Add(-time.Millisecond)} {
			got, err := e.s.RemoteSignIn(e.ctx, r.Secret, at)
			check(t, err)
			same(t, got, r)
		}
		_, err = e.s.RemoteSignIn(e.ctx, r.Secret, r.ExpiresAt)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.RemoteSignInByCode(e.ctx, r.Code, r.ExpiresAt)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.RemoteSignInByCode(e.ctx, r.Secret, e.now)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.RemoteSignIn(e.ctx, r.Code, e.now)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("a code that is taken is ErrExists", func(t *testing.T) {
		r := e.remote(t)
		r.Secret = randomHash()
		wantErr(t, e.s.PutRemoteSignIn(e.ctx, r), storage.ErrExists)
	})
	t.Run("PE-15 an approved request begins one session, which is as it was given", func(t *testing.T) {
		r, p := e.approvedRemote(t)
		got, err := e.s.RemoteSignIn(e.ctx, r.Secret, e.now)
		check(t, err)
		want := r
		want.DecidedAt, want.Approver = e.now, &p.session
		same(t, got, want)
		_, err = e.s.RemoteSignInByCode(e.ctx, r.Code, e.now)
		wantErr(t, err, storage.ErrNotFound)

		se := e.begins(p.ID)
		check(t, e.s.CollectRemoteSignIn(e.ctx, r.Secret, se, e.now))
		v, err := e.s.Visit(e.ctx, storage.VisitKey{Session: se.Hash, Now: e.now})
		check(t, err)
		same(t, v.Session, se)
		again := e.begins(p.ID)
		wantErr(t, e.s.CollectRemoteSignIn(e.ctx, r.Secret, again, e.now), storage.ErrSpent)
		e.noSession(t, again)
		got, err = e.s.RemoteSignIn(e.ctx, r.Secret, e.now)
		check(t, err)
		if !got.CollectedAt.Equal(e.now) {
			t.Errorf("collected at %v", got.CollectedAt)
		}
	})
	t.Run("a second decision is ErrSpent", func(t *testing.T) {
		r, p := e.approvedRemote(t)
		wantErr(t, e.s.DecideRemoteSignIn(e.ctx, r.Secret, nil, e.now), storage.ErrSpent)
		denied := e.remote(t)
		check(t, e.s.DecideRemoteSignIn(e.ctx, denied.Secret, nil, e.now))
		wantErr(t, e.s.DecideRemoteSignIn(e.ctx, denied.Secret, &p.session, e.now), storage.ErrSpent)
		e.uncollected(t, denied, e.begins(p.ID), e.now, storage.ErrNotFound)
	})
	t.Run("at its expiry a request is neither decided nor collected", func(t *testing.T) {
		r, p := e.approvedRemote(t)
		e.uncollected(t, r, e.begins(p.ID), r.ExpiresAt, storage.ErrExpired)
		open := e.remote(t)
		wantErr(t, e.s.DecideRemoteSignIn(e.ctx, open.Secret, &p.session, open.ExpiresAt), storage.ErrExpired)
		wantErr(t, e.s.DecideRemoteSignIn(e.ctx, randomHash(), nil, e.now), storage.ErrExpired)
		e.uncollected(t, storage.RemoteSignIn{Secret: randomHash()}, e.begins(p.ID), e.now, storage.ErrExpired)
	})
	t.Run("what waits for a decision is not collected, and what another person approved neither", func(t *testing.T) {
		r, p := e.approvedRemote(t)
		e.uncollected(t, e.remote(t), e.begins(p.ID), e.now, storage.ErrNotFound)
		e.uncollected(t, r, e.begins(e.person(t).ID), e.now, storage.ErrNotFound)
		check(t, e.s.CollectRemoteSignIn(e.ctx, r.Secret, e.begins(p.ID), e.now))
	})
	t.Run("a session that is not live approves nothing, and leaves the request undecided", func(t *testing.T) {
		r, p := e.remote(t), e.person(t)
		nobody := randomHash()
		wantErr(t, e.s.DecideRemoteSignIn(e.ctx, r.Secret, &nobody, e.now), storage.ErrNotFound)
		check(t, e.s.SetUserDisabled(e.ctx, p.ID, true, e.now))
		wantErr(t, e.s.DecideRemoteSignIn(e.ctx, r.Secret, &p.session, e.now), storage.ErrNotFound)
		_, err := e.s.RemoteSignInByCode(e.ctx, r.Code, e.now)
		check(t, err)
	})
	remoteEnds(t, e)
	t.Run("an expired request is swept", func(t *testing.T) {
		r := e.remote(t)
		for _, at := range []time.Time{r.ExpiresAt.Add(-time.Millisecond), r.ExpiresAt} {
			_, err := e.s.Sweep(e.ctx, storage.Retention{Now: at}, 100)
			check(t, err)
		}
		_, err := e.s.RemoteSignIn(e.ctx, r.Secret, e.now)
		wantErr(t, err, storage.ErrNotFound)
	})
}

// remoteEnds checks the events that end an approval before it is collected.
func remoteEnds(t *testing.T, e *env) {
	for _, tt := range []struct {
		name string
		end  func(p person) error
	}{
		{"the session that approved ends", func(p person) error { return e.s.EndSession(e.ctx, p.session, e.now) }},
		{"the account is disabled", func(p person) error { return e.s.SetUserDisabled(e.ctx, p.ID, true, e.now) }},
		{"the person stops everything", func(p person) error { return e.s.StopEverything(e.ctx, p.ID, e.now) }},
		{"the password is changed", func(p person) error { return e.s.SetPassword(e.ctx, p.ID, "new", true, e.now) }},
		{"the account is deleted", func(p person) error { return e.s.DeleteUser(e.ctx, p.ID, e.now) }},
	} {
		t.Run("PE-15 what was approved is not collected when "+tt.name, func(t *testing.T) {
			r, p := e.approvedRemote(t)
			check(t, tt.end(p))
			e.uncollected(t, r, e.begins(p.ID), e.now, storage.ErrNotFound)
		})
	}
}

func (e *env) uncollected(t *testing.T, r storage.RemoteSignIn, se storage.Session, at time.Time, want error) {
	t.Helper()
	wantErr(t, e.s.CollectRemoteSignIn(e.ctx, r.Secret, se, at), want)
	e.noSession(t, se)
}

func (e *env) noSession(t *testing.T, se storage.Session) {
	t.Helper()
	_, err := e.s.Visit(e.ctx, storage.VisitKey{Session: se.Hash, Now: e.now})
	wantErr(t, err, storage.ErrNotFound)
}

// raceDecideRemote approves and denies one request at the same time: one decision counts.
func raceDecideRemote(t *testing.T, e *env) {
	r, p := e.remote(t), e.person(t)
	var c tally
	compete(func(i int) {
		var by *storage.Hash
		if i%2 == 0 {
			by = &p.session
		}
		c.add(e.s.DecideRemoteSignIn(e.ctx, r.Secret, by, e.now), storage.ErrSpent)
	})
	c.want(t, 1)
}

// raceCollect collects one approved request many times: one session begins.
func raceCollect(t *testing.T, e *env) {
	r, p := e.approvedRemote(t)
	var c tally
	compete(func(int) {
		c.add(e.s.CollectRemoteSignIn(e.ctx, r.Secret, e.begins(p.ID), e.now), storage.ErrSpent)
	})
	c.want(t, 1)
	all, err := e.s.Sessions(e.ctx, p.ID, e.now, 100)
	check(t, err)
	if len(all) != 2 {
		t.Errorf("got %d sessions, want that of the person and one more", len(all))
	}
}

// raceCollectStop stops everything of a user while browsers collect their approved requests: no
// session is left.
func raceCollectStop(t *testing.T, e *env) {
	for range 20 {
		p := e.person(t)
		var requests []storage.RemoteSignIn
		for range racers {
			r := e.remote(t)
			check(t, e.s.DecideRemoteSignIn(e.ctx, r.Secret, &p.session, e.now))
			requests = append(requests, r)
		}
		var c tally
		compete(func(i int) {
			if i == racers/2 {
				c.add(e.s.StopEverything(e.ctx, p.ID, e.now))
				return
			}
			c.add(e.s.CollectRemoteSignIn(e.ctx, requests[i].Secret, e.begins(p.ID), e.now), storage.ErrNotFound)
		})
		c.want(t, c.won) // those that came before the end
		left, err := e.s.Sessions(e.ctx, p.ID, e.now, 100)
		check(t, err)
		if len(left) != 0 {
			t.Fatalf("%d sessions outlived the end of everything", len(left))
		}
	}
}
