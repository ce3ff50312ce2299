package storagetest

import (
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// grantedBy returns a grant of a user, approved in a session, with its first refresh token.
func (e *env) grantedBy(
	t testing.TB, u storage.User, session storage.Hash,
) (storage.Approval, storage.PresentedRefresh) {
	t.Helper()
	a := e.approval(person{User: u, session: session})
	check(t, e.s.Approve(e.ctx, a))
	r := e.redemption(a)
	return a, e.redeem(t, r)
}

// end ends the sessions that k selects and returns their ids.
func (e *env) end(t testing.TB, k storage.UpstreamKey, reason string) (ids []string) {
	t.Helper()
	all, err := e.s.EndUpstreams(e.ctx, k, reason, e.now)
	check(t, err)
	for _, u := range all {
		ids = append(ids, u.ID)
	}
	slices.Sort(ids)
	return ids
}

func (e *env) wantFarewell(t testing.TB, session storage.Hash, connector, reason string) {
	t.Helper()
	_, err := e.s.Visit(e.ctx, storage.VisitKey{Session: session, Now: e.now})
	wantErr(t, err, storage.ErrNotFound)
	c, r, err := e.s.SessionEnd(e.ctx, session, e.now)
	check(t, err)
	if c != connector || r != reason {
		t.Errorf("got the end %q %q, want %q %q", c, r, connector, reason)
	}
}

func upstreamEnds(t *testing.T, e *env) {
	t.Run("AS-219 tokens, grants and browser sessions end at once, and no others", func(t *testing.T) {
		a, u := e.arrived(t)
		grant, refresh := e.grantedBy(t, u, a.Session.Hash)
		pending := e.approval(person{User: u, session: a.Session.Hash})
		check(t, e.s.Approve(e.ctx, pending))
		b := e.again(a) // another sign-in of the same user
		e.arrive(t, b)
		otherGrant, otherRefresh := e.grantedBy(t, u, b.Session.Hash)
		byPassword := person{User: u, session: randomHash()}
		e.signIn(t, byPassword)
		ownGrant, _ := e.grantedBy(t, u, byPassword.session)

		before, err := e.s.Upstream(e.ctx, a.Upstream.ID)
		check(t, err)
		got, err := e.s.EndUpstreams(e.ctx, storage.UpstreamKey{ID: a.Upstream.ID}, "logged-out", e.now)
		check(t, err)
		same(t, got, []storage.Upstream{before})

		before.Sealed, before.EndedAt, before.EndReason = nil, e.now, "logged-out"
		after, err := e.s.Upstream(e.ctx, a.Upstream.ID)
		check(t, err)
		same(t, after, before)
		e.wantLive(t, grant, false)
		e.wantRefreshRefused(t, grant, refresh)
		_, err = e.s.RedeemCode(e.ctx, e.redemption(pending))
		wantErr(t, err, storage.ErrRevoked)
		e.wantFarewell(t, a.Session.Hash, "acme", "logged-out")

		e.wantUpstream(t, b.Upstream.ID, "")
		e.wantLive(t, otherGrant, true)
		e.rotate(t, e.rotation(otherGrant, otherRefresh))
		e.wantLive(t, ownGrant, true)
		for _, session := range []storage.Hash{b.Session.Hash, byPassword.session} {
			_, err = e.s.Visit(e.ctx, storage.VisitKey{Session: session, Now: e.now})
			check(t, err)
			_, _, err = e.s.SessionEnd(e.ctx, session, e.now)
			wantErr(t, err, storage.ErrNotFound)
		}
	})
	t.Run("what has ended ends no second time, and keeps its reason", func(t *testing.T) {
		a, _ := e.arrived(t)
		same(t, e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "revoked"), []string{a.Upstream.ID})
		same(t, e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "expired"), []string(nil))
		e.wantUpstream(t, a.Upstream.ID, "revoked")
		e.wantFarewell(t, a.Session.Hash, "acme", "revoked")
	})
	t.Run("a browser is told for as long as its session would have lasted", func(t *testing.T) {
		a, _ := e.arrived(t)
		e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "revoked")
		_, _, err := e.s.SessionEnd(e.ctx, a.Session.Hash, a.Session.ExpiresAt.Add(-time.Millisecond))
		check(t, err)
		_, _, err = e.s.SessionEnd(e.ctx, a.Session.Hash, a.Session.ExpiresAt)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("no browser session begins on one that has ended, or is another's", func(t *testing.T) {
		a, u := e.arrived(t)
		other, _ := e.arrived(t)
		put := func(upstream string) error {
			return e.s.PutSession(e.ctx,
				storage.Session{
					Hash: randomHash(), UserID: u.ID, UpstreamID: upstream, ExpiresAt: e.now.Add(time.Hour)},
				storage.SignInStart{})
		}
		check(t, put(a.Upstream.ID))
		wantErr(t, put(other.Upstream.ID), storage.ErrNotFound)
		wantErr(t, put("ups_none"), storage.ErrNotFound)
		e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "revoked")
		wantErr(t, put(a.Upstream.ID), storage.ErrNotFound)
	})
	t.Run("AS-245 what is good for once ends sessions once, and only those that began by then", func(t *testing.T) {
		a, u := e.arrived(t)
		later := e.again(a)
		later.Upstream.CreatedAt = e.now.Add(time.Minute)
		e.arrive(t, later)
		grant, _ := e.grantedBy(t, u, a.Session.Hash)
		key := storage.UpstreamKey{Connector: "acme", Subject: a.Identity.Subject, Until: e.now}
		use := storage.Use{Purpose: "set", ID: rand.Text(), Expires: e.now.Add(time.Hour)}
		got, err := e.s.EndUpstreamsOnce(e.ctx, []storage.UpstreamKey{key}, "revoked", use, e.now)
		check(t, err)
		if len(got) != 1 || got[0].ID != a.Upstream.ID {
			t.Errorf("got %+v", got)
		}
		e.wantLive(t, grant, false)
		e.wantUpstream(t, later.Upstream.ID, "")
		key.Until = time.Time{}
		_, err = e.s.EndUpstreamsOnce(e.ctx, []storage.UpstreamKey{key}, "revoked", use, e.now)
		wantErr(t, err, storage.ErrSpent)
		e.wantUpstream(t, later.Upstream.ID, "")
		wantErr(t, e.s.Spend(e.ctx, use.Purpose, use.ID, use.Expires), storage.ErrSpent)
		got, err = e.s.EndUpstreamsOnce(e.ctx, []storage.UpstreamKey{{Until: e.now}},
			"revoked", storage.Use{Purpose: "set", ID: rand.Text(), Expires: e.now}, e.now)
		check(t, err)
		same(t, len(got), 0)
	})
	t.Run("what a provider says may hold what the database cannot", func(t *testing.T) {
		for _, text := range []string{"nul\x00byte", "\xff\xfe", "%", "' OR 1=1 --"} {
			same(t, e.end(t, storage.UpstreamKey{Connector: "acme", Subject: text}, "revoked"), []string(nil))
		}
	})
}

