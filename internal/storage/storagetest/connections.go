package storagetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// connected returns a redeemed grant that a user approved.
func (e *env) connected(t testing.TB, p person) (storage.Approval, storage.PresentedRefresh) {
	t.Helper()
	a := e.approval(p)
	check(t, e.s.Approve(e.ctx, a))
	r := e.redemption(a)
	r.From = "198.51.100.0/24"
	return a, e.redeem(t, r)
}

// state returns the introspection state of a token of a grant.
func (e *env) state(t testing.TB, a storage.Approval) storage.TokenState {
	t.Helper()
	s, err := e.s.TokenActive(e.ctx,
		storage.TokenKey{TokenID: "t", GrantID: a.Grant.ID, ClientID: a.Grant.ClientID, Now: e.now})
	check(t, err)
	return s
}

// connections checks the grants as users see them (PE-09).
func connections(t *testing.T, e *env) {
	t.Run("PE-09 a grant says from where it was given and used, first and last", func(t *testing.T) {
		p := e.person(t)
		se := e.begin(t, p, 1)
		p.session = se.Hash
		a, token := e.connected(t, p)
		got, err := e.s.Connection(e.ctx, p.ID, a.Grant.ID, e.now)
		check(t, err)
		want := storage.Connection{
			Grant: a.Grant, GivenAgent: se.Agent, GivenFrom: se.Address, FirstUsedAt: e.now, UsedAt: e.now,
			UsedFrom: "198.51.100.0/24",
		}
		want.Methods = se.Methods // AS-238
		same(t, got, want)
		r := e.rotation(a, token)
		r.From, r.Now = "203.0.113.0/24", e.now.Add(time.Hour)
		token = successor(r, e.rotate(t, r))
		want.UsedAt, want.UsedFrom = r.Now, r.From
		again := e.rotation(a, token)
		again.Now = e.now.Add(2 * time.Hour)
		e.rotate(t, again) // from an unknown network
		if _, hashed := token.(storage.HashedRefresh); !hashed {
			want.UsedAt = again.Now
			got, err = e.s.Connection(e.ctx, p.ID, a.Grant.ID, e.now)
			check(t, err)
			same(t, got, want)
		}
	})
	t.Run("PE-09 they are listed newest first, page by page, of one person, and while they are live", func(t *testing.T) {
		p := e.person(t)
		var want []string
		for range 5 {
			a, _ := e.connected(t, p)
			want = append(want, a.Grant.ID)
		}
		slices.Sort(want)
		slices.Reverse(want)
		gone, _ := e.connected(t, p)
		check(t, e.s.RevokeGrant(e.ctx, gone.Grant.ID, storage.ByOperator, e.now))
		check(t, e.s.Approve(e.ctx, e.approval(p))) // its code was not redeemed
		e.granted(t)                                // another user's
		var got []string
		for before := ""; ; before = got[len(got)-1] {
			page, err := e.s.Connections(e.ctx, p.ID, before, e.now, 2)
			check(t, err)
			if len(page) == 0 {
				break
			}
			for _, c := range page {
				got = append(got, c.ID)
			}
		}
		same(t, got, want)
		late, err := e.s.Connections(e.ctx, p.ID, "", e.now.Add(100*24*time.Hour), 10)
		check(t, err)
		same(t, len(late), 0)
	})
	t.Run("PE-08 the grant of another person is as unknown as one that never was", func(t *testing.T) {
		p, q := e.person(t), e.person(t)
		a, token := e.connected(t, q)
		for _, id := range []string{a.Grant.ID, "grt_unknown", ""} {
			_, err := e.s.Connection(e.ctx, p.ID, id, e.now)
			wantErr(t, err, storage.ErrNotFound)
			wantErr(t, e.s.NarrowGrant(e.ctx, p.ID, id, oauth.Scopes{"mcp"}, e.now), storage.ErrNotFound)
			wantErr(t, e.s.PauseGrant(e.ctx, p.ID, id, e.now), storage.ErrNotFound)
			wantErr(t, e.s.ResumeGrant(e.ctx, p.ID, id, e.now), storage.ErrNotFound)
		}
		e.wantLive(t, a, true)
		same(t, e.rotate(t, e.rotation(a, token)).Grant.Scopes, a.Grant.Scopes)
	})
}

