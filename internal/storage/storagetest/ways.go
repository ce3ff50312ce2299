package storagetest

import (
	"bytes"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const here = "auth.example"

// served is the admission of the tests.
var served = storage.Admission{
	Passwords: true, RPIDs: []string{here, "old.example"}, Providers: []string{"acme", "other"},
}

func (e *env) passkey(userID string) storage.Way {
	return storage.Way{
		ID: secrets.ID("way_"), UserID: userID, Kind: storage.Passkey, Name: "Phone", RPID: here,
		CredentialID: hashBytes(), Data: []byte(`{"publicKey":"x"}`), Counter: 7, CreatedAt: e.now,
	}
}

func (e *env) app(userID string) storage.Way {
	return storage.Way{
		ID: secrets.ID("way_"), UserID: userID, Kind: storage.App, Name: "App", Data: []byte("sealed"),
		CreatedAt: e.now,
	}
}

// add stores an authentication method.
func (e *env) add(t testing.TB, w storage.Way) storage.Way {
	t.Helper()
	check(t, e.s.AddWay(e.ctx, w, storage.Hash{}))
	return w
}

func (e *env) wantWays(t testing.TB, userID string, want ...storage.Way) {
	t.Helper()
	got, err := e.s.Ways(e.ctx, userID)
	check(t, err)
	same(t, got, want)
}

// untie returns the request to remove an identity of a user.
func (e *env) untie(userID string, i storage.Identity) storage.Untie {
	return storage.Untie{
		UserID: userID, Connector: i.Connector, Subject: i.Subject, Reason: "disconnected", By: served, Now: e.now,
	}
}

func ways(t *testing.T, e *env) {
	p := e.person(t)
	first, second := e.passkey(p.ID), e.app(p.ID)
	second.CreatedAt = e.now.Add(time.Second)
	t.Run("what was added is listed, oldest first, and a passkey found by its credential", func(t *testing.T) {
		e.add(t, second)
		e.add(t, first)
		e.wantWays(t, p.ID, first, second)
		w, u, err := e.s.PasskeyOwner(e.ctx, first.CredentialID)
		check(t, err)
		same(t, w, first)
		same(t, u, p.User)
		_, _, err = e.s.PasskeyOwner(e.ctx, []byte("none"))
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("a credential belongs to one person, and an id to one way", func(t *testing.T) {
		again := e.passkey(e.person(t).ID)
		again.CredentialID = first.CredentialID
		wantErr(t, e.s.AddWay(e.ctx, again, storage.Hash{}), storage.ErrExists)
		again = e.passkey(p.ID)
		again.ID = first.ID
		wantErr(t, e.s.AddWay(e.ctx, again, storage.Hash{}), storage.ErrExists)
	})
	t.Run("PE-07 a use moves the counter from what was read, or changes nothing", func(t *testing.T) {
		use := storage.WayUse{ID: first.ID, From: 6, To: 8, Now: e.now}
		wantErr(t, e.s.UseWay(e.ctx, use), storage.ErrChanged)
		e.wantWays(t, p.ID, first, second)
		use.From = 7
		check(t, e.s.UseWay(e.ctx, use))
		wantErr(t, e.s.UseWay(e.ctx, use), storage.ErrChanged)
		first.Counter, first.LastUsedAt = 8, e.now
		use.From, use.Data = 8, []byte("new")
		check(t, e.s.UseWay(e.ctx, use))
		first.Data = []byte("new")
		e.wantWays(t, p.ID, first, second)
		wantErr(t, e.s.UseWay(e.ctx, storage.WayUse{ID: "way_none", Now: e.now}), storage.ErrNotFound)
	})
	t.Run("a person renames their own ways", func(t *testing.T) {
		before, err := e.s.RenameWay(e.ctx, p.ID, first.ID, "Laptop", storage.Hash{})
		check(t, err)
		same(t, before, first.Name)
		first.Name = "Laptop"
		_, err = e.s.RenameWay(e.ctx, e.person(t).ID, first.ID, "Mine", storage.Hash{})
		wantErr(t, err, storage.ErrNotFound)
		e.wantWays(t, p.ID, first, second)
	})
	t.Run("there are 20 at most, of them 5 apps", func(t *testing.T) {
		apps := 0
		for _, w := range []storage.Way{first, second} {
			if w.Kind == storage.App {
				apps++
			}
		}
		for range storage.MaxApps - apps {
			e.add(t, e.app(p.ID))
		}
		wantErr(t, e.s.AddWay(e.ctx, e.app(p.ID), storage.Hash{}), storage.ErrFull)
		for range storage.MaxWays - storage.MaxApps - 2 + apps {
			e.add(t, e.passkey(p.ID))
		}
		wantErr(t, e.s.AddWay(e.ctx, e.passkey(p.ID), storage.Hash{}), storage.ErrFull)
	})
	t.Run("an account that is disabled or gone gets none; what it has stays, or goes with it", func(t *testing.T) {
		q := e.person(t)
		w := e.add(t, e.passkey(q.ID))
		code := randomHash()
		check(t, e.s.ReplaceRecoveryCodes(e.ctx, q.ID, []storage.Hash{code}, storage.Hash{}))
		check(t, e.s.SetUserDisabled(e.ctx, q.ID, true, e.now))
		wantErr(t, e.s.AddWay(e.ctx, e.passkey(q.ID), storage.Hash{}), storage.ErrNotFound)
		wantErr(t, e.s.ReplaceRecoveryCodes(e.ctx, q.ID, nil, storage.Hash{}), storage.ErrNotFound)
		wantErr(t, e.spendCode(q.ID, code), storage.ErrNotFound)
		e.wantWays(t, q.ID, w)
		check(t, e.s.DeleteUser(e.ctx, q.ID, e.now))
		wantErr(t, e.s.AddWay(e.ctx, e.passkey(q.ID), storage.Hash{}), storage.ErrNotFound)
		e.wantWays(t, q.ID)
		_, _, err := e.s.PasskeyOwner(e.ctx, w.CredentialID)
		wantErr(t, err, storage.ErrNotFound)
		check(t, e.s.CreateUser(e.ctx, q.User)) // with the same id: the old codes must be gone
		wantErr(t, e.spendCode(q.ID, code), storage.ErrNotFound)
	})
}

// lastWay removes authentication methods until one is refused.
func lastWay(t *testing.T, e *env) {
	remove := func(w storage.Way) error { return e.s.RemoveWay(e.ctx, w.UserID, w.ID, served, storage.Hash{}) }
	t.Run("PE-03 the last passkey stays, whatever else does not let in alone", func(t *testing.T) {
		p := e.person(t)
		one, two, app := e.add(t, e.passkey(p.ID)), e.add(t, e.passkey(p.ID)), e.app(p.ID)
		app.CreatedAt = e.now.Add(time.Second) // they are listed by age
		e.add(t, app)
		check(t, e.s.ReplaceRecoveryCodes(e.ctx, p.ID, []storage.Hash{randomHash()}, storage.Hash{}))
		check(t, remove(one))
		wantErr(t, remove(two), storage.ErrLast)
		e.wantWays(t, p.ID, two, app)
		check(t, remove(app))
		wantErr(t, remove(app), storage.ErrNotFound)
		check(t, e.s.TakeWay(e.ctx, p.ID, two.ID))
		wantErr(t, e.s.TakeWay(e.ctx, p.ID, two.ID), storage.ErrNotFound)
	})
	t.Run("PE-02 a passkey of a relying party that is not served lets no person in", func(t *testing.T) {
		p := e.person(t)
		lost, one := e.passkey(p.ID), e.add(t, e.passkey(p.ID))
		lost.RPID = "gone.example"
		e.add(t, lost)
		wantErr(t, remove(one), storage.ErrLast)
		check(t, remove(e.addOld(t, p)))
	})
	t.Run("a password is enough to remove the passkey, and a passkey to remove the password", func(t *testing.T) {
		p := e.person(t)
		check(t, e.s.SetPassword(e.ctx, p.ID, "$hash", false, e.now))
		wantErr(t, e.s.RemovePassword(e.ctx, p.ID, served, storage.Hash{}), storage.ErrLast)
		one := e.add(t, e.passkey(p.ID))
		check(t, remove(one))
		e.add(t, e.app(p.ID))
		wantErr(t, e.s.RemovePassword(e.ctx, p.ID, served, storage.Hash{}), storage.ErrLast)
		two := e.add(t, e.passkey(p.ID))
		check(t, e.s.RemovePassword(e.ctx, p.ID, served, storage.Hash{}))
		wantErr(t, e.s.RemovePassword(e.ctx, p.ID, served, storage.Hash{}), storage.ErrNotFound)
		wantErr(t, remove(two), storage.ErrLast)
		u, err := e.s.User(e.ctx, p.ID)
		check(t, err)
		same(t, u.PasswordHash, "")
		wantErr(t, e.s.RemovePassword(e.ctx, "usr_none", served, storage.Hash{}), storage.ErrNotFound)
	})
	t.Run("so is an account at a provider, and the other way round", func(t *testing.T) {
		a, u := e.tied(t)
		one := e.add(t, e.passkey(u.ID))
		check(t, remove(one))
		_, err := e.s.Unlink(e.ctx, e.untie(u.ID, a.Identity))
		wantErr(t, err, storage.ErrLast)
		lost := e.passkey(u.ID)
		lost.RPID = "gone.example"
		e.add(t, lost)
		_, err = e.s.Unlink(e.ctx, e.untie(u.ID, a.Identity))
		wantErr(t, err, storage.ErrLast)
		two := e.add(t, e.passkey(u.ID))
		_, err = e.s.Unlink(e.ctx, e.untie(u.ID, a.Identity))
		check(t, err)
		wantErr(t, remove(two), storage.ErrLast)
	})
	t.Run("PE-03 what is configured no more lets no person in", func(t *testing.T) {
		a, u := e.tied(t)
		check(t, e.s.SetPassword(e.ctx, u.ID, "$hash", false, e.now))
		one := e.add(t, e.passkey(u.ID))
		none := served
		none.Passwords, none.Providers = false, []string{"other"}
		wantErr(t, e.s.RemoveWay(e.ctx, u.ID, one.ID, none, storage.Hash{}), storage.ErrLast)
		without := func(off func(*storage.Admission)) (err error) {
			by := served
			off(&by)
			f, err := e.s.Factors(e.ctx, u.ID, by)
			check(t, err)
			if f.Password != by.Passwords || (f.Identities == 1) != (len(by.Providers) == 2) {
				t.Errorf("got %+v of %+v", f, by)
			}
			untie := e.untie(u.ID, a.Identity)
			untie.By = by
			untie.By.RPIDs = nil
			_, err = e.s.Unlink(e.ctx, untie)
			return err
		}
		wantErr(t, without(func(by *storage.Admission) { by.Passwords = false }), storage.ErrLast)
		noProvider := served
		noProvider.Providers, noProvider.RPIDs = nil, nil
		wantErr(t, e.s.RemovePassword(e.ctx, u.ID, noProvider, storage.Hash{}), storage.ErrLast)
		check(t, without(func(by *storage.Admission) { by.Providers = nil }))
	})
	t.Run("no person removes another one's way", func(t *testing.T) {
		p := e.person(t)
		w := e.add(t, e.app(p.ID))
		other := e.person(t).ID
		wantErr(t, e.s.RemoveWay(e.ctx, other, w.ID, served, storage.Hash{}), storage.ErrNotFound)
		wantErr(t, e.s.TakeWay(e.ctx, other, w.ID), storage.ErrNotFound)
		wantErr(t, e.s.RemoveWay(e.ctx, "usr_none", w.ID, served, storage.Hash{}), storage.ErrNotFound)
		e.wantWays(t, p.ID, w)
	})
}

// addOld stores a passkey of a previous host.
func (e *env) addOld(t testing.TB, p person) storage.Way {
	w := e.passkey(p.ID)
	w.RPID = "old.example"
	return e.add(t, w)
}

func factors(t *testing.T, e *env) {
	p := e.person(t)
	want := func(f storage.Factors) {
		t.Helper()
		got, err := e.s.Factors(e.ctx, p.ID, served)
		check(t, err)
		same(t, got, f)
	}
	want(storage.Factors{})
	check(t, e.s.SetPassword(e.ctx, p.ID, "$hash", false, e.now))
	e.add(t, e.passkey(p.ID))
	e.addOld(t, p)
	lost := e.passkey(p.ID)
	lost.RPID = "gone.example"
	e.add(t, lost)
	e.add(t, e.app(p.ID))
	codes := []storage.Hash{randomHash(), randomHash()}
	check(t, e.s.ReplaceRecoveryCodes(e.ctx, p.ID, codes, storage.Hash{}))
	check(t, e.spendCode(p.ID, codes[0]))
	e.arrive(t, e.link("acme", p.ID))
	f := storage.Factors{Password: true, Passkeys: 2, Apps: 1, RecoveryCodes: 1, Identities: 1}
	want(f)
	root := storage.User{ID: "usr_root", Name: "root", Role: storage.Administrator, CreatedAt: e.now}
	check(t, e.s.CreateUser(e.ctx, root))
	want(f)
	e.add(t, e.app(root.ID))
	f.AdminEnrolled = true
	want(f)
	_, err := e.s.Factors(e.ctx, "usr_none", served)
	wantErr(t, err, storage.ErrNotFound)
}

func wayCustody(t *testing.T, e *env) {
	p, q := e.person(t), e.person(t)
	check(t, e.s.SetPassword(e.ctx, q.ID, "$hash", false, e.now))
	e.add(t, e.passkey(p.ID))
	e.add(t, e.passkey(q.ID))
	e.addOld(t, q)
	t.Run("PE-02 passkeys are counted by relying party, with those who have nothing else", func(t *testing.T) {
		got, err := e.s.PasskeyHosts(e.ctx, served)
		check(t, err)
		same(t, got, []storage.PasskeyHost{
			{RPID: here, Passkeys: 2, People: 2, Only: 1}, {RPID: "old.example", Passkeys: 1, People: 1},
		})
	})
	t.Run("apps are listed page by page, and sealed again where nothing has changed", func(t *testing.T) {
		var want []storage.Way
		for range 3 {
			want = append(want, e.add(t, e.app(p.ID)))
		}
		var got []storage.Way
		for after := ""; ; after = got[len(got)-1].ID {
			page, err := e.s.SealedWays(e.ctx, after, 2)
			check(t, err)
			got = append(got, page...)
			if len(page) < 2 {
				break
			}
		}
		if len(got) != len(want) {
			t.Fatalf("got %d, want %d", len(got), len(want))
		}
		wantErr(t, e.s.ResealWay(e.ctx, got[0].ID, []byte("other"), []byte("new")), storage.ErrSpent)
		wantErr(t, e.s.ResealWay(e.ctx, "way_none", got[0].Data, []byte("new")), storage.ErrSpent)
		check(t, e.s.ResealWay(e.ctx, got[0].ID, got[0].Data, []byte("new")))
		page, err := e.s.SealedWays(e.ctx, "", 1)
		check(t, err)
		if len(page) != 1 || !bytes.Equal(page[0].Data, []byte("new")) {
			t.Errorf("got %+v", page)
		}
	})
}

func raceUse(t *testing.T, e *env) {
	w := e.add(t, e.passkey(e.person(t).ID))
	var c tally
	compete(func(i int) {
		use := storage.WayUse{ID: w.ID, From: w.Counter, To: w.Counter + int64(i) + 1, Now: e.now}
		c.add(e.s.UseWay(e.ctx, use), storage.ErrChanged)
	})
	c.want(t, 1)
}

// raceLast removes two passkeys, a password, a provider account and the recovery codes at once. One
// remains, and it is not the codes.
func raceLast(t *testing.T, e *env) {
	for range 4 {
		a, u := e.tied(t)
		check(t, e.s.SetPassword(e.ctx, u.ID, "$hash", false, e.now))
		one, two := e.add(t, e.passkey(u.ID)), e.add(t, e.passkey(u.ID))
		check(t, e.s.ReplaceRecoveryCodes(e.ctx, u.ID, []storage.Hash{randomHash(), randomHash()}, storage.Hash{}))
		var c tally
		compete(func(i int) {
			var err error
			switch i % 5 {
			case 0:
				err = e.s.RemoveWay(e.ctx, u.ID, one.ID, served, storage.Hash{})
			case 1:
				err = e.s.RemoveWay(e.ctx, u.ID, two.ID, served, storage.Hash{})
			case 2:
				err = e.s.RemovePassword(e.ctx, u.ID, served, storage.Hash{})
			case 3:
				_, err = e.s.Unlink(e.ctx, e.untie(u.ID, a.Identity))
			case 4:
				err = e.s.RemoveRecoveryCodes(e.ctx, u.ID, served, storage.Hash{})
			}
			c.add(err, storage.ErrLast, storage.ErrNotFound)
		})
		c.want(t, 4)
		f, err := e.s.Factors(e.ctx, u.ID, served)
		check(t, err)
		left := f.Passkeys + f.Identities
		if f.Password {
			left++
		}
		same(t, left, 1)
		same(t, f.RecoveryCodes, 0)
	}
}

func raceAdd(t *testing.T, e *env) {
	p := e.person(t)
	var c tally
	compete(func(int) { c.add(e.s.AddWay(e.ctx, e.passkey(p.ID), storage.Hash{}), storage.ErrFull) })
	c.want(t, storage.MaxWays)
}