func upstreamKeys(t *testing.T, e *env) {
	who := func(connector, subject string) storage.Arrival {
		a := e.arrival()
		a.Identity.Connector, a.Identity.Subject = connector, subject
		a.Upstream = e.upstream(a.Identity)
		return a
	}
	a, b, c := who("acme", "1"), who("acme", "2"), who("other", "1")
	second := e.again(a)
	unnamed := e.again(a)
	unnamed.Upstream.SessionID = ""
	third, nameless := e.again(a), e.again(b)
	nameless.Upstream.SessionID = ""
	c.Upstream.SessionID = a.Upstream.SessionID // another provider may use the same id
	for _, x := range []storage.Arrival{a, b, c, second, third, unnamed, nameless} {
		e.arrive(t, x)
	}
	for _, x := range []struct {
		name string
		key  storage.UpstreamKey
		want []string
	}{
		{"no field", storage.UpstreamKey{}, nil},
		{"fields that do not all match", storage.UpstreamKey{ID: a.Upstream.ID, Connector: "other"}, nil},
		{"another user's", storage.UpstreamKey{ID: a.Upstream.ID, UserID: b.NewUser.ID}, nil},
		{"the session of a provider", storage.UpstreamKey{Connector: "acme", SessionID: a.Upstream.SessionID},
			[]string{a.Upstream.ID}},
		{"a session of a subject, also one that may be it",
			storage.UpstreamKey{Connector: "acme", Subject: "1", SessionID: third.Upstream.SessionID},
			[]string{third.Upstream.ID, unnamed.Upstream.ID}},
		{"the subject of a provider", storage.UpstreamKey{Connector: "acme", Subject: "1"},
			[]string{second.Upstream.ID}},
		{"the user", storage.UpstreamKey{UserID: b.NewUser.ID}, []string{b.Upstream.ID, nameless.Upstream.ID}},
		{"the provider", storage.UpstreamKey{Connector: "other"}, []string{c.Upstream.ID}},
	} {
		t.Run("selects by "+x.name, func(t *testing.T) {
			slices.Sort(x.want)
			same(t, e.end(t, x.key, "revoked"), x.want)
		})
	}
}

