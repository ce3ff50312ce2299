package storagetest

import (
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func departures(t *testing.T, e *env) {
	put := func(t *testing.T) storage.Departure {
		t.Helper()
		d := storage.Departure{Key: randomHash(), Sealed: []byte("where to"), ExpiresAt: e.now.Add(10 * time.Minute)}
		check(t, e.s.PutDeparture(e.ctx, d))
		return d
	}
	t.Run("AS-220 what was put is taken, once", func(t *testing.T) {
		d := put(t)
		got, err := e.s.TakeDeparture(e.ctx, d.Key, d.ExpiresAt.Add(-time.Millisecond))
		check(t, err)
		same(t, got, d)
		_, err = e.s.TakeDeparture(e.ctx, d.Key, e.now)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("AS-220 an unknown key is ErrNotFound, and takes nothing else", func(t *testing.T) {
		d := put(t)
		_, err := e.s.TakeDeparture(e.ctx, randomHash(), e.now)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.TakeDeparture(e.ctx, d.Key, e.now)
		check(t, err)
	})
	t.Run("AS-220 at its expiry it is ErrExpired, and gone", func(t *testing.T) {
		d := put(t)
		got, err := e.s.TakeDeparture(e.ctx, d.Key, d.ExpiresAt)
		wantErr(t, err, storage.ErrExpired)
		same(t, got, d) // so that the caller can revoke tokens in it
		_, err = e.s.TakeDeparture(e.ctx, d.Key, e.now)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("AS-220 the abandoned ones are handed out, each once, and those under way are not", func(t *testing.T) {
		d, left := put(t), put(t)
		left.ExpiresAt = d.ExpiresAt.Add(time.Minute)
		_, err := e.s.TakeDeparture(e.ctx, left.Key, e.now)
		check(t, err)
		check(t, e.s.PutDeparture(e.ctx, left))
		early, err := e.s.AbandonedDepartures(e.ctx, d.ExpiresAt.Add(-time.Millisecond), 100)
		check(t, err)
		none, err := e.s.AbandonedDepartures(e.ctx, d.ExpiresAt, 0)
		check(t, err)
		if len(early)+len(none) != 0 {
			t.Errorf("got %v %v", early, none)
		}
		got, err := e.s.AbandonedDepartures(e.ctx, d.ExpiresAt, 100)
		check(t, err)
		same(t, got, []storage.Departure{d})
		_, err = e.s.TakeDeparture(e.ctx, d.Key, e.now)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.TakeDeparture(e.ctx, left.Key, e.now)
		check(t, err)
	})
	t.Run("a taken key is ErrExists, and what is there stays", func(t *testing.T) {
		d := put(t)
		other := d
		other.Sealed = []byte("elsewhere")
		wantErr(t, e.s.PutDeparture(e.ctx, other), storage.ErrExists)
		got, err := e.s.TakeDeparture(e.ctx, d.Key, e.now)
		check(t, err)
		same(t, got, d)
	})
}

func claims(t *testing.T, e *env) {
	until := e.now.Add(30 * time.Second)
	claim := func(id string, version int64, now time.Time) error {
		return e.s.ClaimUpstream(e.ctx, id, version, now, now.Add(30*time.Second))
	}
	t.Run("AS-219 who holds it holds it alone, until the end of the claim", func(t *testing.T) {
		a, _ := e.arrived(t)
		check(t, claim(a.Upstream.ID, 1, e.now))
		wantErr(t, claim(a.Upstream.ID, 1, e.now), storage.ErrSpent)
		wantErr(t, claim(a.Upstream.ID, 1, until.Add(-time.Millisecond)), storage.ErrSpent)
		check(t, claim(a.Upstream.ID, 1, until))
		got, err := e.s.Upstream(e.ctx, a.Upstream.ID)
		check(t, err)
		same(t, got.Version, int64(1))
	})
	t.Run("another version is ErrSpent, an unknown session ErrNotFound, an ended one ErrRevoked", func(t *testing.T) {
		a, _ := e.arrived(t)
		wantErr(t, claim(a.Upstream.ID, 2, e.now), storage.ErrSpent)
		wantErr(t, claim("ups_none", 1, e.now), storage.ErrNotFound)
		e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "revoked")
		wantErr(t, claim(a.Upstream.ID, 1, e.now), storage.ErrRevoked)
	})
	t.Run("AS-219 what is saved is there, with the next version and free", func(t *testing.T) {
		a, u := e.arrived(t)
		check(t, claim(a.Upstream.ID, 1, e.now))
		next := a.Upstream
		next.Version, next.Sealed, next.Scopes, next.SessionID = 1, []byte("new"), oauth.Scopes{"x"}, "new sid"
		next.CheckedAt, next.DueAt = e.now.Add(time.Minute), e.now.Add(time.Hour)
		saved := next
		saved.Connector, saved.UserID, saved.Linked = "is", "not", true // saved
		check(t, e.s.SaveUpstream(e.ctx, saved))
		next.Version, next.UserID = 2, u.ID
		got, err := e.s.Upstream(e.ctx, next.ID)
		check(t, err)
		same(t, got, next)
		check(t, claim(next.ID, 2, e.now))
	})
	t.Run("who comes late to save is ErrSpent, and changes nothing", func(t *testing.T) {
		a, u := e.arrived(t)
		next := a.Upstream
		next.Version, next.UserID = 1, u.ID
		check(t, e.s.SaveUpstream(e.ctx, next))
		late := next
		late.Sealed = []byte("late")
		wantErr(t, e.s.SaveUpstream(e.ctx, late), storage.ErrSpent)
		next.Version = 2
		got, err := e.s.Upstream(e.ctx, next.ID)
		check(t, err)
		same(t, got, next)
	})
	t.Run("AS-219 nothing is saved into an ended session", func(t *testing.T) {
		a, _ := e.arrived(t)
		e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "revoked")
		u := a.Upstream
		u.Version = 1
		wantErr(t, e.s.SaveUpstream(e.ctx, u), storage.ErrRevoked)
		e.wantUpstream(t, u.ID, "revoked")
		u.ID = "ups_none"
		wantErr(t, e.s.SaveUpstream(e.ctx, u), storage.ErrNotFound)
	})
}

func dueUpstreams(t *testing.T, e *env) {
	put := func(due time.Duration) string {
		a := e.arrival()
		a.Upstream.DueAt = e.now.Add(due)
		e.arrive(t, a)
		return a.Upstream.ID
	}
	never := e.arrival()
	never.Upstream.DueAt = time.Time{}
	e.arrive(t, never)
	second, first, held, ended := put(-time.Second), put(-time.Minute), put(-time.Hour), put(-time.Hour)
	put(time.Millisecond)
	now := put(0)
	check(t, e.s.ClaimUpstream(e.ctx, held, 1, e.now, e.now.Add(time.Second)))
	e.end(t, storage.UpstreamKey{ID: ended}, "revoked")

	want := func(at time.Duration, limit int, want ...string) {
		t.Helper()
		all, err := e.s.DueUpstreams(e.ctx, e.now.Add(at), limit)
		check(t, err)
		var got []string
		for _, u := range all {
			got = append(got, u.ID)
			if len(u.Sealed) == 0 {
				t.Errorf("%s came without its tokens", u.ID)
			}
		}
		same(t, got, want)
	}
	t.Run("the longest due first, bounded, none that is held, ended or never due", func(t *testing.T) {
		want(0, 10, first, second, now)
		want(0, 2, first, second)
		want(0, 0)
	})
	t.Run("a claim that has run out holds nothing", func(t *testing.T) { want(time.Second, 1, held) })
}

func preferences(t *testing.T, e *env) {
	a, u := e.arrived(t)
	b := e.again(a)
	b.Upstream.CreatedAt = e.now.Add(time.Minute)
	e.arrive(t, b)
	c := e.again(a)
	c.Upstream.CreatedAt = e.now.Add(-time.Minute)
	c.Upstream.Linked, c.Session = true, nil
	other, _ := e.arrived(t)
	want := func(t *testing.T, prefer, want string) {
		t.Helper()
		got, err := e.s.UpstreamFor(e.ctx, u.ID, "acme", prefer)
		check(t, err)
		same(t, got.ID, want)
	}
	t.Run("the newest, or the preferred one of the user", func(t *testing.T) {
		want(t, "", b.Upstream.ID)
		want(t, a.Upstream.ID, a.Upstream.ID)
		want(t, other.Upstream.ID, b.Upstream.ID)
	})
	t.Run("a linked one before the newest", func(t *testing.T) {
		e.arrive(t, c)
		want(t, "", c.Upstream.ID)
		want(t, b.Upstream.ID, b.Upstream.ID)
	})
	t.Run("none that has ended, is another's or at another provider", func(t *testing.T) {
		e.end(t, storage.UpstreamKey{ID: c.Upstream.ID}, "revoked")
		want(t, c.Upstream.ID, b.Upstream.ID)
		_, err := e.s.UpstreamFor(e.ctx, u.ID, "other", "")
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.UpstreamFor(e.ctx, "usr_none", "acme", a.Upstream.ID)
		wantErr(t, err, storage.ErrNotFound)
	})
}

func latestUpstreams(t *testing.T, e *env) {
	a, u := e.arrived(t)
	b := e.again(a)
	b.Upstream.CreatedAt = e.now.Add(time.Minute)
	e.arrive(t, b)
	c := e.link("acme", u.ID)
	e.arrive(t, c)
	e.arrive(t, e.link("other", u.ID))
	e.arrived(t)
	want := func(t *testing.T, want ...string) {
		t.Helper()
		got, err := e.s.LatestUpstreams(e.ctx, u.ID, "acme")
		check(t, err)
		var ids []string
		for _, up := range got {
			ids = append(ids, up.ID)
		}
		slices.Sort(ids) // subjects are random
		slices.Sort(want)
		same(t, ids, want)
	}
	t.Run("RU-19 the newest of each subject", func(t *testing.T) { want(t, b.Upstream.ID, c.Upstream.ID) })
	t.Run("RU-19 the one before when the newest has ended", func(t *testing.T) {
		e.end(t, storage.UpstreamKey{ID: b.Upstream.ID}, "revoked")
		want(t, a.Upstream.ID, c.Upstream.ID)
		e.end(t, storage.UpstreamKey{UserID: u.ID}, "revoked")
		want(t)
	})
}

func upstreamCustody(t *testing.T, e *env) {
	var ids []string
	for _, id := range []string{"ups_1", "ups_2", "ups_3", "ups_4"} {
		a := e.arrival()
		a.Upstream.ID = id
		e.arrive(t, a)
		ids = append(ids, id)
	}
	e.end(t, storage.UpstreamKey{ID: "ups_2"}, "revoked")
	t.Run("lists the live ones by id, page by page", func(t *testing.T) {
		var got []string
		for after := ""; ; after = got[len(got)-1] {
			page, err := e.s.ListUpstreams(e.ctx, after, 2)
			check(t, err)
			if len(page) == 0 {
				break
			}
			for _, u := range page {
				got = append(got, u.ID)
			}
		}
		same(t, got, []string{ids[0], ids[2], ids[3]})
	})
	t.Run("seals an unchanged session again, and leaves the version", func(t *testing.T) {
		check(t, e.s.ResealUpstream(e.ctx, ids[0], []byte("sealed"), []byte("anew")))
		wantErr(t, e.s.ResealUpstream(e.ctx, ids[0], []byte("sealed"), []byte("late")), storage.ErrSpent)
		wantErr(t, e.s.ResealUpstream(e.ctx, ids[1], []byte("sealed"), []byte("ended")), storage.ErrSpent)
		wantErr(t, e.s.ResealUpstream(e.ctx, "ups_none", []byte("sealed"), []byte("none")), storage.ErrSpent)
		u, err := e.s.Upstream(e.ctx, ids[0])
		check(t, err)
		if string(u.Sealed) != "anew" || u.Version != 1 {
			t.Errorf("got %q, version %d", u.Sealed, u.Version)
		}
		e.wantUpstream(t, ids[1], "revoked")
	})
}
