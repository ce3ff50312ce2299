package storagetest

import (
	"testing"

	"github.com/mcp-authd/mcp-authd/storage"
)

func recoveryCodes(t *testing.T, e *env) {
	p, other := e.person(t), e.person(t)
	old, one, two := randomHash(), randomHash(), randomHash()
	spend := func(userID string, code storage.Hash) error { return e.s.SpendRecoveryCode(e.ctx, userID, code, e.now) }
	t.Run("PE-06 a code is good once, with its name, and all end at a renewal", func(t *testing.T) {
		check(t, e.s.ReplaceRecoveryCodes(e.ctx, p.ID, []storage.Hash{old, one}))
		check(t, spend(p.ID, one))
		wantErr(t, spend(p.ID, one), storage.ErrSpent)
		wantErr(t, spend(other.ID, old), storage.ErrNotFound)
		wantErr(t, spend("usr_none", old), storage.ErrNotFound)
		check(t, e.s.ReplaceRecoveryCodes(e.ctx, p.ID, []storage.Hash{two}))
		wantErr(t, spend(p.ID, old), storage.ErrNotFound)
		check(t, spend(p.ID, two))
	})
	t.Run("PE-03 all are removed, unless the person has nothing else", func(t *testing.T) {
		q := e.person(t)
		remove := func() error { return e.s.RemoveRecoveryCodes(e.ctx, q.ID, served) }
		wantErr(t, remove(), storage.ErrNotFound)
		code := randomHash()
		check(t, e.s.ReplaceRecoveryCodes(e.ctx, q.ID, []storage.Hash{code, randomHash()}))
		e.add(t, e.app(q.ID)) // an app lets in with something else alone
		wantErr(t, remove(), storage.ErrLast)
		check(t, e.s.SetPassword(e.ctx, q.ID, "$hash", false, e.now))
		none := served
		none.Passwords = false
		wantErr(t, e.s.RemoveRecoveryCodes(e.ctx, q.ID, none), storage.ErrLast)
		check(t, remove())
		wantErr(t, spend(q.ID, code), storage.ErrNotFound)
		wantErr(t, remove(), storage.ErrNotFound)
		wantErr(t, e.s.RemoveRecoveryCodes(e.ctx, "usr_none", served), storage.ErrNotFound)
		wantErr(t, spend(p.ID, two), storage.ErrSpent) // another person's stay
	})
	t.Run("two people may have the same code", func(t *testing.T) {
		check(t, e.s.ReplaceRecoveryCodes(e.ctx, other.ID, []storage.Hash{two}))
		check(t, spend(other.ID, two))
	})
	wantErr(t, e.s.ReplaceRecoveryCodes(e.ctx, "usr_none", nil), storage.ErrNotFound)
}

func raceRecovery(t *testing.T, e *env) {
	p, code := e.person(t), randomHash()
	check(t, e.s.ReplaceRecoveryCodes(e.ctx, p.ID, []storage.Hash{code}))
	var c tally
	compete(func(int) { c.add(e.s.SpendRecoveryCode(e.ctx, p.ID, code, e.now), storage.ErrSpent) })
	c.want(t, 1)
}