// boundGrants checks that every verb returns the session that a grant depends on.
func boundGrants(t *testing.T, e *env) {
	a, u := e.arrived(t)
	want := func(t *testing.T, g storage.Grant, err error) {
		t.Helper()
		check(t, err)
		same(t, g.UpstreamID, a.Upstream.ID)
	}
	grant := e.approval(person{User: u, session: a.Session.Hash})
	grant.Grant.UpstreamID = "ups_claimed" // the session decides, not the caller
	check(t, e.s.Approve(e.ctx, grant))
	t.Run("AS-217 AS-218 it is told with every code and refresh token", func(t *testing.T) {
		r := e.redemption(grant)
		first := e.redeem(t, r)
		g, _, err := e.s.RefreshToken(e.ctx, first, e.now)
		want(t, g, err)
		rotation := e.rotation(grant, first)
		for range 2 { // the second is a replay
			out, err := e.s.RotateRefresh(e.ctx, rotation)
			want(t, out.Grant, err)
		}
		all, err := e.s.ListGrants(e.ctx, u.ID, "", "", 10)
		check(t, err)
		want(t, all[0], nil)
		token, err := e.s.TokenActive(e.ctx, storage.TokenKey{GrantID: g.ID, ClientID: g.ClientID, Now: e.now})
		want(t, storage.Grant{UpstreamID: token.UpstreamID}, err)
		again, err := e.s.RedeemCode(e.ctx, r)
		wantErr(t, err, storage.ErrSpent)
		want(t, again.Grant, nil)
	})
	t.Run("a grant of a password sign-in rests on none, in an account of the operator", func(t *testing.T) {
		p := e.person(t)
		b := e.approval(p)
		b.Grant.UpstreamID = a.Upstream.ID
		check(t, e.s.Approve(e.ctx, b))
		g, err := e.s.RedeemCode(e.ctx, e.redemption(b))
		check(t, err)
		same(t, g.Grant.UpstreamID, "")
	})
}

// accountEnds checks that the sessions of an account at providers end with it.
func accountEnds(t *testing.T, e *env) {
	for _, c := range []struct {
		name       string
		end        func(userID string) error
		identities int
		forgotten  bool
	}{
		{"disabling", func(id string) error { return e.s.SetUserDisabled(e.ctx, id, true, e.now) }, 2, false},
		{"deletion", func(id string) error { return e.s.DeleteUser(e.ctx, id, e.now) }, 0, true},
	} {
		t.Run("AS-219 AS-223 "+c.name+" of an account erases its upstream tokens, linked ones too, and no others",
			func(t *testing.T) {
				a, u := e.arrived(t)
				grant, refresh := e.grantedBy(t, u, a.Session.Hash)
				b := e.link("other", u.ID)
				e.arrive(t, b)
				c0, _ := e.arrived(t)
				check(t, c.end(u.ID))
				for _, x := range []storage.Arrival{a, b} {
					e.wantUpstream(t, x.Upstream.ID, "disabled")
					got, err := e.s.Upstream(e.ctx, x.Upstream.ID)
					check(t, err)
					if forgotten := got.Subject == "" && got.SessionID == ""; forgotten != c.forgotten {
						t.Errorf("who it was is forgotten: got %v, want %v", forgotten, c.forgotten)
					}
				}
				e.wantUpstream(t, c0.Upstream.ID, "")
				e.wantLive(t, grant, false)
				e.wantRefreshRefused(t, grant, refresh)
				all, err := e.s.Identities(e.ctx, u.ID)
				check(t, err)
				if len(all) != c.identities {
					t.Errorf("got %d identities, want %d", len(all), c.identities)
				}
			})
	}
}

