package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// homes checks that an account that began at a provider stays bound to it, whichever authentication
// method its user uses.
func homes(t *testing.T, e *env) {
	begin := func(userID, hash string) (storage.Hash, error) {
		h := randomHash()
		return h, e.s.PutSession(e.ctx, storage.Session{
			Hash: h, UserID: userID, CreatedAt: e.now, ExpiresAt: e.now.Add(time.Hour), Methods: []string{"recovery"},
		}, storage.SignInStart{PasswordHash: hash})
	}
	restsOn := func(t *testing.T, session storage.Hash, upstream string) {
		t.Helper()
		v, err := e.s.Visit(e.ctx, storage.VisitKey{Session: session, Now: e.now})
		check(t, err)
		same(t, v.Session.UpstreamID, upstream)
	}
	t.Run("AS-217 AS-219 a session by another way rests on the newest one there, and ends with it", func(t *testing.T) {
		a, u := e.arrived(t)
		b := e.again(a)
		b.Upstream.CreatedAt = e.now.Add(time.Second)
		e.arrive(t, b)
		e.arrive(t, e.link("other", u.ID))
		h, err := begin(u.ID, "")
		check(t, err)
		restsOn(t, h, b.Upstream.ID)
		home, err := e.s.HomeSession(e.ctx, u.ID)
		check(t, err)
		same(t, home, b.Upstream.ID)
		grant, refresh := e.grantedBy(t, u, h)
		e.end(t, storage.UpstreamKey{ID: b.Upstream.ID}, "revoked")
		e.wantSession(t, h, false)
		e.wantLive(t, grant, false)
		e.wantRefreshRefused(t, grant, refresh)
		h, err = begin(u.ID, "")
		check(t, err)
		restsOn(t, h, a.Upstream.ID)
	})
	t.Run("AS-219 without one that is live it is ErrHomeProvider, also with the right password", func(t *testing.T) {
		a, u := e.arrived(t)
		check(t, e.s.SetPassword(e.ctx, u.ID, "$hash", false, e.now))
		e.arrive(t, e.link("other", u.ID))
		e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "revoked")
		for hash, want := range map[string]error{
			"": storage.ErrHomeProvider, "$hash": storage.ErrHomeProvider, "$another": storage.ErrNotFound,
		} {
			h, err := begin(u.ID, hash)
			wantErr(t, err, want)
			e.wantSession(t, h, false)
		}
		_, err := e.s.HomeSession(e.ctx, u.ID)
		wantErr(t, err, storage.ErrHomeProvider)
		check(t, e.s.SetUserDisabled(e.ctx, u.ID, true, e.now))
		_, err = begin(u.ID, "")
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("AS-217 signed in with an account that was connected later, too", func(t *testing.T) {
		a, u := e.arrived(t)
		later := e.link("other", u.ID)
		e.arrive(t, later)
		b := e.arrival()
		b.Identity = later.Identity
		b.Identity.UserID, b.Upstream = "", e.upstream(later.Identity)
		same(t, e.arrive(t, b).ID, u.ID)
		restsOn(t, b.Session.Hash, a.Upstream.ID)
		all, err := e.s.Identities(e.ctx, u.ID)
		check(t, err)
		for _, i := range all {
			same(t, i.Began, i.Connector == "acme")
		}
		e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "revoked")
		e.wantSession(t, b.Session.Hash, false)
		b = e.again(b)
		_, err = e.s.Arrive(e.ctx, b)
		wantErr(t, err, storage.ErrHomeProvider)
		e.notStored(t, b)
	})
	t.Run("an account of the operator rests on a provider only where the person came from there", func(t *testing.T) {
		a, u := e.tied(t)
		restsOn(t, a.Session.Hash, a.Upstream.ID)
		e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "revoked")
		h, err := begin(u.ID, u.PasswordHash)
		check(t, err)
		restsOn(t, h, "")
		home, err := e.s.HomeSession(e.ctx, u.ID)
		check(t, err)
		same(t, home, "")
	})
	t.Run("PE-05 PL8 the newest session there stays for a person who has another way in", func(t *testing.T) {
		for _, add := range []func(u storage.User){
			func(u storage.User) { e.add(t, e.passkey(u.ID)) },
			func(u storage.User) {
				check(t, e.s.ReplaceRecoveryCodes(e.ctx, u.ID, []storage.Hash{randomHash()}, storage.Hash{}))
			},
			func(u storage.User) { e.tieAnother(t, u) },
		} {
			a, u := e.arrived(t)
			b := e.again(a)
			b.Upstream.CreatedAt = e.now.Add(time.Second)
			e.arrive(t, b)
			add(u)
			for _, x := range []storage.Arrival{a, b} {
				check(t, e.s.EndSession(e.ctx, x.Session.Hash, e.now))
			}
			e.wantUpstream(t, a.Upstream.ID, "signed-out")
			e.wantUpstream(t, b.Upstream.ID, "")
			_, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(48 * time.Hour)}, 1000)
			check(t, err)
			e.wantUpstream(t, b.Upstream.ID, "")
			h, err := begin(u.ID, "")
			check(t, err)
			restsOn(t, h, b.Upstream.ID)
		}
	})
	linkAgain := func(t *testing.T, a storage.Arrival, userID string, after time.Duration) storage.Arrival {
		l := e.link(a.Identity.Connector, userID)
		l.Identity.Subject, l.Upstream.Subject = a.Identity.Subject, a.Identity.Subject
		l.Upstream.CreatedAt = e.now.Add(after)
		e.arrive(t, l)
		return l
	}
	t.Run("AS-217 it rests on that of a sign-in rather than on a linked one, which may be replaced", func(t *testing.T) {
		a, u := e.arrived(t)
		e.add(t, e.passkey(u.ID))
		linked := linkAgain(t, a, u.ID, time.Second)
		h, err := begin(u.ID, "")
		check(t, err)
		restsOn(t, h, a.Upstream.ID)
		grant, _ := e.grantedBy(t, u, h)
		linkAgain(t, a, u.ID, 2*time.Second)
		e.wantUpstream(t, linked.Upstream.ID, "replaced")
		restsOn(t, h, a.Upstream.ID)
		e.wantLive(t, grant, true)
		other, _ := e.arrived(t)
		e.add(t, e.passkey(other.NewUser.ID))
		linkAgain(t, other, other.NewUser.ID, time.Second)
		check(t, e.s.EndSession(e.ctx, other.Session.Hash, e.now))
		e.wantUpstream(t, other.Upstream.ID, "") // the linked session does not orphan it
	})
	t.Run("AS-219 what rests on a linked one rests on that which replaces it, and ends with it", func(t *testing.T) {
		a, u := e.arrived(t)
		linkAgain(t, a, u.ID, time.Second)
		e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "logout")
		h, err := begin(u.ID, "")
		check(t, err)
		grant, refresh := e.grantedBy(t, u, h)
		successor := linkAgain(t, a, u.ID, 2*time.Second)
		restsOn(t, h, successor.Upstream.ID)
		e.wantLive(t, grant, true)
		e.end(t, storage.UpstreamKey{ID: successor.Upstream.ID}, "revoked")
		e.wantFarewell(t, h, "acme", "revoked")
		e.wantLive(t, grant, false)
		e.wantRefreshRefused(t, grant, refresh)
	})
	t.Run("AS-219 another account at that provider does not stand for it", func(t *testing.T) {
		a, u := e.arrived(t)
		linkAgain(t, a, u.ID, time.Second)
		e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "logout")
		h, err := begin(u.ID, "")
		check(t, err)
		grant, _ := e.grantedBy(t, u, h)
		e.arrive(t, e.link("acme", u.ID))
		e.wantFarewell(t, h, "acme", "replaced")
		e.wantLive(t, grant, false)
	})
}

// tieAnother links a user to an account at another provider, without a session there.
func (e *env) tieAnother(t *testing.T, u storage.User) {
	t.Helper()
	l := e.link("other", u.ID)
	e.arrive(t, l)
	e.end(t, storage.UpstreamKey{ID: l.Upstream.ID}, "logout")
}

// oldHomes checks that an account stored by an earlier version also counts as begun at its
// provider.
func oldHomes(t *testing.T, e *env, exec func(query string, args ...any)) {
	a, u := e.arrived(t)
	b := e.link("other", u.ID)
	b.Now = e.now.Add(time.Minute)
	b.Identity.CreatedAt = b.Now
	e.arrive(t, b)
	exec("UPDATE identities SET began = NULL WHERE user_id = ?", u.ID)
	e.arrive(t, e.again(a))
	all, err := e.s.Identities(e.ctx, u.ID)
	check(t, err)
	if len(all) != 2 || !all[0].Began || all[1].Began {
		t.Errorf("got %+v", all)
	}
	_, err = e.s.Unlink(e.ctx, e.untie(u.ID, a.Identity))
	wantErr(t, err, storage.ErrLast)
}
