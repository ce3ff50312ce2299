package storagetest

import (
	"context"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// programKey returns a user's key, valid for a day, not stored yet.
func (e *env) programKey(p person) storage.ProgramKey {
	secret := randomHash()
	id := secrets.ID("key_")
	return storage.ProgramKey{
		Session: p.session,
		Client: storage.Client{
			ID: id, SecretHash: &secret, Name: "Nightly report", AuthMethod: "client_secret_basic",
			Scopes: oauth.Scopes{"mcp", "notes:write"}, Resources: []string{"https://mcp.example/mcp"},
			Source: storage.SourcePerson, CreatedAt: e.now,
		},
		Grant: storage.Grant{
			ID: secrets.ID("gr_"), ClientID: id, UserID: p.ID, Scopes: oauth.Scopes{"mcp", "notes:write"},
			Resource: "https://mcp.example/mcp", CreatedAt: e.now, ExpiresAt: e.now.Add(24 * time.Hour),
		},
	}
}

// madeKey stores a key of a new user.
func (e *env) madeKey(t testing.TB) (person, storage.ProgramKey) {
	t.Helper()
	p := e.person(t)
	k := e.programKey(p)
	check(t, e.s.MakeProgramKey(e.ctx, k))
	return p, k
}

func (e *env) useKey(k storage.ProgramKey, now time.Time) (storage.Grant, error) {
	return e.s.UseProgramKey(e.ctx, storage.ProgramKeyUse{ClientID: k.Client.ID, From: "198.51.100.0/24", Now: now})
}

// programKeys checks program keys and their end (PE-17).
func programKeys(t *testing.T, e *env) {
	t.Run("PE-17 a key is a client and a grant, which its use returns", func(t *testing.T) { keyUses(t, e) })
	t.Run("PE-17 no more than the bound, and only live ones count", func(t *testing.T) { keyBound(t, e) })
	t.Run("PE-17 nothing is stored of a key that may not be made", func(t *testing.T) { unmadeKeys(t, e) })
	t.Run("PE-17 what ends a key", func(t *testing.T) { keyEnds(t, e) })
	t.Run("PE-17 the client of a key goes with its grant", func(t *testing.T) { sweptKeys(t, e) })
}

func keyUses(t *testing.T, e *env) {
	p := e.person(t)
	se := e.begin(t, p, 1)
	p.session = se.Hash
	k := e.programKey(p)
	check(t, e.s.MakeProgramKey(e.ctx, k))
	cl, err := e.s.Client(e.ctx, k.Client.ID)
	check(t, err)
	same(t, cl, k.Client)
	want := storage.Connection{Grant: k.Grant, GivenAgent: se.Agent, GivenFrom: se.Address}
	want.ForProgram = true
	e.wantKeys(t, p, e.now, want)
	t.Run("it is not among the connections, and is found as one", func(t *testing.T) {
		e.connected(t, p)
		page, err := e.s.Connections(e.ctx, p.ID, "", e.now, 10)
		check(t, err)
		same(t, len(page), 1)
		got, err := e.s.Connection(e.ctx, p.ID, k.Grant.ID, e.now)
		check(t, err)
		same(t, unnumbered(got), want)
	})
	t.Run("its uses are noted, those from nowhere known too", func(t *testing.T) {
		g, err := e.useKey(k, e.now.Add(time.Hour))
		check(t, err)
		g.StatusIndex = 0
		same(t, g, want.Grant)
		_, err = e.s.UseProgramKey(e.ctx,
			storage.ProgramKeyUse{ClientID: k.Client.ID, Now: e.now.Add(2 * time.Hour)})
		check(t, err)
		want.UsedAt, want.UsedFrom = e.now.Add(2*time.Hour), "198.51.100.0/24"
		e.wantKeys(t, p, e.now, want)
		cl, err := e.s.Client(e.ctx, k.Client.ID)
		check(t, err)
		same(t, cl.LastUsedAt, e.now.Add(2*time.Hour))
	})
	t.Run("at its expiry it is expired, and listed no more", func(t *testing.T) {
		_, err := e.useKey(k, k.Grant.ExpiresAt.Add(-time.Millisecond))
		check(t, err)
		_, err = e.useKey(k, k.Grant.ExpiresAt)
		wantErr(t, err, storage.ErrExpired)
		e.wantKeys(t, p, k.Grant.ExpiresAt)
	})
	t.Run("another client is no key, be it one with a grant", func(t *testing.T) {
		a, _ := e.granted(t)
		for _, id := range []string{a.Grant.ClientID, "key_unknown", ""} {
			_, err := e.s.UseProgramKey(e.ctx, storage.ProgramKeyUse{ClientID: id, Now: e.now})
			wantErr(t, err, storage.ErrNotFound)
		}
	})
	t.Run("no code redeems it", func(t *testing.T) {
		_, err := e.s.RedeemCode(e.ctx, storage.RedeemCode{GrantID: k.Grant.ID, ClientID: k.Client.ID, Now: e.now})
		wantErr(t, err, storage.ErrMismatch)
		_, err = e.useKey(k, e.now)
		check(t, err)
	})
}

// wantKeys checks which keys a user has.
func (e *env) wantKeys(t testing.TB, p person, now time.Time, want ...storage.Connection) {
	t.Helper()
	got, err := e.s.ProgramKeys(e.ctx, p.ID, now)
	check(t, err)
	for i := range got {
		got[i] = unnumbered(got[i])
	}
	same(t, got, want)
}

// unnumbered returns a connection without its status index.
func unnumbered(c storage.Connection) storage.Connection {
	c.StatusIndex = 0
	return c
}

func keyBound(t *testing.T, e *env) {
	p := e.person(t)
	var all []storage.ProgramKey
	for range storage.MaxProgramKeys {
		all = append(all, e.programKey(p))
		check(t, e.s.MakeProgramKey(e.ctx, all[len(all)-1]))
	}
	k := e.programKey(p)
	wantErr(t, e.s.MakeProgramKey(e.ctx, k), storage.ErrFull)
	_, err := e.s.Client(e.ctx, k.Client.ID)
	wantErr(t, err, storage.ErrNotFound)
	wantErr(t, e.s.MakeProgramKey(e.ctx, all[0]), storage.ErrExists) // an existing key
	e.madeKey(t)                                                     // the limit is per user
	check(t, e.s.PauseGrant(e.ctx, p.ID, all[0].Grant.ID, e.now))
	wantErr(t, e.s.MakeProgramKey(e.ctx, k), storage.ErrFull) // a paused key counts
	check(t, e.s.WithdrawGrant(e.ctx, all[1].Grant.ID, storage.ByPerson, e.now))
	check(t, e.s.MakeProgramKey(e.ctx, k))
	late := e.programKey(p)
	late.Grant.CreatedAt, late.Grant.ExpiresAt = k.Grant.ExpiresAt, k.Grant.ExpiresAt.Add(time.Hour)
	se := storage.Session{Hash: randomHash(), UserID: p.ID, CreatedAt: e.now, ExpiresAt: e.now.Add(72 * time.Hour)}
	check(t, e.s.PutSession(e.ctx, se, storage.SignInStart{}))
	late.Session = se.Hash
	check(t, e.s.MakeProgramKey(e.ctx, late)) // all others have expired
}

func unmadeKeys(t *testing.T, e *env) {
	p, q := e.person(t), e.person(t)
	disabled := e.person(t)
	check(t, e.s.SetUserDisabled(e.ctx, disabled.ID, true, e.now))
	late, unknown, another := e.programKey(p), e.programKey(p), e.programKey(p)
	late.Grant.CreatedAt, late.Grant.ExpiresAt = e.now.Add(24*time.Hour), e.now.Add(48*time.Hour)
	unknown.Session, another.Session = randomHash(), q.session
	for name, k := range map[string]storage.ProgramKey{
		"in no session":               unknown,
		"in the session of another":   another,
		"in a session that has ended": late,
		"of a disabled account":       e.programKey(disabled),
	} {
		t.Run(name, func(t *testing.T) {
			wantErr(t, e.s.MakeProgramKey(e.ctx, k), storage.ErrNotFound)
			_, err := e.s.Client(e.ctx, k.Client.ID)
			wantErr(t, err, storage.ErrNotFound)
			_, err = e.useKey(k, k.Grant.CreatedAt)
			wantErr(t, err, storage.ErrNotFound)
		})
	}
	t.Run("that would not end, or be another kind of client", func(t *testing.T) {
		endless, other, open := e.programKey(p), e.programKey(p), e.programKey(p)
		endless.Grant.ExpiresAt = time.Time{}
		other.Client.Source = storage.SourceStatic
		open.Client.SecretHash = nil
		for _, k := range []storage.ProgramKey{endless, other, open} {
			if err := e.s.MakeProgramKey(e.ctx, k); err == nil {
				t.Errorf("%+v was stored", k)
			}
		}
	})
}

// keyEnds checks that a key ends with its grant, whatever ends that.
func keyEnds(t *testing.T, e *env) {
	for name, end := range map[string]func(p person, k storage.ProgramKey) error{
		"a disconnection": func(_ person, k storage.ProgramKey) error {
			return e.s.WithdrawGrant(e.ctx, k.Grant.ID, storage.ByPerson, e.now)
		},
		"everything stops": func(p person, _ storage.ProgramKey) error {
			return e.s.StopEverything(e.ctx, p.ID, e.now)
		},
		"the account disabled": func(p person, _ storage.ProgramKey) error {
			return e.s.SetUserDisabled(e.ctx, p.ID, true, e.now)
		},
		"the account deleted": func(p person, _ storage.ProgramKey) error {
			return e.s.DeleteUser(e.ctx, p.ID, e.now)
		},
		"the client deleted": func(_ person, k storage.ProgramKey) error {
			return e.s.DeleteClient(e.ctx, k.Client.ID, e.now)
		},
		"a cut of the person": func(p person, _ storage.ProgramKey) error {
			_, err := e.s.CutGrants(e.ctx, storage.Selection{UserID: p.ID}, storage.ByOperator, e.now)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, k := e.madeKey(t)
			_, other := e.madeKey(t)
			check(t, end(p, k))
			_, err := e.useKey(k, e.now)
			wantErr(t, err, storage.ErrRevoked)
			e.wantKeys(t, p, e.now)
			got, err := e.s.TokenActive(e.ctx,
				storage.TokenKey{TokenID: "t", GrantID: k.Grant.ID, ClientID: k.Client.ID, Now: e.now})
			check(t, err)
			same(t, got.Active, false)
			_, err = e.useKey(other, e.now)
			check(t, err)
		})
	}
	t.Run("a pause, until it is over; and it keeps what it was left", func(t *testing.T) {
		p, k := e.madeKey(t)
		check(t, e.s.PauseGrant(e.ctx, p.ID, k.Grant.ID, e.now))
		_, err := e.useKey(k, e.now)
		wantErr(t, err, storage.ErrPaused)
		check(t, e.s.NarrowGrant(e.ctx, p.ID, k.Grant.ID, oauth.Scopes{"mcp"}, e.now))
		wantErr(t, e.s.NarrowGrant(e.ctx, p.ID, k.Grant.ID, k.Grant.Scopes, e.now), storage.ErrWider)
		check(t, e.s.ResumeGrant(e.ctx, p.ID, k.Grant.ID, e.now))
		g, err := e.useKey(k, e.now)
		check(t, err)
		same(t, g.Scopes, oauth.Scopes{"mcp"})
	})
	t.Run("but not a sign-out", func(t *testing.T) {
		p, k := e.madeKey(t)
		check(t, e.s.EndSession(e.ctx, p.session, e.now))
		_, err := e.useKey(k, e.now)
		check(t, err)
	})
}

