package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func rotations(t *testing.T, e *env) {
	rotate := func(r storage.RotateRefresh) (storage.Rotation, error) { return e.s.RotateRefresh(e.ctx, r) }

	t.Run("AS-94 OAuth 2.1 4.3.1: the successor works and the token is spent", func(t *testing.T) {
		a, first := e.granted(t)
		r := e.rotation(a, first)
		out := e.rotate(t, r)
		same(t, out, e.rotated(a, r, false))
		_, _, err := e.s.RefreshToken(e.ctx, first, e.now)
		wantErr(t, err, storage.ErrNotFound)
		next := successor(r, out)
		g, expires, err := e.s.RefreshToken(e.ctx, next, e.now)
		check(t, err)
		same(t, g, a.Grant)
		same(t, expires, r.Next.ExpiresAt)
		e.rotate(t, e.rotation(a, next))
	})
	t.Run("AS-96 within the grace the same token gets the same successor", func(t *testing.T) {
		a, first := e.granted(t)
		r := e.rotation(a, first)
		next := successor(r, e.rotate(t, r))
		retry := e.rotation(a, first)
		retry.Now = e.now.Add(retry.Grace - time.Millisecond)
		same(t, e.rotate(t, retry), e.rotated(a, r, true))
		_, _, err := e.s.RefreshToken(e.ctx, storage.HashedRefresh(retry.Next.Hash), e.now)
		wantErr(t, err, storage.ErrNotFound)
		e.rotate(t, e.rotation(a, next))
		same(t, e.rotate(t, retry), e.rotated(a, r, true)) // also after the successor was used
	})
	t.Run("AS-95 OAuth 2.1 4.3.1: after the grace reuse is ErrSpent and revokes the grant", func(t *testing.T) {
		a, first := e.granted(t)
		r := e.rotation(a, first)
		next := successor(r, e.rotate(t, r))
		reuse := e.rotation(a, first)
		reuse.Now = e.now.Add(reuse.Grace)
		got, err := rotate(reuse)
		wantErr(t, err, storage.ErrSpent)
		want := a.Grant
		want.RevokedAt, want.RevokedBy = reuse.Now, storage.ByReuse
		same(t, got, storage.Rotation{Grant: want, RotatedAt: e.now})
		e.wantLive(t, a, false)
		e.wantRefreshRefused(t, a, next)
	})
	t.Run("AS-95 without a grace the second use is reuse, in the same millisecond", func(t *testing.T) {
		a, first := e.granted(t)
		r := e.rotation(a, first)
		r.Grace, r.Sealed = 0, nil
		next := successor(r, e.rotate(t, r))
		_, err := rotate(r)
		wantErr(t, err, storage.ErrSpent)
		e.wantRefreshRefused(t, a, next)
	})
	t.Run("AS-95 reuse is seen also when the spent token has expired meanwhile", func(t *testing.T) {
		a, first := e.granted(t)
		e.rotate(t, e.rotation(a, first))
		reuse := e.rotation(a, first)
		reuse.Now = e.now.Add(31 * 24 * time.Hour)
		_, err := rotate(reuse)
		wantErr(t, err, storage.ErrSpent)
		e.wantLive(t, a, false)
	})
	t.Run("AS-95 an ancestor's reuse revokes, many rotations later", func(t *testing.T) {
		a, first := e.granted(t)
		last := first
		for range 5 {
			r := e.rotation(a, last)
			last = successor(r, e.rotate(t, r))
		}
		reuse := e.rotation(a, first)
		reuse.Now = e.now.Add(time.Hour)
		_, err := rotate(reuse)
		wantErr(t, err, storage.ErrSpent)
		e.wantRefreshRefused(t, a, last)
	})
	for _, m := range []struct {
		name string
		want error
		edit func(*storage.RotateRefresh)
	}{
		{"AS-97 another client's token", storage.ErrMismatch, func(r *storage.RotateRefresh) { r.ClientID = "other" }},
		{"AS-99 RFC 8707 2.2: another resource", storage.ErrResource,
			func(r *storage.RotateRefresh) { r.Resource = "https://other.example/" }},
	} {
		t.Run(m.name+" is refused and the token untouched", func(t *testing.T) {
			a, first := e.granted(t)
			r := e.rotation(a, first)
			m.edit(&r)
			got, err := rotate(r)
			wantErr(t, err, m.want)
			same(t, got.Grant, storage.Grant{})
			e.rotate(t, e.rotation(a, first))
		})
		t.Run(m.name+", spent long ago, is refused and revokes nothing", func(t *testing.T) {
			a, first := e.granted(t)
			e.rotate(t, e.rotation(a, first))
			r := e.rotation(a, first)
			r.Now = e.now.Add(time.Hour)
			m.edit(&r)
			_, err := rotate(r)
			wantErr(t, err, m.want)
			e.wantLive(t, a, true)
		})
	}
	t.Run("the resource may be left out", func(t *testing.T) {
		a, first := e.granted(t)
		r := e.rotation(a, first)
		r.Resource = ""
		e.rotate(t, r)
	})
	t.Run("an unknown token is ErrNotFound", func(t *testing.T) {
		a, _ := e.granted(t)
		_, err := rotate(e.rotation(a, unknown()))
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("at its idle expiry a token is expired", func(t *testing.T) {
		a, first := e.granted(t)
		r := e.rotation(a, first)
		r.Now = e.now.Add(30 * 24 * time.Hour)
		_, err := rotate(r)
		wantErr(t, err, storage.ErrExpired)
		_, _, err = e.s.RefreshToken(e.ctx, first, r.Now)
		wantErr(t, err, storage.ErrNotFound)
		e.wantLive(t, a, true)
		r.Now = r.Now.Add(-time.Millisecond)
		e.rotate(t, r)
	})
	t.Run("the successor never outlives the grant, and the grant ends all", func(t *testing.T) {
		a, first := e.granted(t)
		r := e.rotation(a, first)
		r.Next.ExpiresAt = a.Grant.ExpiresAt.Add(time.Hour)
		next := successor(r, e.rotate(t, r))
		_, expires, err := e.s.RefreshToken(e.ctx, next, e.now)
		check(t, err)
		same(t, expires, a.Grant.ExpiresAt)
		late := e.rotation(a, next)
		late.Now = a.Grant.ExpiresAt
		_, err = rotate(late)
		wantErr(t, err, storage.ErrExpired)
	})
	t.Run("within the grace a revoked grant gets no replay", func(t *testing.T) {
		a, first := e.granted(t)
		e.rotate(t, e.rotation(a, first))
		check(t, e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now))
		got, err := rotate(e.rotation(a, first))
		wantErr(t, err, storage.ErrRevoked)
		if len(got.Sealed) > 0 {
			t.Error("the successor was given out")
		}
	})
}

// rotated returns the expected result of a rotation or its replay.
func (e *env) rotated(a storage.Approval, r storage.RotateRefresh, replayed bool) storage.Rotation {
	out := storage.Rotation{Grant: a.Grant, RotatedAt: r.Now, Replayed: replayed}
	switch t := r.Token.(type) {
	case storage.NumberedRefresh:
		out.Generation = t.Generation + 1
	case storage.HashedRefresh:
		out.Sealed = r.Sealed
	}
	return out
}
