package storagetest

import (
	"errors"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var errSeal = errors.New("it cannot be sealed")

// arrival returns a new user's sign-in from a provider, not stored yet.
func (e *env) arrival() storage.Arrival {
	id := secrets.ID("usr_")
	who := storage.Identity{Connector: "acme", Subject: "sub " + id, Label: id + "@acme.example"}
	return storage.Arrival{
		Identity: who,
		NewUser:  &storage.User{ID: id, Name: "Name" + id, CreatedAt: e.now},
		Upstream: e.upstream(who),
		Session: &storage.Session{
			Hash: randomHash(), AuthTime: e.now, CreatedAt: e.now, ExpiresAt: e.now.Add(24 * time.Hour),
			Methods: []string{"fed"}, ProvedAt: e.now, SeenAt: e.now,
		},
		Now: e.now,
	}
}

func (e *env) upstream(i storage.Identity) storage.Upstream {
	return storage.Upstream{
		ID: secrets.ID("ups_"), Connector: i.Connector, Subject: i.Subject, SessionID: secrets.ID("sid_"),
		Sealed: []byte("sealed"), Scopes: oauth.Scopes{"openid", "email"}, CreatedAt: e.now, CheckedAt: e.now,
		DueAt: e.now.Add(5 * time.Minute)}
}

// again returns another sign-in of a user, in another browser.
func (e *env) again(a storage.Arrival) storage.Arrival {
	se := *a.Session
	se.Hash = randomHash()
	a.Session, a.Upstream = &se, e.upstream(a.Identity)
	return a
}

// link returns an arrival that links a new provider account to a user who was asked.
func (e *env) link(connector, userID string) storage.Arrival {
	a := e.arrival()
	a.Identity.Connector, a.Identity.UserID, a.Asked = connector, userID, true
	a.Upstream.Connector, a.Upstream.Linked = connector, true
	a.NewUser, a.Session = nil, nil
	return a
}

func (e *env) arrive(t testing.TB, a storage.Arrival) storage.User {
	t.Helper()
	u, err := e.s.Arrive(e.ctx, a)
	check(t, err)
	return u
}

// arrived stores the arrival of a new user.
func (e *env) arrived(t testing.TB) (storage.Arrival, storage.User) {
	t.Helper()
	a := e.arrival()
	return a, e.arrive(t, a)
}

// tied stores a local account, links an account at a provider to it, and signs in with that.
func (e *env) tied(t testing.TB) (storage.Arrival, storage.User) {
	t.Helper()
	p := e.person(t)
	linked := e.link("acme", p.ID)
	e.arrive(t, linked)
	a := e.arrival()
	a.Identity = linked.Identity
	a.Identity.UserID = ""
	a.Upstream = e.upstream(a.Identity)
	return a, e.arrive(t, a)
}

// notStored checks that no part of an arrival is stored.
func (e *env) notStored(t testing.TB, a storage.Arrival) {
	t.Helper()
	_, err := e.s.Upstream(e.ctx, a.Upstream.ID)
	wantErr(t, err, storage.ErrNotFound)
	if a.Session != nil {
		_, err = e.s.Visit(e.ctx, storage.VisitKey{Session: a.Session.Hash, Now: e.now})
		wantErr(t, err, storage.ErrNotFound)
	}
}

// wantUpstream checks a session at a provider: live when reason is empty.
func (e *env) wantUpstream(t testing.TB, id, reason string) {
	t.Helper()
	u, err := e.s.Upstream(e.ctx, id)
	check(t, err)
	live := reason == ""
	if u.EndReason != reason || u.EndedAt.IsZero() != live || (len(u.Sealed) > 0) != live {
		t.Errorf("%s: got reason %q, ended %v, %d sealed bytes; want reason %q", id, u.EndReason, u.EndedAt,
			len(u.Sealed), reason)
	}
}

func arrivals(t *testing.T, e *env) {
	t.Run("AS-217 a new person gets an account, the identity, a session there and one here that rests on it",
		func(t *testing.T) {
			a, u := e.arrived(t)
			want := *a.NewUser
			want.LastLoginAt = e.now
			same(t, u, want)
			got, err := e.s.User(e.ctx, u.ID)
			check(t, err)
			same(t, got, want)

			who := a.Identity
			who.UserID, who.CreatedAt, who.LastUsedAt, who.Began = u.ID, e.now, e.now, true
			all, err := e.s.Identities(e.ctx, u.ID)
			check(t, err)
			same(t, all, []storage.Identity{who})

			up := a.Upstream
			up.UserID, up.Version = u.ID, 1
			stored, err := e.s.Upstream(e.ctx, up.ID)
			check(t, err)
			same(t, stored, up)

			v, err := e.s.Visit(e.ctx, storage.VisitKey{Session: a.Session.Hash, Now: e.now})
			check(t, err)
			se := *a.Session
			se.UserID, se.UpstreamID = u.ID, up.ID
			same(t, v, storage.Visit{Session: se, User: want})
		})
	t.Run("PM6 what is sealed is sealed for the user who arrives; what cannot be sealed is not stored",
		func(t *testing.T) {
			a, u := e.arrived(t)
			back := e.again(a)
			back.Seal = func(userID string) ([]byte, error) { return []byte("for " + userID), nil }
			e.arrive(t, back)
			stored, err := e.s.Upstream(e.ctx, back.Upstream.ID)
			check(t, err)
			if string(stored.Sealed) != "for "+u.ID {
				t.Errorf("got %q", stored.Sealed)
			}
			failed := e.again(a)
			failed.Seal = func(string) ([]byte, error) { return nil, errSeal }
			_, err = e.s.Arrive(e.ctx, failed)
			wantErr(t, err, errSeal)
			e.notStored(t, failed)
		})
	t.Run("PM5 RFC 9470 6: when it is unknown when the person proved who they are, nothing is made up, up to the grant",
		func(t *testing.T) {
			a := e.arrival()
			a.Session.AuthTime = time.Time{}
			u := e.arrive(t, a)
			v, err := e.s.Visit(e.ctx, storage.VisitKey{Session: a.Session.Hash, Now: e.now})
			check(t, err)
			if !v.Session.AuthTime.IsZero() {
				t.Errorf("the session: %v", v.Session.AuthTime)
			}
			p := e.approval(person{User: u, session: a.Session.Hash})
			p.Grant.AuthTime = time.Time{}
			check(t, e.s.Approve(e.ctx, p))
			g, err := e.s.RedeemCode(e.ctx, e.redemption(p))
			check(t, err)
			if !g.Grant.AuthTime.IsZero() {
				t.Errorf("the grant: %v", g.Grant.AuthTime)
			}
		})
	t.Run("the same person comes back as the same user, whatever the account there is called now", func(t *testing.T) {
		a, u := e.arrived(t)
		b := e.again(a)
		b.NewUser, b.Identity.Label, b.Now = &storage.User{ID: "usr_x", Name: "x"}, "new label", e.now.Add(time.Hour)
		if got := e.arrive(t, b); got.ID != u.ID || !got.LastLoginAt.Equal(b.Now) {
			t.Errorf("got %+v, want %s", got, u.ID)
		}
		all, err := e.s.Identities(e.ctx, u.ID)
		check(t, err)
		if len(all) != 1 || all[0].Label != "new label" || !all[0].LastUsedAt.Equal(b.Now) ||
			!all[0].CreatedAt.Equal(e.now) {
			t.Errorf("got %+v", all)
		}
		e.wantUpstream(t, a.Upstream.ID, "")
		e.wantUpstream(t, b.Upstream.ID, "")
	})
	t.Run("the same subject at another provider is another person", func(t *testing.T) {
		a, u := e.arrived(t)
		b := e.arrival()
		b.Identity.Subject, b.Identity.Connector, b.Identity.Label = a.Identity.Subject, "other", a.Identity.Label
		if got := e.arrive(t, b); got.ID == u.ID {
			t.Error("got the same user")
		}
	})
	t.Run("a taken name, in any case, gets the end of the id", func(t *testing.T) {
		_, first := e.arrived(t)
		a := e.arrival()
		a.NewUser.ID, a.NewUser.Name = "usr_0123456789", "nAME"+first.ID
		if got := e.arrive(t, a); got.Name != "nAME"+first.ID+"-456789" {
			t.Errorf("got %q", got.Name)
		}
	})
	t.Run("no user has the identity, and there is no new user: ErrNotFound", func(t *testing.T) {
		a := e.arrival()
		a.NewUser = nil
		_, err := e.s.Arrive(e.ctx, a)
		wantErr(t, err, storage.ErrNotFound)
		e.notStored(t, a)
	})
	t.Run("a disabled account is ErrRevoked, and nothing is stored", func(t *testing.T) {
		a, u := e.arrived(t)
		check(t, e.s.SetUserDisabled(e.ctx, u.ID, true, e.now))
		for _, b := range []storage.Arrival{e.again(a), e.link("other", u.ID)} {
			_, err := e.s.Arrive(e.ctx, b)
			wantErr(t, err, storage.ErrRevoked)
			e.notStored(t, b)
		}
		all, err := e.s.Identities(e.ctx, u.ID)
		check(t, err)
		if len(all) != 1 {
			t.Errorf("got %d identities, want 1", len(all))
		}
	})
	t.Run("all or nothing: over another's browser session nothing is stored", func(t *testing.T) {
		a, _ := e.arrived(t)
		b := e.arrival()
		b.Session.Hash = a.Session.Hash
		_, err := e.s.Arrive(e.ctx, b)
		wantErr(t, err, storage.ErrExists)
		_, err = e.s.Upstream(e.ctx, b.Upstream.ID)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.User(e.ctx, b.NewUser.ID)
		wantErr(t, err, storage.ErrNotFound)
		all, err := e.s.Identities(e.ctx, b.NewUser.ID)
		check(t, err)
		if len(all) > 0 {
			t.Errorf("got %v", all)
		}
	})
	t.Run("a deleted person comes back as a new one", func(t *testing.T) {
		a, u := e.arrived(t)
		check(t, e.s.DeleteUser(e.ctx, u.ID, e.now))
		b := e.again(a)
		if got := e.arrive(t, b); got.ID != u.ID {
			t.Errorf("got %+v", got)
		}
		e.wantUpstream(t, a.Upstream.ID, "disabled")
		_, err := e.s.Visit(e.ctx, storage.VisitKey{Session: a.Session.Hash, Now: e.now})
		wantErr(t, err, storage.ErrNotFound)
	})
}

func links(t *testing.T, e *env) {
	t.Run("an account is tied to the user who asks, and signs them in from then on", func(t *testing.T) {
		p := e.person(t)
		a := e.link("acme", p.ID)
		same(t, e.arrive(t, a), p.User) // which is not a sign-in
		all, err := e.s.Identities(e.ctx, p.ID)
		check(t, err)
		if len(all) != 1 || all[0].Subject != a.Identity.Subject || all[0].Began {
			t.Errorf("got %+v", all)
		}
		b := e.arrival()
		b.Identity = a.Identity
		b.Identity.UserID = ""
		if got := e.arrive(t, b); got.ID != p.ID {
			t.Errorf("got %+v, want %s", got, p.ID)
		}
	})
	t.Run("tied to another user it is ErrExists, and stays theirs", func(t *testing.T) {
		a, u := e.arrived(t)
		b := e.link("acme", e.person(t).ID)
		b.Identity.Subject = a.Identity.Subject
		_, err := e.s.Arrive(e.ctx, b)
		wantErr(t, err, storage.ErrExists)
		e.notStored(t, b)
		if got := e.arrive(t, e.again(a)); got.ID != u.ID {
			t.Errorf("it has become the account of %s", got.ID)
		}
	})
	t.Run("to a user who is gone is ErrNotFound", func(t *testing.T) {
		a := e.link("acme", "usr_gone")
		_, err := e.s.Arrive(e.ctx, a)
		wantErr(t, err, storage.ErrNotFound)
		e.notStored(t, a)
	})
	t.Run("PH1 an account without a user is tied to no user who was not asked: ErrUntied, and nothing is stored",
		func(t *testing.T) {
			p := e.person(t)
			a := e.link("acme", p.ID)
			a.Asked = false
			_, err := e.s.Arrive(e.ctx, a)
			wantErr(t, err, storage.ErrUntied)
			e.notStored(t, a)
			all, err := e.s.Identities(e.ctx, p.ID)
			check(t, err)
			if len(all) != 0 {
				t.Errorf("got %+v", all)
			}
			a.Asked = true
			e.arrive(t, a)
			a.Asked, a.Upstream = false, e.upstream(a.Identity)
			e.arrive(t, a) // it is already theirs
			gone := e.link("acme", "usr_gone")
			gone.Asked = false
			_, err = e.s.Arrive(e.ctx, gone)
			wantErr(t, err, storage.ErrNotFound)
		})
	t.Run("a linked session replaces the one before it, and no other", func(t *testing.T) {
		p, q := e.person(t), e.person(t)
		first := e.link("acme", p.ID)
		e.arrive(t, first)
		signIn := e.arrival()
		signIn.Identity = first.Identity
		signIn.Identity.UserID = ""
		others := e.link("acme", q.ID)
		elsewhere := e.link("other", p.ID)
		for _, a := range []storage.Arrival{signIn, others, elsewhere} {
			e.arrive(t, a)
		}
		next := first
		next.Upstream = e.upstream(first.Identity)
		next.Upstream.Linked = true
		e.arrive(t, next)
		e.wantUpstream(t, first.Upstream.ID, "replaced")
		for _, a := range []storage.Arrival{next, signIn, others, elsewhere} {
			e.wantUpstream(t, a.Upstream.ID, "")
		}
	})
}

func unlinks(t *testing.T, e *env) {
	unlink := func(userID string, i storage.Identity) error {
		_, err := e.s.Unlink(e.ctx, e.untie(userID, i))
		return err
	}
	t.Run("lists oldest first", func(t *testing.T) {
		a, u := e.arrived(t)
		b := e.link("other", u.ID)
		b.Now = e.now.Add(-time.Hour)
		e.arrive(t, b)
		got, err := e.s.Identities(e.ctx, u.ID)
		check(t, err)
		if len(got) != 2 || got[0].Connector != "other" || got[1].Subject != a.Identity.Subject {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("PE-03 the one with which the account began is ErrLast and stays, whatever else there is", func(t *testing.T) {
		a, u := e.arrived(t)
		wantErr(t, unlink(u.ID, a.Identity), storage.ErrLast)
		check(t, e.s.SetPassword(e.ctx, u.ID, "$hash", false, e.now))
		e.add(t, e.passkey(u.ID))
		e.arrive(t, e.link("other", u.ID))
		wantErr(t, unlink(u.ID, a.Identity), storage.ErrLast)
		e.wantUpstream(t, a.Upstream.ID, "")
	})
	t.Run("PE-03 the last of a user without a password is ErrLast and stays", func(t *testing.T) {
		a, u := e.tied(t)
		wantErr(t, unlink(u.ID, a.Identity), storage.ErrLast)
		e.wantUpstream(t, a.Upstream.ID, "")
		check(t, e.s.SetPassword(e.ctx, u.ID, "$hash", false, e.now))
		check(t, unlink(u.ID, a.Identity))
	})
	t.Run("no user unties another user's account", func(t *testing.T) {
		a, _ := e.arrived(t)
		_, other := e.arrived(t)
		wantErr(t, unlink(other.ID, a.Identity), storage.ErrNotFound)
		wantErr(t, unlink("usr_gone", a.Identity), storage.ErrNotFound)
		e.wantUpstream(t, a.Upstream.ID, "")
	})
	t.Run("AS-219 what rests on it ends, and nothing else", func(t *testing.T) {
		a, u := e.tied(t)
		grant, refresh := e.grantedBy(t, u, a.Session.Hash)
		b := e.link("other", u.ID)
		e.arrive(t, b)
		check(t, unlink(u.ID, a.Identity))
		wantErr(t, unlink(u.ID, a.Identity), storage.ErrNotFound)
		e.wantUpstream(t, a.Upstream.ID, "disconnected")
		e.wantUpstream(t, b.Upstream.ID, "")
		e.wantLive(t, grant, false)
		e.wantRefreshRefused(t, grant, refresh)
		e.wantFarewell(t, a.Session.Hash, "acme", "disconnected")
	})
}
