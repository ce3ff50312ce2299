package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// oneTime returns a link of a kind, valid for an hour from now.
func (e *env) oneTime(kind storage.LinkKind, userID string) storage.OneTimeLink {
	return storage.OneTimeLink{
		Hash: randomHash(), StopHash: randomHash(), Kind: kind, UserID: userID,
		NotBefore: e.now, ExpiresAt: e.now.Add(time.Hour), CreatedAt: e.now,
	}
}

func (e *env) invitation(name string) storage.OneTimeLink {
	l := e.oneTime(storage.LinkInvite, "")
	l.StopHash, l.Name, l.Mail, l.Role = storage.Hash{}, name, "x@a.example", storage.Administrator
	return l
}

func (e *env) recovery(l storage.OneTimeLink) storage.Recovery {
	return storage.Recovery{Hash: l.Hash, Browser: l.Browser, PasswordHash: "$new", Now: e.now}
}

// oneTimeLinks checks PE-16: invitation, recovery and reset links.
func oneTimeLinks(t *testing.T, e *env) {
	t.Run("PE-16 invitations", func(t *testing.T) { invitations(t, e) })
	t.Run("RU-19 groups of invitations", func(t *testing.T) { invitedGroups(t, e) })
	t.Run("PE-16 recoveries", func(t *testing.T) { recoveries(t, e) })
	t.Run("PE-16 what stops them", func(t *testing.T) { stoppedLinks(t, e) })
	t.Run("PE-16 which are open", func(t *testing.T) { openLinks(t, e) })
}