// narrowings checks that a grant can be reduced and never extended (PE-10).
func narrowings(t *testing.T, e *env) {
	t.Run("PE-10 the client stays signed in as it was", func(t *testing.T) {
		p := e.person(t)
		a := e.approval(p)
		a.Grant.Scopes = oauth.Scopes{"mcp", "notes:write", oauth.OfflineAccess}
		check(t, e.s.Approve(e.ctx, a))
		_, err := e.s.RedeemCode(e.ctx, e.redemption(a))
		check(t, err)
		left := oauth.Scopes{"mcp", oauth.OfflineAccess}
		check(t, e.s.NarrowGrant(e.ctx, p.ID, a.Grant.ID, oauth.Scopes{"mcp"}, e.now))
		same(t, e.state(t, a).Scopes, left)
		v, err := e.s.Visit(e.ctx, storage.VisitKey{
			Session: p.session, ClientID: a.Grant.ClientID, Resource: a.Grant.Resource, Now: e.now,
		})
		check(t, err)
		same(t, v.Consented, left)
	})
	t.Run("PE-10 refreshes and introspection know the scopes that are left", func(t *testing.T) {
		p := e.person(t)
		a, token := e.connected(t, p)
		check(t, e.s.NarrowGrant(e.ctx, p.ID, a.Grant.ID, oauth.Scopes{"mcp"}, e.now))
		same(t, e.state(t, a), storage.TokenState{Active: true, Scopes: oauth.Scopes{"mcp"}})
		out := e.rotate(t, e.rotation(a, token))
		same(t, out.Grant.Scopes, oauth.Scopes{"mcp"})
		same(t, out.Grant.NarrowedAt, e.now)
		t.Run("and the consent to the others is forgotten", func(t *testing.T) {
			v, err := e.s.Visit(e.ctx, storage.VisitKey{
				Session: p.session, ClientID: a.Grant.ClientID, Resource: a.Grant.Resource, Now: e.now,
			})
			check(t, err)
			same(t, v.Consented, oauth.Scopes{"mcp"})
		})
		t.Run("wider is ErrWider, and changes nothing", func(t *testing.T) {
			for _, to := range []oauth.Scopes{{"mcp", "notes:write"}, {"admin"}, {""}} {
				wantErr(t, e.s.NarrowGrant(e.ctx, p.ID, a.Grant.ID, to, e.now), storage.ErrWider)
			}
			same(t, e.state(t, a).Scopes, oauth.Scopes{"mcp"})
		})
		t.Run("EN-02 the same is no error; something has to be left", func(t *testing.T) {
			check(t, e.s.NarrowGrant(e.ctx, p.ID, a.Grant.ID, oauth.Scopes{"mcp"}, e.now))
			for _, to := range []oauth.Scopes{nil, {oauth.OfflineAccess}} {
				err := e.s.NarrowGrant(e.ctx, p.ID, a.Grant.ID, to, e.now)
				if !errors.Is(err, storage.ErrNothing) && !errors.Is(err, storage.ErrWider) {
					t.Errorf("left %v: got %v", to, err)
				}
			}
			same(t, e.state(t, a).Scopes, oauth.Scopes{"mcp"})
		})
		t.Run("a grant that has ended cannot be narrowed", func(t *testing.T) {
			check(t, e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now))
			wantErr(t, e.s.NarrowGrant(e.ctx, p.ID, a.Grant.ID, nil, e.now), storage.ErrNotFound)
		})
	})
}

