package storagetest

import (
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// numbered returns a grant with its first refresh token, which is numbered.
func (e *env) numbered(t testing.TB) (storage.Approval, storage.NumberedRefresh) {
	t.Helper()
	a, first := e.granted(t)
	n, ok := first.(storage.NumberedRefresh)
	if !ok {
		t.Fatalf("the first refresh token is no numbered one: %T", first)
	}
	return a, n
}

// after returns the token n rotations later. Each rotation is one step after the previous one.
func (e *env) after(
	t testing.TB, a storage.Approval, token storage.NumberedRefresh, n int, step time.Duration,
) storage.NumberedRefresh {
	t.Helper()
	for range n {
		r := e.rotation(a, token)
		r.Now = token.IssuedAt.Add(step)
		token = successor(r, e.rotate(t, r)).(storage.NumberedRefresh)
	}
	return token
}

// refused presents a token at a time and checks why it is refused.
func (e *env) refused(t testing.TB, a storage.Approval, token storage.PresentedRefresh, at time.Time, want error) {
	t.Helper()
	r := e.rotation(a, token)
	r.Now = at
	_, err := e.s.RotateRefresh(e.ctx, r)
	wantErr(t, err, want)
}

// numberings checks how a token without a row is recognised, and its grace.
func numberings(t *testing.T, e *env) {
	t.Run("OP-03 an outage makes the grace longer until the successor is used", func(t *testing.T) {
		a, first := e.numbered(t)
		r := e.rotation(a, first)
		next := successor(r, e.rotate(t, r))
		retry := e.rotation(a, first)
		retry.Now, retry.Outage = e.now.Add(time.Hour), time.Hour
		same(t, e.rotate(t, retry), e.rotated(a, r, true))
		other := e.rotation(a, next)
		other.Now = retry.Now
		last := successor(other, e.rotate(t, other))
		_, err := e.s.RotateRefresh(e.ctx, retry)
		wantErr(t, err, storage.ErrSpent)
		e.wantRefreshRefused(t, a, last)
	})
	t.Run("OP-03 a grace that an outage made longer ends", func(t *testing.T) {
		a, first := e.numbered(t)
		r := e.rotation(a, first)
		last := successor(r, e.rotate(t, r))
		late := e.rotation(a, first)
		late.Outage = time.Hour
		late.Now = e.now.Add(late.Grace + late.Outage)
		_, err := e.s.RotateRefresh(e.ctx, late)
		wantErr(t, err, storage.ErrSpent)
		e.wantRefreshRefused(t, a, last)
	})
	t.Run("a guess of the secret is ErrNotFound, names no grant and touches nothing", func(t *testing.T) {
		a, first := e.numbered(t)
		e.after(t, a, first, 2, time.Second)
		for generation := range int64(9) {
			guess := first
			guess.Generation, guess.Secret = generation, randomHash()
			r := e.rotation(a, guess)
			r.Now = e.now.Add(time.Hour)
			got, err := e.s.RotateRefresh(e.ctx, r)
			wantErr(t, err, storage.ErrNotFound)
			same(t, got, storage.Rotation{})
			_, err = e.s.RevokeRefresh(e.ctx, guess, a.Grant.ClientID, e.now)
			wantErr(t, err, storage.ErrNotFound)
			g, _, err := e.s.RefreshToken(e.ctx, guess, e.now)
			wantErr(t, err, storage.ErrNotFound)
			same(t, g, storage.Grant{})
		}
		e.wantLive(t, a, true)
	})
	t.Run("a grant whose code was not redeemed has no token", func(t *testing.T) {
		a := e.approved(t)
		for _, secret := range []storage.Hash{{}, randomHash()} {
			e.refused(t, a,
				storage.NumberedRefresh{
					GrantID: a.Grant.ID, Generation: 1, IssuedAt: e.now, ExpiresAt: e.now.Add(time.Hour),
					Secret: secret}, e.now, storage.ErrNotFound)
		}
		r := e.redemption(a)
		r.Refresh = nil
		_, err := e.s.RedeemCode(e.ctx, r)
		check(t, err)
		e.refused(t, a,
			storage.NumberedRefresh{GrantID: a.Grant.ID, IssuedAt: e.now, ExpiresAt: e.now.Add(time.Hour)}, e.now,
			storage.ErrNotFound)
	})
	t.Run("AS-96 each of the last eight tokens gets its own successor again", func(t *testing.T) {
		a, first := e.numbered(t)
		tokens := []storage.NumberedRefresh{first}
		for i := range 8 {
			tokens = append(tokens, e.after(t, a, tokens[i], 1, time.Second))
		}
		for i, token := range tokens[:8] {
			r := e.rotation(a, token)
			r.Now = tokens[8].IssuedAt
			out := e.rotate(t, r)
			if same(t, successor(r, out), tokens[i+1]); !out.Replayed {
				t.Errorf("token %d was rotated", i+1)
			}
		}
		e.rotate(t, e.rotation(a, tokens[8]))
	})
	t.Run("AS-96 one before these is refused within the grace, and no theft", func(t *testing.T) {
		a, first := e.numbered(t)
		last := e.after(t, a, first, 9, time.Second)
		e.refused(t, a, first, last.IssuedAt, storage.ErrSuperseded)
		e.wantLive(t, a, true)
		e.refused(t, a, first, last.IssuedAt.Add(time.Minute), storage.ErrSpent)
		e.wantLive(t, a, false)
	})
	t.Run("AS-95 one that was issued long before, too, as long as it may have been rotated within the grace",
		func(t *testing.T) {
			a, first := e.numbered(t)
			second := e.after(t, a, first, 1, time.Hour)
			last := e.after(t, a, second, 9, time.Second)
			e.refused(t, a, first, last.IssuedAt, storage.ErrSuperseded)
			e.refused(t, a, first, second.IssuedAt.Add(time.Minute+2*time.Second), storage.ErrSpent)
		})
	t.Run("AS-95 each rotation ends the memory of those whose grace is over", func(t *testing.T) {
		a, first := e.numbered(t)
		second := e.after(t, a, first, 1, storage.MaxGrace)
		third := e.after(t, a, second, 1, storage.MaxGrace-time.Millisecond)
		r := e.rotation(a, first)
		r.Grace, r.Now = storage.MaxGrace, third.IssuedAt
		same(t, successor(r, e.rotate(t, r)), storage.PresentedRefresh(second))
		fourth := e.after(t, a, third, 1, storage.MaxGrace)
		r = e.rotation(a, third)
		r.Grace, r.Now = storage.MaxGrace, fourth.IssuedAt.Add(storage.MaxGrace-time.Millisecond)
		e.rotate(t, r)
		e.refused(t, a, second, fourth.IssuedAt, storage.ErrSpent)
	})
	t.Run("RFC 7009 2.1: every token of a grant ends it", func(t *testing.T) {
		a, first := e.numbered(t)
		e.after(t, a, first, 20, time.Hour)
		g, err := e.s.RevokeRefresh(e.ctx, first, a.Grant.ClientID, e.now)
		check(t, err)
		same(t, g.ID, a.Grant.ID)
		e.wantLive(t, a, false)
	})
}

// lost returns the token n rotations after another. They happened in a database, and this one is an
// older copy of it.
func lost(token storage.NumberedRefresh, n int64, at time.Time) storage.NumberedRefresh {
	token.Generation, token.IssuedAt, token.ExpiresAt = token.Generation+n, at, at.Add(30*24*time.Hour)
	return token
}

// losses checks tokens that the database has lost, after a failover to a server that lagged, or
// after the restoration of a backup.
func losses(t *testing.T, e *env) {
	t.Run("a token that was lost is rotated once, and its reply repeated", func(t *testing.T) {
		a, first := e.numbered(t)
		newer := lost(first, 5, e.now.Add(time.Hour))
		g, expires, err := e.s.RefreshToken(e.ctx, newer, newer.IssuedAt)
		check(t, err)
		same(t, g.ID, a.Grant.ID)
		same(t, expires, newer.ExpiresAt)
		r := e.rotation(a, newer)
		r.Now = newer.IssuedAt.Add(time.Minute)
		want := storage.Rotation{Grant: a.Grant, RotatedAt: r.Now, Generation: newer.Generation + 1, Recovered: true}
		same(t, e.rotate(t, r), want)
		want.Recovered, want.Replayed = false, true
		same(t, e.rotate(t, r), want)
		next := successor(r, want).(storage.NumberedRefresh)
		// The previous token was rotated when this one was issued, a time that the token itself
		// contains.
		before := e.rotation(a, lost(first, 4, e.now))
		before.Now, before.Grace = r.Now, 2*time.Minute
		same(t, successor(before, e.rotate(t, before)), storage.PresentedRefresh(newer))
		e.after(t, a, next, 1, time.Second)
	})
	t.Run("AS-95 what the database still knew is spent then", func(t *testing.T) {
		a, first := e.numbered(t)
		newer := lost(first, 3, e.now.Add(time.Hour))
		e.after(t, a, newer, 1, time.Hour)
		e.refused(t, a, first, e.now.Add(2*time.Hour), storage.ErrSpent)
		e.wantLive(t, a, false)
	})
	t.Run("one that was superseded in what was lost is refused within the grace, and no theft", func(t *testing.T) {
		a, first := e.numbered(t)
		newer := lost(first, 9, e.now.Add(30*time.Second))
		e.after(t, a, newer, 1, time.Second)
		e.refused(t, a, lost(first, 5, e.now.Add(20*time.Second)), e.now.Add(40*time.Second), storage.ErrSuperseded)
		e.wantLive(t, a, true)
	})
	t.Run("of two tokens of one number either goes on", func(t *testing.T) {
		a, first := e.numbered(t)
		gone := lost(first, 1, e.now.Add(time.Second))
		kept := e.after(t, a, first, 1, 2*time.Second)
		next := e.after(t, a, gone, 1, time.Second)
		r := e.rotation(a, kept)
		r.Now = kept.IssuedAt.Add(time.Second)
		same(t, successor(r, e.rotate(t, r)), storage.PresentedRefresh(next))
	})
	t.Run("it is expired by what it says itself, and ends with its grant", func(t *testing.T) {
		a, first := e.numbered(t)
		newer := lost(first, 2, e.now)
		newer.ExpiresAt = e.now.Add(time.Hour)
		e.refused(t, a, newer, newer.ExpiresAt, storage.ErrExpired)
		_, _, err := e.s.RefreshToken(e.ctx, newer, newer.ExpiresAt)
		wantErr(t, err, storage.ErrNotFound)
		long := lost(first, 2, a.Grant.ExpiresAt.Add(-time.Hour))
		_, expires, err := e.s.RefreshToken(e.ctx, long, long.IssuedAt)
		check(t, err)
		same(t, expires, a.Grant.ExpiresAt)
		e.refused(t, a, long, a.Grant.ExpiresAt, storage.ErrExpired)
	})
	t.Run("another client's, another resource's and a revoked grant's are hidden from the caller",
		func(t *testing.T) {
			a, first := e.numbered(t)
			for _, c := range []struct {
				edit func(*storage.RotateRefresh)
				want error
			}{
				{func(r *storage.RotateRefresh) { r.ClientID = "other" }, storage.ErrMismatch},
				{func(r *storage.RotateRefresh) { r.Resource = "https://other.example/" }, storage.ErrResource},
			} {
				r := e.rotation(a, lost(first, 2, e.now))
				c.edit(&r)
				_, err := e.s.RotateRefresh(e.ctx, r)
				wantErr(t, err, c.want)
			}
			e.rotate(t, e.rotation(a, first))
			check(t, e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now))
			e.refused(t, a, lost(first, 9, e.now), e.now, storage.ErrRevoked)
		})
}