func sweptKeys(t *testing.T, e *env) {
	gone := func(k storage.ProgramKey, want error) {
		t.Helper()
		_, err := e.s.Client(e.ctx, k.Client.ID)
		wantErr(t, err, want)
	}
	sweep := func(now time.Time) {
		t.Helper()
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: now}, 1000)
		check(t, err)
	}
	_, expired := e.madeKey(t)
	_, ended := e.madeKey(t)
	p, kept := e.person(t), storage.ProgramKey{}
	kept = e.programKey(p)
	kept.Grant.ExpiresAt = e.now.Add(90 * 24 * time.Hour)
	check(t, e.s.MakeProgramKey(e.ctx, kept))
	app, _ := e.granted(t)
	check(t, e.s.RevokeGrant(e.ctx, ended.Grant.ID, storage.ByPerson, e.now))
	check(t, e.s.RevokeGrant(e.ctx, app.Grant.ID, storage.ByPerson, e.now))
	sweep(e.now.Add(23 * time.Hour))
	gone(expired, nil)
	gone(ended, nil)
	sweep(e.now.Add(25 * time.Hour))
	gone(expired, storage.ErrNotFound)
	gone(ended, storage.ErrNotFound)
	gone(kept, nil)
	_, err := e.s.Client(e.ctx, app.Grant.ClientID) // it may ask another user
	check(t, err)
	_, err = e.useKey(kept, e.now.Add(25*time.Hour))
	check(t, err)
}

