package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// handbacks checks that tokens to be revoked at their provider are kept until a server has done so.
func handbacks(t *testing.T, e *env) {
	take := func(t *testing.T) map[string]storage.Upstream {
		t.Helper()
		out := map[string]storage.Upstream{}
		for {
			rows, err := e.s.TakeHandbacks(e.ctx, 2)
			check(t, err)
			for _, u := range rows {
				out[u.ID] = u
			}
			if len(rows) == 0 {
				return out
			}
		}
	}
	want := func(t *testing.T, got map[string]storage.Upstream, a storage.Arrival, userID string) {
		t.Helper()
		same(t, got[a.Upstream.ID], storage.Upstream{
			ID: a.Upstream.ID, Connector: a.Identity.Connector, Subject: a.Identity.Subject, UserID: userID,
			Sealed: []byte("sealed"),
		})
	}
	take(t)
	t.Run("PL8 RFC 7009 1 of a disabled and of a deleted user, all of them, once", func(t *testing.T) {
		a, u := e.arrived(t)
		b := e.again(a)
		e.arrive(t, b)
		_, others := e.arrived(t)
		check(t, e.s.SetUserDisabled(e.ctx, u.ID, true, e.now))
		deleted, v := e.arrived(t)
		check(t, e.s.DeleteUser(e.ctx, v.ID, e.now))
		got := take(t)
		want(t, got, a, u.ID)
		want(t, got, b, u.ID)
		want(t, got, deleted, v.ID)
		if len(got) != 3 {
			t.Errorf("got %d, of %s too?", len(got), others.ID)
		}
		check(t, e.s.DeleteUser(e.ctx, u.ID, e.now)) // no tokens are left to revoke
		if again := take(t); len(again) != 0 {
			t.Errorf("got %v", again)
		}
	})
	t.Run("PL8 of a browser that signs out, if nothing else rests on it", func(t *testing.T) {
		a, u := e.arrived(t)
		check(t, e.s.EndSession(e.ctx, a.Session.Hash, e.now))
		e.wantUpstream(t, a.Upstream.ID, "signed-out")
		want(t, take(t), a, u.ID)
		b := e.again(a)
		e.arrive(t, b)
		grant, _ := e.grantedBy(t, u, b.Session.Hash)
		check(t, e.s.EndSession(e.ctx, b.Session.Hash, e.now))
		e.wantUpstream(t, b.Upstream.ID, "")
		e.wantLive(t, grant, true)
		if got := take(t); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("PL8 of what a sweep takes because nothing rests on it", func(t *testing.T) {
		a := e.arrival()
		a.Session.ExpiresAt = e.now.Add(time.Hour)
		u := e.arrive(t, a)
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(24 * time.Hour)}, 100)
		check(t, err)
		_, err = e.s.Upstream(e.ctx, a.Upstream.ID)
		wantErr(t, err, storage.ErrNotFound)
		want(t, take(t), a, u.ID)
	})
	t.Run("PL8 not of what the provider or the person ended, which the caller gets", func(t *testing.T) {
		a, u := e.arrived(t)
		e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "revoked")
		check(t, e.s.SetUserDisabled(e.ctx, u.ID, true, e.now))
		if got := take(t); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("PL8 they are not kept for longer than a day", func(t *testing.T) {
		a, u := e.arrived(t)
		check(t, e.s.SetUserDisabled(e.ctx, u.ID, true, e.now))
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(24 * time.Hour)}, 100)
		check(t, err)
		if _, kept := take(t)[a.Upstream.ID]; kept {
			t.Error("it is kept")
		}
	})
}