// pauses checks that a pause refuses every request and uses up no token (PE-09).
func pauses(t *testing.T, e *env) {
	t.Run("EN-02 it holds for each connection and registration of the application", func(t *testing.T) {
		applicationPauses(t, e)
	})
	t.Run("PE-09 a paused grant gives nothing, and everything again when it is resumed", func(t *testing.T) {
		p := e.person(t)
		a, token := e.connected(t, p)
		index := e.rotateIndex(t, a, token)
		token = index.token
		check(t, e.s.PauseGrant(e.ctx, p.ID, a.Grant.ID, e.now))
		check(t, e.s.PauseGrant(e.ctx, p.ID, a.Grant.ID, e.now.Add(time.Hour))) // since the first time
		e.wantLive(t, a, false)
		for range 3 {
			_, err := e.s.RotateRefresh(e.ctx, e.rotation(a, token))
			wantErr(t, err, storage.ErrPaused)
		}
		_, _, err := e.s.RefreshToken(e.ctx, token, e.now)
		wantErr(t, err, storage.ErrNotFound)
		listed, err := e.s.RevokedGrants(e.ctx, index.at, index.at+1)
		check(t, err)
		same(t, listed, []int64{index.at})
		got, err := e.s.Connection(e.ctx, p.ID, a.Grant.ID, e.now)
		check(t, err)
		same(t, got.PausedAt, e.now)

		check(t, e.s.ResumeGrant(e.ctx, p.ID, a.Grant.ID, e.now))
		check(t, e.s.ResumeGrant(e.ctx, p.ID, a.Grant.ID, e.now))
		e.wantLive(t, a, true)
		listed, err = e.s.RevokedGrants(e.ctx, index.at, index.at+1)
		check(t, err)
		same(t, len(listed), 0)
		if out := e.rotate(t, e.rotation(a, token)); out.Replayed {
			t.Error("the token was spent by the refused rotations")
		}
	})
	t.Run("PE-09 a paused grant that is revoked stays so", func(t *testing.T) {
		p := e.person(t)
		a, token := e.connected(t, p)
		check(t, e.s.PauseGrant(e.ctx, p.ID, a.Grant.ID, e.now))
		check(t, e.s.WithdrawGrant(e.ctx, a.Grant.ID, storage.ByPerson, e.now))
		wantErr(t, e.s.ResumeGrant(e.ctx, p.ID, a.Grant.ID, e.now), storage.ErrNotFound)
		e.wantLive(t, a, false)
		e.wantRefreshRefused(t, a, token)
	})
}

// indexed is the newest refresh token of a grant, with the grant's status index.
type indexed struct {
	token storage.PresentedRefresh
	at    int64
}

func (e *env) rotateIndex(t testing.TB, a storage.Approval, token storage.PresentedRefresh) indexed {
	t.Helper()
	r := e.rotation(a, token)
	out := e.rotate(t, r)
	return indexed{successor(r, out), out.Grant.StatusIndex}
}