func invitations(t *testing.T, e *env) {
	accept := func(l storage.OneTimeLink, id string, now time.Time) (storage.User, error) {
		u := storage.User{ID: id, Name: "ignored", PasswordHash: "$h", CreatedAt: e.now}
		u, _, err := e.s.AcceptInvitation(e.ctx, storage.Acceptance{Hash: l.Hash, User: u, Now: now})
		return u, err
	}
	l := e.invitation("Invited")
	check(t, e.s.PutLink(e.ctx, l, e.now))
	t.Run("it is found by its token as it was made, and looking spends nothing", func(t *testing.T) {
		got, err := e.s.Link(e.ctx, l.Hash, e.now)
		check(t, err)
		same(t, got, l)
		_, err = e.s.Link(e.ctx, randomHash(), e.now)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.Link(e.ctx, l.Hash, l.ExpiresAt)
		wantErr(t, err, storage.ErrExpired)
	})
	t.Run("at its expiry it is expired, and recovers no account", func(t *testing.T) {
		_, err := accept(l, "usr_i", l.ExpiresAt)
		wantErr(t, err, storage.ErrExpired)
		_, err = e.s.RecoverAccount(e.ctx, e.recovery(l))
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("a millisecond before, it makes the account that was said, once", func(t *testing.T) {
		got, err := accept(l, "usr_i", l.ExpiresAt.Add(-time.Millisecond))
		check(t, err)
		want := storage.User{
			ID: "usr_i", Name: "Invited", PasswordHash: "$h", Role: storage.Administrator, Mail: "x@a.example",
			CreatedAt: e.now,
		}
		same(t, got, want)
		got, err = e.s.UserByName(e.ctx, "invited")
		check(t, err)
		same(t, got, want)
		_, err = accept(l, "usr_j", e.now)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("of a taken name there is none, and one that is overtaken is not spent", func(t *testing.T) {
		wantErr(t, e.s.PutLink(e.ctx, e.invitation("INVITED"), e.now), storage.ErrExists)
		l := e.invitation("late")
		check(t, e.s.PutLink(e.ctx, l, e.now))
		check(t, e.s.CreateUser(e.ctx, storage.User{ID: "usr_l", Name: "Late", CreatedAt: e.now}))
		_, err := accept(l, "usr_k", e.now)
		wantErr(t, err, storage.ErrExists)
		_, err = e.s.Link(e.ctx, l.Hash, e.now)
		check(t, err)
	})
	t.Run("a new one of the name replaces it", func(t *testing.T) {
		first, second := e.invitation("twice"), e.invitation("Twice")
		check(t, e.s.PutLink(e.ctx, first, e.now))
		check(t, e.s.PutLink(e.ctx, second, e.now))
		_, err := e.s.Link(e.ctx, first.Hash, e.now)
		wantErr(t, err, storage.ErrNotFound)
		_, err = accept(second, "usr_t", e.now)
		check(t, err)
	})
}

// invitedGroups checks RU-19: an invited account joins the groups of its invitation that still
// exist.
func invitedGroups(t *testing.T, e *env) {
	for _, name := range []string{"invited-a", "invited-b", "invited-gone"} {
		check(t, e.s.CreateGroup(e.ctx, storage.Group{Name: name, CreatedAt: e.now}))
	}
	l := e.invitation("Invited into groups")
	l.Groups = []string{"invited-a", "invited-b", "invited-gone"}
	check(t, e.s.PutLink(e.ctx, l, e.now))
	got, err := e.s.Link(e.ctx, l.Hash, e.now)
	check(t, err)
	same(t, got, l)
	check(t, e.s.DeleteGroup(e.ctx, "invited-gone"))
	u, joined, err := e.s.AcceptInvitation(e.ctx, storage.Acceptance{
		Hash: l.Hash, User: storage.User{ID: "usr_grouped", PasswordHash: "$h", CreatedAt: e.now}, Now: e.now,
	})
	check(t, err)
	same(t, joined, []string{"invited-a", "invited-b"})
	m, err := e.s.Membership(e.ctx, u.ID)
	check(t, err)
	same(t, m.Groups, joined)
}

func recoveries(t *testing.T, e *env) {
	use := func(l storage.OneTimeLink, browser storage.Hash, now time.Time) error {
		r := e.recovery(l)
		r.Browser, r.Now = browser, now
		_, err := e.s.RecoverAccount(e.ctx, r)
		return err
	}
	a, refresh := e.granted(t)
	userID := a.Grant.UserID
	l := e.oneTime(storage.LinkRecover, userID)
	l.NotBefore, l.Browser = e.now.Add(time.Minute), randomHash()
	check(t, e.s.PutLink(e.ctx, l, e.now))
	other := e.oneTime(storage.LinkReset, userID)
	check(t, e.s.PutLink(e.ctx, other, e.now))
	t.Run("too early, in another browser and too late it is not spent, and makes no account", func(t *testing.T) {
		wantErr(t, use(l, l.Browser, l.NotBefore.Add(-time.Millisecond)), storage.ErrEarly)
		wantErr(t, use(l, randomHash(), l.NotBefore), storage.ErrMismatch)
		wantErr(t, use(l, storage.Hash{}, l.NotBefore), storage.ErrMismatch)
		wantErr(t, use(l, l.Browser, l.ExpiresAt), storage.ErrExpired)
		_, _, err := e.s.AcceptInvitation(e.ctx,
			storage.Acceptance{Hash: l.Hash, User: storage.User{ID: "usr_x", CreatedAt: e.now}, Now: e.now})
		wantErr(t, err, storage.ErrNotFound)
		wantErr(t, use(e.oneTime(storage.LinkRecover, userID), l.Browser, e.now), storage.ErrNotFound)
		e.wantLive(t, a, true)
	})
	t.Run("it ends with the account's being disabled, which can have none", func(t *testing.T) {
		check(t, e.s.SetUserDisabled(e.ctx, userID, true, e.now))
		wantErr(t, use(l, l.Browser, l.NotBefore), storage.ErrNotFound)
		wantErr(t, e.s.PutLink(e.ctx, e.oneTime(storage.LinkRecover, userID), e.now), storage.ErrNotFound)
		check(t, e.s.SetUserDisabled(e.ctx, userID, false, e.now))
		wantErr(t, use(l, l.Browser, l.NotBefore), storage.ErrNotFound)
		check(t, e.s.PutLink(e.ctx, l, e.now))
		check(t, e.s.PutLink(e.ctx, other, e.now))
		e.signIn(t, person{User: storage.User{ID: userID}, session: a.Session})
		a = e.approval(person{User: storage.User{ID: userID}, session: a.Session})
		check(t, e.s.Approve(e.ctx, a))
		refresh = e.redeem(t, e.redemption(a))
	})
	t.Run("it replaces the password once and ends sessions, grants and the other links", func(t *testing.T) {
		user, err := e.s.User(e.ctx, userID)
		check(t, err)
		session := storage.Session{
			Hash: randomHash(), UserID: userID, AuthTime: e.now, CreatedAt: e.now, ExpiresAt: e.now.Add(time.Hour),
		}
		check(t, e.s.PutSession(e.ctx, session, storage.SignInStart{}))
		r := e.recovery(l)
		r.Now = l.NotBefore
		got, err := e.s.RecoverAccount(e.ctx, r)
		check(t, err)
		user.PasswordHash = "$new"
		same(t, got, user)
		_, err = e.s.Visit(e.ctx, storage.VisitKey{Session: session.Hash, Now: e.now})
		wantErr(t, err, storage.ErrNotFound)
		e.wantRefreshRefused(t, a, refresh)
		wantErr(t, use(l, l.Browser, l.NotBefore), storage.ErrNotFound)
		wantErr(t, use(other, storage.Hash{}, e.now), storage.ErrNotFound)
	})
	t.Run("PE-16 a passkey takes the place of the password, in the same act", func(t *testing.T) {
		l := e.oneTime(storage.LinkRecover, userID)
		check(t, e.s.PutLink(e.ctx, l, e.now))
		taken, w := e.add(t, e.passkey(e.person(t).ID)), e.passkey(userID)
		r := e.recovery(l)
		r.PasswordHash, r.Now, r.Passkey = "", l.NotBefore, &taken
		_, err := e.s.RecoverAccount(e.ctx, r)
		wantErr(t, err, storage.ErrExists)
		u, err := e.s.User(e.ctx, userID)
		check(t, err)
		same(t, u.PasswordHash, "$new") // the link is unused, and the account unchanged
		r.Passkey = &w
		u, err = e.s.RecoverAccount(e.ctx, r)
		check(t, err)
		same(t, u.PasswordHash, "")
		e.wantWays(t, userID, w)
		_, err = e.s.RecoverAccount(e.ctx, r)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("PE-16 an invitation makes an account with a passkey alone", func(t *testing.T) {
		l, taken, w := e.invitation("keyed"), e.add(t, e.passkey(e.person(t).ID)), e.passkey("usr_keyed")
		check(t, e.s.PutLink(e.ctx, l, e.now))
		a := storage.Acceptance{
			Hash: l.Hash, User: storage.User{ID: w.UserID, CreatedAt: e.now}, Passkey: &taken, Now: e.now,
		}
		_, _, err := e.s.AcceptInvitation(e.ctx, a)
		wantErr(t, err, storage.ErrExists)
		_, err = e.s.User(e.ctx, w.UserID)
		wantErr(t, err, storage.ErrNotFound)
		a.Passkey = &w
		_, _, err = e.s.AcceptInvitation(e.ctx, a)
		check(t, err)
		e.wantWays(t, w.UserID, w)
	})
	t.Run("there are so many resets of a person at most", func(t *testing.T) {
		for range storage.MaxResets {
			check(t, e.s.PutLink(e.ctx, e.oneTime(storage.LinkReset, userID), e.now))
		}
		wantErr(t, e.s.PutLink(e.ctx, e.oneTime(storage.LinkReset, userID), e.now), storage.ErrFull)
		check(t, e.s.PutLink(e.ctx, e.oneTime(storage.LinkReset, userID), e.now.Add(time.Hour)))
	})
	t.Run("they go with their person, and at their end", func(t *testing.T) {
		check(t, e.s.DeleteUser(e.ctx, userID, e.now))
		wantErr(t, e.s.PutLink(e.ctx, e.oneTime(storage.LinkReset, userID), e.now), storage.ErrNotFound)
		l := e.invitation("swept")
		l.ExpiresAt = e.now.Add(-time.Hour)
		check(t, e.s.PutLink(e.ctx, l, e.now))
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now}, 100)
		check(t, err)
		_, err = e.s.Link(e.ctx, l.Hash, e.now)
		wantErr(t, err, storage.ErrNotFound)
	})
}

func stoppedLinks(t *testing.T, e *env) {
	user := storage.User{ID: "usr_stop", Name: "stop", CreatedAt: e.now}
	check(t, e.s.CreateUser(e.ctx, user))
	put := func(kind storage.LinkKind) storage.OneTimeLink {
		l := e.oneTime(kind, user.ID)
		check(t, e.s.PutLink(e.ctx, l, e.now))
		return l
	}
	recover := put(storage.LinkRecover)
	t.Run("the token that stops it shows it, does not use it, and ends it once", func(t *testing.T) {
		got, err := e.s.Link(e.ctx, recover.StopHash, e.now)
		check(t, err)
		same(t, got, recover)
		r := e.recovery(recover)
		r.Hash = recover.StopHash
		_, err = e.s.RecoverAccount(e.ctx, r)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.StopLink(e.ctx, recover.Hash, e.now)
		wantErr(t, err, storage.ErrNotFound)
		got, err = e.s.StopLink(e.ctx, recover.StopHash, e.now)
		check(t, err)
		same(t, got, recover)
		_, err = e.s.StopLink(e.ctx, recover.StopHash, e.now)
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.RecoverAccount(e.ctx, e.recovery(recover))
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("its person sees and ends what is there", func(t *testing.T) {
		_, err := e.s.RecoveryLink(e.ctx, user.ID, e.now)
		wantErr(t, err, storage.ErrNotFound)
		put(storage.LinkReset)
		l := put(storage.LinkRecover)
		got, err := e.s.RecoveryLink(e.ctx, user.ID, e.now)
		check(t, err)
		same(t, got, l)
		_, err = e.s.RecoveryLink(e.ctx, user.ID, l.ExpiresAt)
		wantErr(t, err, storage.ErrNotFound)
		for _, want := range []int{2, 0} {
			n, err := e.s.StopLinks(e.ctx, user.ID, e.now)
			check(t, err)
			same(t, n, want)
		}
	})
}

// openLinks lets an administrator list links and withdraw an invitation.
func openLinks(t *testing.T, e *env) {
	user := storage.User{ID: "usr_open", Name: "open", CreatedAt: e.now}
	check(t, e.s.CreateUser(e.ctx, user))
	ours := map[storage.Hash]storage.OneTimeLink{}
	over := e.oneTime(storage.LinkReset, user.ID)
	over.ExpiresAt = e.now.Add(time.Millisecond)
	for _, l := range []storage.OneTimeLink{
		e.invitation("Opened"), e.oneTime(storage.LinkRecover, user.ID), e.oneTime(storage.LinkReset, user.ID), over,
	} {
		check(t, e.s.PutLink(e.ctx, l, e.now))
		ours[l.Hash] = l
	}
	open := func(now time.Time) (n int) {
		for after := (storage.Hash{}); ; {
			page, err := e.s.OpenLinks(e.ctx, after, 1, now)
			check(t, err)
			if len(page) == 0 {
				return n
			}
			if l, ok := ours[page[0].Hash]; ok {
				same(t, page[0], l)
				n++
			}
			after = page[0].Hash
		}
	}
	same(t, open(e.now), 4)
	same(t, open(over.ExpiresAt), 3)
	wantErr(t, e.s.StopInvitation(e.ctx, "open", e.now), storage.ErrNotFound)
	wantErr(t, e.s.StopInvitation(e.ctx, "opened", e.now.Add(time.Hour)), storage.ErrNotFound)
	check(t, e.s.StopInvitation(e.ctx, "opened", e.now))
	wantErr(t, e.s.StopInvitation(e.ctx, "opened", e.now), storage.ErrNotFound)
	same(t, open(over.ExpiresAt), 2)
}

func raceOneTimeLink(t *testing.T, e *env) {
	user := storage.User{ID: "usr_race", Name: "race", CreatedAt: e.now}
	check(t, e.s.CreateUser(e.ctx, user))
	l := e.oneTime(storage.LinkRecover, user.ID)
	check(t, e.s.PutLink(e.ctx, l, e.now))
	var c tally
	compete(func(i int) {
		r := e.recovery(l)
		r.PasswordHash = fmt.Sprint("$", i)
		_, err := e.s.RecoverAccount(e.ctx, r)
		c.add(err, storage.ErrNotFound)
	})
	c.want(t, 1)
}

func raceInvitation(t *testing.T, e *env) {
	l := e.invitation("race")
	check(t, e.s.PutLink(e.ctx, l, e.now))
	var c tally
	compete(func(i int) {
		u := storage.User{ID: fmt.Sprint("usr_", i), PasswordHash: "$h", CreatedAt: e.now}
		_, _, err := e.s.AcceptInvitation(e.ctx, storage.Acceptance{Hash: l.Hash, User: u, Now: e.now})
		c.add(err, storage.ErrNotFound)
	})
	c.want(t, 1)
}
