package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// begin stores a session of a user that began minutes after their first.
func (e *env) begin(t testing.TB, p person, minutes int) storage.Session {
	t.Helper()
	at := e.now.Add(time.Duration(minutes) * time.Minute)
	se := storage.Session{
		Hash: randomHash(), UserID: p.ID, AuthTime: at, CreatedAt: at, ExpiresAt: at.Add(time.Hour),
		Methods: []string{"pwd"}, ProvedAt: at, Agent: "Firefox on Linux", Address: "203.0.113.0/24", SeenAt: at,
	}
	check(t, e.s.PutSession(e.ctx, se, storage.SignInStart{PasswordHash: p.PasswordHash}))
	return se
}

func (e *env) endOf(p person) storage.SessionEnding {
	return storage.SessionEnding{UserID: p.ID, Now: e.now}
}

func (e *env) wantSession(t testing.TB, h storage.Hash, live bool) {
	t.Helper()
	_, err := e.s.Visit(e.ctx, storage.VisitKey{Session: h, Now: e.now})
	if live {
		check(t, err)
		return
	}
	wantErr(t, err, storage.ErrNotFound)
}

// signIns checks how users list and end their sessions.
func signIns(t *testing.T, e *env) {
	t.Run("a session is read as it was stored, by a visit and in the list, the newest first", func(t *testing.T) {
		p := e.person(t)
		a, b := e.begin(t, p, 1), e.begin(t, p, 2)
		e.begin(t, e.person(t), 3) // another user's
		v, err := e.s.Visit(e.ctx, storage.VisitKey{Session: b.Hash, Now: e.now})
		check(t, err)
		same(t, v.Session, b)
		got, err := e.s.Sessions(e.ctx, p.ID, e.now.Add(3*time.Minute), 2)
		check(t, err)
		same(t, got, []storage.Session{b, a})
		got, err = e.s.Sessions(e.ctx, p.ID, b.ExpiresAt, 10)
		check(t, err)
		if len(got) != 1 || got[0].Hash != p.session {
			t.Errorf("after their expiry: got %v, want the first alone", got)
		}
	})
	t.Run("a session of which nothing is known has no methods, and was proved when it began", func(t *testing.T) {
		p := e.person(t)
		v, err := e.s.Visit(e.ctx, storage.VisitKey{Session: p.session, Now: e.now})
		check(t, err)
		if v.Session.Methods != nil || !v.Session.ProvedAt.Equal(e.now) || !v.Session.SeenAt.Equal(e.now) {
			t.Errorf("got %+v", v.Session)
		}
	})
	t.Run("one ends, by its id; the others stay", func(t *testing.T) {
		p := e.person(t)
		a, b := e.begin(t, p, 1), e.begin(t, p, 2)
		check(t, e.s.EndSignIn(e.ctx, a.ID(), e.endOf(p)))
		e.wantSession(t, a.Hash, false)
		e.wantSession(t, b.Hash, true)
		wantErr(t, e.s.EndSignIn(e.ctx, a.ID(), e.endOf(p)), storage.ErrNotFound)
	})
	t.Run("PE-08 another person's session is as unknown as one that never was", func(t *testing.T) {
		p, q := e.person(t), e.person(t)
		a := e.begin(t, q, 1)
		wantErr(t, e.s.EndSignIn(e.ctx, a.ID(), e.endOf(p)), storage.ErrNotFound)
		wantErr(t, e.s.EndSignIn(e.ctx, "ses_unknown", e.endOf(p)), storage.ErrNotFound)
		e.wantSession(t, a.Hash, true)
	})
	t.Run("all others end; the one in use and those of others stay", func(t *testing.T) {
		p, q := e.person(t), e.person(t)
		a, b := e.begin(t, p, 1), e.begin(t, p, 2)
		n, err := e.s.EndOtherSignIns(e.ctx, b.Hash, e.endOf(p))
		check(t, err)
		same(t, n, 2)
		e.wantSession(t, p.session, false)
		e.wantSession(t, a.Hash, false)
		e.wantSession(t, b.Hash, true)
		e.wantSession(t, q.session, true)
		n, err = e.s.EndOtherSignIns(e.ctx, b.Hash, e.endOf(p))
		check(t, err)
		same(t, n, 0)
	})
	t.Run("PE-04 one that was proved lately is spared, and nothing ends with it", func(t *testing.T) {
		p := e.person(t)
		older, proved := e.begin(t, p, 1), e.begin(t, p, 2)
		end := e.endOf(p)
		end.ProvedBefore = proved.ProvedAt
		wantErr(t, e.s.EndSignIn(e.ctx, proved.ID(), end), storage.ErrProved)
		_, err := e.s.EndOtherSignIns(e.ctx, randomHash(), end)
		wantErr(t, err, storage.ErrProved)
		for _, h := range []storage.Hash{older.Hash, proved.Hash} {
			e.wantSession(t, h, true)
		}
		check(t, e.s.EndSignIn(e.ctx, older.ID(), end))
		n, err := e.s.EndOtherSignIns(e.ctx, proved.Hash, end)
		check(t, err)
		same(t, n, 1) // the user's first session
		end.ProvedBefore = proved.ProvedAt.Add(time.Millisecond)
		check(t, e.s.EndSignIn(e.ctx, proved.ID(), end))
	})
	t.Run("an ended sign-in ends the session at the provider that nothing else rests on", func(t *testing.T) {
		for _, end := range []func(p, id string) error{
			func(p, id string) error {
				return e.s.EndSignIn(e.ctx, id, storage.SessionEnding{UserID: p, Now: e.now})
			},
			func(p, _ string) error {
				_, err := e.s.EndOtherSignIns(e.ctx, randomHash(), storage.SessionEnding{UserID: p, Now: e.now})
				return err
			},
		} {
			a := e.arrival()
			u := e.arrive(t, a)
			check(t, end(u.ID, a.Session.ID()))
			up, err := e.s.Upstream(e.ctx, a.Upstream.ID)
			check(t, err)
			if up.EndedAt.IsZero() || up.Sealed != nil {
				t.Errorf("got %+v, want it ended and its tokens erased", up)
			}
		}
	})
	t.Run("the last use is kept to the hour", func(t *testing.T) {
		a := e.begin(t, e.person(t), 0)
		for minutes, want := range map[int]int{59: 0, 60: 60} {
			at := e.now.Add(time.Duration(minutes) * time.Minute)
			b := e.begin(t, e.person(t), 0)
			check(t, e.s.SeeSession(e.ctx, b.Hash, at))
			v, err := e.s.Visit(e.ctx, storage.VisitKey{Session: b.Hash, Now: e.now})
			check(t, err)
			same(t, v.Session.SeenAt, e.now.Add(time.Duration(want)*time.Minute))
		}
		check(t, e.s.SeeSession(e.ctx, randomHash(), e.now))
		e.wantSession(t, a.Hash, true)
	})
}

// raceEndSignIns ends one sign-in, and all others, from many browsers: one call reports that it
// ended it.
func raceEndSignIns(t *testing.T, e *env) {
	p := e.person(t)
	a, keep := e.begin(t, p, 1), e.begin(t, p, 2)
	var ends tally
	compete(func(i int) {
		if i%2 == 0 {
			ends.add(e.s.EndSignIn(e.ctx, a.ID(), e.endOf(p)), storage.ErrNotFound)
			return
		}
		if _, err := e.s.EndOtherSignIns(e.ctx, keep.Hash, e.endOf(p)); err != nil {
			t.Error(err)
		}
	})
	for _, err := range ends.odd {
		t.Error(err)
	}
	e.wantSession(t, a.Hash, false)
	e.wantSession(t, keep.Hash, true)
}
