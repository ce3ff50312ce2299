package storagetest

import (
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Transition checks refresh tokens with rows in a store with numbered tokens. exec runs a
// statement, with ? for each argument, as a replica of the previous version. open returns an empty
// store, which the suite closes.
func Transition(t *testing.T, open func(t *testing.T) (s storage.Store, exec func(query string, args ...any))) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, e *env, old *olderReplica)
	}{
		{"the next token is numbered, and the reply is repeated", oldToNumbered},
		{"AS-95 a spent one is known as reuse", oldReused},
		{"one that a replica of the version before has rotated since", oldByOthers},
		{"32 rotations of one", raceOld},
		{"RFC 7009 2.1: it ends its grant", oldRevoked},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, exec := open(t)
			c.run(t, newEnv(t, s), &olderReplica{exec})
		})
	}
}

// olderReplica runs the statements of a replica without step 12.
type olderReplica struct {
	exec func(query string, args ...any)
}

// grants gives a redeemed grant a token with a row, as if that replica had redeemed the code.
func (o *olderReplica) grants(t *testing.T, e *env) (storage.Approval, storage.HashedRefresh) {
	t.Helper()
	a := e.approved(t)
	r := e.redemption(a)
	r.Refresh = nil
	_, err := e.s.RedeemCode(e.ctx, r)
	check(t, err)
	h := storage.HashedRefresh(randomHash())
	o.issues(e, a, h)
	return a, h
}

func (o *olderReplica) issues(e *env, a storage.Approval, h storage.HashedRefresh) {
	o.exec("INSERT INTO refresh_tokens (hash, grant_id, created_at, expires_at) VALUES (?, ?, ?, ?)",
		h[:], a.Grant.ID, e.now.UnixMilli(), e.now.Add(30*24*time.Hour).UnixMilli())
}

// rotates rotates a token to another one with a row.
func (o *olderReplica) rotates(
	e *env, a storage.Approval, h storage.HashedRefresh, sealed string,
) storage.HashedRefresh {
	o.exec("UPDATE refresh_tokens SET rotated_at = ?, sealed = ? WHERE hash = ? AND rotated_at IS NULL",
		e.now.UnixMilli(), []byte(sealed), h[:])
	next := storage.HashedRefresh(randomHash())
	o.issues(e, a, next)
	return next
}

func oldToNumbered(t *testing.T, e *env, old *olderReplica) {
	a, h := old.grants(t, e)
	r := e.rotation(a, h)
	r.Next.ExpiresAt = a.Grant.ExpiresAt.Add(time.Hour)
	out := e.rotate(t, r)
	want := storage.Rotation{Grant: a.Grant, RotatedAt: e.now, Generation: 1, Sealed: r.Sealed}
	same(t, out, want)
	first := successor(r, out).(storage.NumberedRefresh)
	_, expires, err := e.s.RefreshToken(e.ctx, first, e.now)
	check(t, err)
	same(t, expires, a.Grant.ExpiresAt)
	second := e.after(t, a, first, 1, time.Second)
	e.after(t, a, second, 1, time.Second)
	again := e.rotation(a, h)
	again.Now = e.now.Add(again.Grace - time.Millisecond)
	want.Replayed = true
	same(t, e.rotate(t, again), want)
}

func oldReused(t *testing.T, e *env, old *olderReplica) {
	a, h := old.grants(t, e)
	second := old.rotates(e, a, h, "by the older one")
	r := e.rotation(a, second)
	first := successor(r, e.rotate(t, r)).(storage.NumberedRefresh)
	e.refused(t, a, h, e.now.Add(time.Hour), storage.ErrSpent)
	e.wantRefreshRefused(t, a, first)

	b, g := old.grants(t, e)
	r = e.rotation(b, g)
	token := successor(r, e.rotate(t, r)).(storage.NumberedRefresh)
	e.refused(t, b, g, e.now.Add(time.Hour), storage.ErrSpent)
	e.wantRefreshRefused(t, b, token)
}

// oldByOthers: a token whose successor has a row gets that successor again, even if the token after
// it is numbered.
func oldByOthers(t *testing.T, e *env, old *olderReplica) {
	a, h := old.grants(t, e)
	second := old.rotates(e, a, h, "by the older one")
	want := storage.Rotation{Grant: a.Grant, RotatedAt: e.now, Sealed: []byte("by the older one"), Replayed: true}
	same(t, e.rotate(t, e.rotation(a, h)), want)
	r := e.rotation(a, second)
	e.rotate(t, r)
	same(t, e.rotate(t, e.rotation(a, h)), want)
	same(t, e.rotate(t, r),
		storage.Rotation{Grant: a.Grant, RotatedAt: e.now, Generation: 1, Sealed: r.Sealed, Replayed: true})
}

func raceOld(t *testing.T, e *env, old *olderReplica) {
	a, h := old.grants(t, e)
	var c tally
	var mu sync.Mutex
	sealed, rotated := map[string]int{}, 0
	compete(func(int) {
		out, err := e.s.RotateRefresh(e.ctx, e.rotation(a, h))
		c.add(err)
		mu.Lock()
		defer mu.Unlock()
		sealed[string(out.Sealed)]++
		if !out.Replayed {
			rotated++
		}
		if out.Generation != 1 {
			t.Errorf("got generation %d, want 1", out.Generation)
		}
	})
	c.want(t, racers)
	if len(sealed) != 1 || rotated != 1 {
		t.Errorf("got %d rotations into %d successors, want one into one", rotated, len(sealed))
	}
	e.wantLive(t, a, true)
}

func oldRevoked(t *testing.T, e *env, old *olderReplica) {
	for _, spent := range []bool{false, true} {
		a, h := old.grants(t, e)
		if spent {
			e.rotate(t, e.rotation(a, h))
		}
		g, err := e.s.RevokeRefresh(e.ctx, h, a.Grant.ClientID, e.now)
		check(t, err)
		same(t, g.ID, a.Grant.ID)
		e.wantRefreshRefused(t, a, h)
	}
}