// raceMakeKey checks that concurrent calls cannot exceed the limit.
func raceMakeKey(t *testing.T, e *env) {
	p := e.person(t)
	var c tally
	compete(func(int) { c.add(e.s.MakeProgramKey(e.ctx, e.programKey(p)), storage.ErrFull) })
	c.want(t, storage.MaxProgramKeys)
	keys, err := e.s.ProgramKeys(context.Background(), p.ID, e.now)
	check(t, err)
	same(t, len(keys), storage.MaxProgramKeys)
}

// raceSameKey checks that a form that is posted several times makes one key.
func raceSameKey(t *testing.T, e *env) {
	k := e.programKey(e.person(t))
	var c tally
	compete(func(int) { c.add(e.s.MakeProgramKey(e.ctx, k), storage.ErrExists) })
	c.want(t, 1)
}

// raceKeyCutOff checks that no key outlives a StopEverything that runs at the same time.
func raceKeyCutOff(t *testing.T, e *env) {
	p := e.person(t)
	all := make([]storage.ProgramKey, racers)
	for i := range all {
		all[i] = e.programKey(p)
	}
	var c tally
	compete(func(i int) {
		if i == racers/2 {
			c.add(e.s.StopEverything(e.ctx, p.ID, e.now))
			return
		}
		c.add(e.s.MakeProgramKey(e.ctx, all[i]), storage.ErrFull, storage.ErrNotFound)
	})
	for _, err := range c.odd {
		t.Error(err)
	}
	e.wantKeys(t, p, e.now)
}