// forgottenUpstreams checks which sessions a sweep removes, each separately.
func forgottenUpstreams(t *testing.T, e *env) {
	const day = 24 * time.Hour
	sweep := func(t *testing.T, at time.Duration) {
		t.Helper()
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(at)}, 100)
		check(t, err)
	}
	gone := func(t *testing.T, a storage.Arrival, want bool) {
		t.Helper()
		_, err := e.s.Upstream(e.ctx, a.Upstream.ID)
		if want {
			wantErr(t, err, storage.ErrNotFound)
		} else {
			check(t, err)
		}
	}
	t.Run("one that has ended goes after 30 days, its reason with the browser session", func(t *testing.T) {
		a, _ := e.arrived(t)
		e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "revoked")
		sweep(t, day-time.Millisecond)
		e.wantFarewell(t, a.Session.Hash, "acme", "revoked")
		sweep(t, 30*day-time.Millisecond)
		gone(t, a, false)
		_, _, err := e.s.SessionEnd(e.ctx, a.Session.Hash, e.now)
		wantErr(t, err, storage.ErrNotFound)
		sweep(t, 30*day)
		gone(t, a, true)
	})
	t.Run("a live one goes when it is a day old and nothing rests on it", func(t *testing.T) {
		lonely := e.arrival()
		lonely.Session.ExpiresAt = e.now.Add(time.Hour)
		u := e.arrive(t, lonely)
		linked := e.link("other", e.person(t).ID)
		e.arrive(t, linked)
		inBrowser := e.again(lonely)
		inBrowser.Session.ExpiresAt = e.now.Add(2 * day)
		e.arrive(t, inBrowser)
		withGrant := e.again(lonely)
		e.arrive(t, withGrant)
		e.grantedBy(t, u, withGrant.Session.Hash)
		withRevoked := e.again(lonely)
		e.arrive(t, withRevoked)
		revoked, _ := e.grantedBy(t, u, withRevoked.Session.Hash)
		check(t, e.s.RevokeGrant(e.ctx, revoked.Grant.ID, storage.ByOperator, e.now))

		sweep(t, day-time.Millisecond)
		gone(t, lonely, false)
		sweep(t, day)
		gone(t, lonely, true)
		gone(t, withRevoked, true)
		for _, a := range []storage.Arrival{linked, inBrowser, withGrant} {
			gone(t, a, false)
		}
		sweep(t, 2*day)
		gone(t, inBrowser, true)
		sweep(t, 100*day) // the end of the grant
		gone(t, withGrant, true)
		gone(t, linked, false)
	})
	t.Run("a departure goes an hour after it has expired, if no server collected it", func(t *testing.T) {
		d := storage.Departure{Key: randomHash(), Sealed: []byte("x"), ExpiresAt: e.now.Add(time.Minute)}
		check(t, e.s.PutDeparture(e.ctx, d))
		sweep(t, time.Hour)
		_, err := e.s.TakeDeparture(e.ctx, d.Key, e.now)
		check(t, err)
		check(t, e.s.PutDeparture(e.ctx, d))
		sweep(t, time.Hour+time.Minute)
		_, err = e.s.TakeDeparture(e.ctx, d.Key, e.now)
		wantErr(t, err, storage.ErrNotFound)
	})
}