// stops checks that one call ends all access of one user (PE-10).
func stops(t *testing.T, e *env) {
	p, q := e.person(t), e.person(t)
	se := e.begin(t, p, 1)
	a, token := e.connected(t, p)
	paused, _ := e.connected(t, p)
	check(t, e.s.PauseGrant(e.ctx, p.ID, paused.Grant.ID, e.now))
	other, otherToken := e.connected(t, q)
	waiting := e.approval(p)
	check(t, e.s.Approve(e.ctx, waiting))

	check(t, e.s.StopEverything(e.ctx, p.ID, e.now))
	t.Run("PE-10 stop everything ends all sessions, grants, tokens and codes of the person", func(t *testing.T) {
		e.wantSession(t, p.session, false)
		e.wantSession(t, se.Hash, false)
		e.wantLive(t, a, false)
		e.wantLive(t, paused, false)
		e.wantRefreshRefused(t, a, token)
		e.wantRevoked(t, a, token, storage.ByPerson)
		_, err := e.s.RedeemCode(e.ctx, e.redemption(waiting))
		wantErr(t, err, storage.ErrRevoked)
	})
	t.Run("PE-10 and nothing of another person", func(t *testing.T) {
		e.wantSession(t, q.session, true)
		e.wantLive(t, other, true)
		e.rotate(t, e.rotation(other, otherToken))
	})
	t.Run("the account stays, and consents are asked for again", func(t *testing.T) {
		_, err := e.s.User(e.ctx, p.ID)
		check(t, err)
		e.signIn(t, p)
		v, err := e.s.Visit(e.ctx, storage.VisitKey{
			Session: p.session, ClientID: a.Grant.ClientID, Resource: a.Grant.Resource, Now: e.now,
		})
		check(t, err)
		if v.Consented != nil || v.Known {
			t.Errorf("got %v, known %v", v.Consented, v.Known)
		}
		check(t, e.s.StopEverything(e.ctx, p.ID, e.now))
		check(t, e.s.StopEverything(e.ctx, "usr_unknown", e.now))
	})
	t.Run("PE-10 nor does a trip to a provider for which the browser had left by then", func(t *testing.T) {
		a, u := e.arrived(t)
		check(t, e.s.StopEverything(e.ctx, u.ID, e.now))
		for _, early := range []storage.Arrival{e.again(a), e.link("other", u.ID)} {
			early.LeftAt = e.now
			_, err := e.s.Arrive(e.ctx, early)
			wantErr(t, err, storage.ErrStopped)
			e.notStored(t, early)
			early.LeftAt = e.now.Add(time.Millisecond)
			e.arrive(t, early)
		}
		check(t, e.s.SetUserDisabled(e.ctx, u.ID, true, e.now))
		late := e.again(a)
		late.LeftAt = e.now
		_, err := e.s.Arrive(e.ctx, late)
		wantErr(t, err, storage.ErrRevoked)
	})
	t.Run("PE-10 a sign-in that had begun by then begins no session, a later one does", func(t *testing.T) {
		p := e.person(t)
		begin := func(at time.Time) (storage.Session, error) {
			se := storage.Session{Hash: randomHash(), UserID: p.ID, CreatedAt: e.now, ExpiresAt: e.now.Add(time.Hour)}
			return se, e.s.PutSession(e.ctx, se, storage.SignInStart{PasswordHash: p.PasswordHash, At: at})
		}
		_, err := begin(e.now.Add(-time.Hour))
		check(t, err)
		check(t, e.s.StopEverything(e.ctx, p.ID, e.now))
		check(t, e.s.StopEverything(e.ctx, p.ID, e.now.Add(-time.Minute))) // by a clock that is behind
		for _, at := range []time.Time{e.now.Add(-time.Minute), e.now} {
			se, err := begin(at)
			wantErr(t, err, storage.ErrNotFound)
			e.wantSession(t, se.Hash, false)
		}
		se, err := begin(e.now.Add(time.Millisecond))
		check(t, err)
		e.wantSession(t, se.Hash, true)
	})
	t.Run("sessions at providers end, and their tokens are handed back", func(t *testing.T) {
		arrival := e.arrival()
		u := e.arrive(t, arrival)
		check(t, e.s.StopEverything(e.ctx, u.ID, e.now))
		up, err := e.s.Upstream(e.ctx, arrival.Upstream.ID)
		check(t, err)
		if up.EndedAt.IsZero() || up.Sealed != nil {
			t.Errorf("got %+v, want it ended and its tokens erased", up)
		}
	})
}

// raceDisconnect disconnects a client while it refreshes. No refresh restores the grant, and none
// succeeds after the disconnection (field rule 10).
func raceDisconnect(t *testing.T, e *env) {
	for range 20 {
		p := e.person(t)
		a, token := e.connected(t, p)
		var refreshes tally
		compete(func(i int) {
			if i == 0 {
				check(t, e.s.WithdrawGrant(e.ctx, a.Grant.ID, storage.ByPerson, e.now))
				_, err := e.s.RotateRefresh(e.ctx, e.rotation(a, token))
				wantErr(t, err, storage.ErrRevoked)
				return
			}
			_, err := e.s.RotateRefresh(e.ctx, e.rotation(a, token))
			refreshes.add(err, storage.ErrRevoked)
		})
		for _, err := range refreshes.odd {
			t.Error(err)
		}
		e.wantLive(t, a, false)
		e.wantRefreshRefused(t, a, token)
	}
}

// raceNarrow narrows a grant in many windows while it is refreshed. Each removed scope must be
// gone.
func raceNarrow(t *testing.T, e *env) {
	p := e.person(t)
	a, token := e.connected(t, p)
	compete(func(i int) {
		var err error
		switch i % 3 {
		case 0:
			err = e.s.NarrowGrant(e.ctx, p.ID, a.Grant.ID, oauth.Scopes{"mcp"}, e.now)
		case 1:
			err = e.s.NarrowGrant(e.ctx, p.ID, a.Grant.ID, oauth.Scopes{"notes:write"}, e.now)
		default:
			_, err = e.s.RotateRefresh(e.ctx, e.rotation(a, token))
		}
		if err != nil && !errors.Is(err, storage.ErrWider) {
			t.Error(err)
		}
	})
	if left := e.state(t, a).Scopes; len(left) != 1 {
		t.Errorf("got %v, want the scope of the first narrowing alone", left)
	}
}
