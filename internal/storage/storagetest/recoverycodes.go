package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// spendCode begins a session with a recovery code.
func (e *env) spendCode(userID string, code storage.Hash) error {
	return e.s.PutSession(e.ctx, storage.Session{
		Hash: randomHash(), UserID: userID, CreatedAt: e.now, ExpiresAt: e.now.Add(time.Hour),
		Methods: []string{"recovery"},
	}, storage.SignInStart{RecoveryCode: &code})
}

func recoveryCodes(t *testing.T, e *env) {
	p, other := e.person(t), e.person(t)
	old, one, two := randomHash(), randomHash(), randomHash()
	spend := func(userID string, code storage.Hash) error { return e.spendCode(userID, code) }
	t.Run("PE-06 a code is good once, with its name, and all end at a renewal", func(t *testing.T) {
		check(t, e.s.ReplaceRecoveryCodes(e.ctx, p.ID, []storage.Hash{old, one}, storage.Hash{}))
		check(t, spend(p.ID, one))
		wantErr(t, spend(p.ID, one), storage.ErrSpent)
		wantErr(t, spend(other.ID, old), storage.ErrNotFound)
		wantErr(t, spend("usr_none", old), storage.ErrNotFound)
		check(t, e.s.ReplaceRecoveryCodes(e.ctx, p.ID, []storage.Hash{two}, storage.Hash{}))
		wantErr(t, spend(p.ID, old), storage.ErrNotFound)
		check(t, spend(p.ID, two))
	})
	t.Run("PE-03 all are removed, unless the person has nothing else", func(t *testing.T) {
		q := e.person(t)
		remove := func() error { return e.s.RemoveRecoveryCodes(e.ctx, q.ID, served, storage.Hash{}) }
		wantErr(t, remove(), storage.ErrNotFound)
		code := randomHash()
		check(t, e.s.ReplaceRecoveryCodes(e.ctx, q.ID, []storage.Hash{code, randomHash()}, storage.Hash{}))
		e.add(t, e.app(q.ID)) // an app is a second factor only
		wantErr(t, remove(), storage.ErrLast)
		check(t, e.s.SetPassword(e.ctx, q.ID, "$hash", false, e.now))
		none := served
		none.Passwords = false
		wantErr(t, e.s.RemoveRecoveryCodes(e.ctx, q.ID, none, storage.Hash{}), storage.ErrLast)
		check(t, remove())
		wantErr(t, spend(q.ID, code), storage.ErrNotFound)
		wantErr(t, remove(), storage.ErrNotFound)
		wantErr(t, e.s.RemoveRecoveryCodes(e.ctx, "usr_none", served, storage.Hash{}), storage.ErrNotFound)
		wantErr(t, spend(p.ID, two), storage.ErrSpent) // another user's codes stay
	})
	t.Run("PE-06 PE-05 a sign-in that is refused spends none, and one without its code begins none", func(t *testing.T) {
		a, u := e.arrived(t)
		code := randomHash()
		check(t, e.s.ReplaceRecoveryCodes(e.ctx, u.ID, []storage.Hash{code}, storage.Hash{}))
		e.end(t, storage.UpstreamKey{ID: a.Upstream.ID}, "revoked")
		wantErr(t, spend(u.ID, code), storage.ErrHomeProvider)
		check(t, e.s.CheckRecoveryCode(e.ctx, u.ID, code))
		e.arrive(t, e.again(a))
		check(t, spend(u.ID, code))
		wantErr(t, e.s.CheckRecoveryCode(e.ctx, u.ID, code), storage.ErrSpent)
		before, err := e.s.Sessions(e.ctx, u.ID, e.now, 100)
		check(t, err)
		wantErr(t, spend(u.ID, code), storage.ErrSpent)
		wantErr(t, spend(u.ID, randomHash()), storage.ErrNotFound)
		after, err := e.s.Sessions(e.ctx, u.ID, e.now, 100)
		check(t, err)
		same(t, len(after), len(before))
	})
	t.Run("two people may have the same code", func(t *testing.T) {
		check(t, e.s.ReplaceRecoveryCodes(e.ctx, other.ID, []storage.Hash{two}, storage.Hash{}))
		check(t, spend(other.ID, two))
	})
	wantErr(t, e.s.ReplaceRecoveryCodes(e.ctx, "usr_none", nil, storage.Hash{}), storage.ErrNotFound)
}

func raceRecovery(t *testing.T, e *env) {
	p, code := e.person(t), randomHash()
	check(t, e.s.ReplaceRecoveryCodes(e.ctx, p.ID, []storage.Hash{code}, storage.Hash{}))
	var c tally
	compete(func(int) { c.add(e.spendCode(p.ID, code), storage.ErrSpent) })
	c.want(t, 1)
}
