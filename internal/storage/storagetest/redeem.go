package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const otherRedirect = "AS-92 another redirect URI"

func redemptions(t *testing.T, e *env) {
	redeem := func(r storage.RedeemCode) (storage.Grant, error) {
		out, err := e.s.RedeemCode(e.ctx, r)
		return out.Grant, err
	}

	t.Run("AS-49 a matching request gets the grant and its first refresh token", func(t *testing.T) {
		a := e.approved(t)
		r := e.redemption(a)
		first := e.redeem(t, r)
		g, expires, err := e.s.RefreshToken(e.ctx, first, e.now)
		check(t, err)
		same(t, g, a.Grant)
		same(t, expires, r.Refresh.ExpiresAt)
	})
	t.Run("AS-93 without a refresh token none is stored", func(t *testing.T) {
		r := e.redemption(e.approved(t))
		r.Refresh = nil
		_, err := redeem(r)
		check(t, err)
	})
	t.Run("AS-92 OAuth 2.1 10.2: the redirect URI may be left out", func(t *testing.T) {
		r := e.redemption(e.approved(t))
		r.RedirectURI = ""
		_, err := redeem(r)
		check(t, err)
	})
	t.Run("RFC 8707 2.2: the resource may be left out", func(t *testing.T) {
		r := e.redemption(e.approved(t))
		r.Resource = ""
		_, err := redeem(r)
		check(t, err)
	})
	t.Run("an unknown code is ErrNotFound", func(t *testing.T) {
		r := e.redemption(e.approved(t))
		r.Hash = randomHash()
		_, err := redeem(r)
		wantErr(t, err, storage.ErrNotFound)
	})
	for _, m := range []struct {
		name string
		want error
		edit func(*storage.RedeemCode)
	}{
		{"AS-90 another client", storage.ErrMismatch, func(r *storage.RedeemCode) { r.ClientID = "other" }},
		{"AS-64 another verifier", storage.ErrMismatch, func(r *storage.RedeemCode) { r.Challenge = "other" }},
		{"AS-64 AS-65 no verifier", storage.ErrMismatch, func(r *storage.RedeemCode) { r.Challenge = "" }},
		{otherRedirect, storage.ErrMismatch, func(r *storage.RedeemCode) { r.RedirectURI = "http://127.0.0.1:9/cb" }},
		{"RFC 8707 2.2: another resource", storage.ErrResource,
			func(r *storage.RedeemCode) { r.Resource = "https://other.example/" }},
	} {
		t.Run(m.name+" is refused and the code stays good", func(t *testing.T) {
			a := e.approved(t)
			r := e.redemption(a)
			m.edit(&r)
			g, err := redeem(r)
			wantErr(t, err, m.want)
			same(t, g, storage.Grant{})
			_, err = redeem(e.redemption(a))
			check(t, err)
		})
		if m.name == otherRedirect {
			continue // the redirect URI of a redeemed code is not kept; code and verifier are enough
		}
		t.Run("AS-91 OAuth 2.1 4.1.3: replay by "+m.name+" does not revoke", func(t *testing.T) {
			a, refresh := e.granted(t)
			r := e.redemption(a)
			m.edit(&r)
			_, err := redeem(r)
			wantErr(t, err, m.want)
			e.wantLive(t, a, true)
			e.rotate(t, e.rotation(a, refresh))
		})
	}
	t.Run("AS-49 at its expiry a code is expired", func(t *testing.T) {
		a := e.approved(t)
		r := e.redemption(a)
		r.Now = a.Code.ExpiresAt
		_, err := redeem(r)
		wantErr(t, err, storage.ErrExpired)
		r.Now = a.Code.ExpiresAt.Add(-time.Millisecond)
		_, err = redeem(r)
		check(t, err)
	})
	t.Run("a code of an expired grant is expired", func(t *testing.T) {
		a := e.approval(e.person(t))
		a.Grant.ExpiresAt = e.now.Add(time.Second)
		check(t, e.s.Approve(e.ctx, a))
		r := e.redemption(a)
		r.Now = a.Grant.ExpiresAt
		_, err := redeem(r)
		wantErr(t, err, storage.ErrExpired)
	})
	t.Run("AS-90 AS-91 OAuth 2.1 4.1.3: a matching second use is ErrSpent and revokes the grant", func(t *testing.T) {
		for _, after := range []time.Duration{0, time.Second, time.Hour} { // also when the code has expired
			a, refresh := e.granted(t)
			r := e.redemption(a)
			r.Now = e.now.Add(after)
			got, err := redeem(r)
			wantErr(t, err, storage.ErrSpent)
			want := a.Grant
			want.RevokedAt, want.RevokedBy = r.Now, storage.ByReuse
			same(t, got, want)
			e.wantLive(t, a, false)
			e.wantRefreshRefused(t, a, refresh)
			_, _, err = e.s.RefreshToken(e.ctx, made(*r.Refresh, a.Grant.ID, 1, r.Now), e.now)
			wantErr(t, err, storage.ErrNotFound)
		}
	})
	t.Run("a revoked grant's code is ErrRevoked", func(t *testing.T) {
		a := e.approved(t)
		check(t, e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now))
		got, err := redeem(e.redemption(a))
		wantErr(t, err, storage.ErrRevoked)
		same(t, got.ID, a.Grant.ID)
	})
	t.Run("the first refresh token never outlives the grant", func(t *testing.T) {
		a := e.approved(t)
		r := e.redemption(a)
		r.Refresh.ExpiresAt = a.Grant.ExpiresAt.Add(time.Hour)
		_, expires, err := e.s.RefreshToken(e.ctx, e.redeem(t, r), e.now)
		check(t, err)
		same(t, expires, a.Grant.ExpiresAt)
	})
}

// namedCodes checks codes that name their grant, which finds them.
func namedCodes(t *testing.T, e *env) {
	redeem := func(r storage.RedeemCode) error {
		_, err := e.s.RedeemCode(e.ctx, r)
		return err
	}
	t.Run("AS-90 a code that names the grant of another is unknown, and both stay good", func(t *testing.T) {
		a, b := e.approved(t), e.approved(t)
		r := e.redemption(a)
		r.GrantID = b.Grant.ID
		wantErr(t, redeem(r), storage.ErrNotFound)
		check(t, redeem(e.redemption(a)))
		check(t, redeem(e.redemption(b)))
	})
	t.Run("AS-91 a guess at a redeemed code ends nothing, whatever of it is right", func(t *testing.T) {
		a, refresh := e.granted(t)
		guess := e.redemption(a)
		guess.Hash = randomHash()
		wantErr(t, redeem(guess), storage.ErrMismatch)
		guess = e.redemption(a)
		guess.Challenge = ""
		wantErr(t, redeem(guess), storage.ErrMismatch)
		e.wantLive(t, a, true)
		e.rotate(t, e.rotation(a, refresh))
	})
	t.Run("AS-91 with code and verifier a second use ends the grant, whatever redirect URI it says",
		func(t *testing.T) {
			a, _ := e.granted(t)
			r := e.redemption(a)
			r.RedirectURI = "http://127.0.0.1:9/cb"
			wantErr(t, redeem(r), storage.ErrSpent)
			e.wantLive(t, a, false)
		})
}