func raceLost(t *testing.T, e *env) {
	a, first := e.numbered(t)
	raceTokens(t, e, a, lost(first, 3, e.now))
}

// raceLostTwo presents a token and its successor, both lost.
func raceLostTwo(t *testing.T, e *env) {
	a, first := e.numbered(t)
	raceTokens(t, e, a, lost(first, 3, e.now), lost(first, 4, e.now))
}

// raceTokens presents lost tokens in turn. Each is accepted, one rotation of each counts, and the
// grant stays live.
func raceTokens(t *testing.T, e *env, a storage.Approval, tokens ...storage.NumberedRefresh) {
	var c tally
	var mu sync.Mutex
	got := map[int64]map[storage.PresentedRefresh]int{}
	rotated := map[int64]int{}
	compete(func(i int) {
		token := tokens[i%len(tokens)]
		r := e.rotation(a, token)
		out, err := e.s.RotateRefresh(e.ctx, r)
		c.add(err)
		mu.Lock()
		defer mu.Unlock()
		if got[token.Generation] == nil {
			got[token.Generation] = map[storage.PresentedRefresh]int{}
		}
		got[token.Generation][successor(r, out)]++
		if !out.Replayed {
			rotated[token.Generation]++
		}
	})
	c.want(t, racers)
	newest := tokens[len(tokens)-1].Generation
	if rotated[newest] != 1 || len(got[newest]) != 1 {
		t.Errorf("the newest was rotated %d times into %d tokens, want one into one", rotated[newest], len(got[newest]))
	}
	for generation, n := range rotated {
		if n > 1 || len(got[generation]) != 1 {
			t.Errorf("generation %d was rotated %d times into %d tokens", generation, n, len(got[generation]))
		}
	}
	e.wantLive(t, a, true)
}
