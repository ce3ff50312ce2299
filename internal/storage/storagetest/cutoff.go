package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// cutOffs checks that each revocation ends all access immediately.
func cutOffs(t *testing.T, e *env) {
	for _, c := range []struct {
		name     string
		cut      func(a storage.Approval) error
		sessions bool              // also end
		by       storage.RevokedBy // the recorded cause
	}{
		{"RevokeGrant",
			func(a storage.Approval) error { return e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now) },
			false, storage.ByOperator},
		{"SetPassword with grants (OAuth 2.1 4.3.3)", func(a storage.Approval) error {
			return e.s.SetPassword(e.ctx, a.Grant.UserID, "$new", true, e.now)
		}, true, storage.ByPassword},
		{"SetUserDisabled", func(a storage.Approval) error {
			return e.s.SetUserDisabled(e.ctx, a.Grant.UserID, true, e.now)
		}, true, storage.ByDisabled},
		{"disabled and enabled again", func(a storage.Approval) error {
			if err := e.s.SetUserDisabled(e.ctx, a.Grant.UserID, true, e.now); err != nil {
				return err
			}
			return e.s.SetUserDisabled(e.ctx, a.Grant.UserID, false, e.now)
		}, true, storage.ByDisabled},
		{"DeleteUser", func(a storage.Approval) error { return e.s.DeleteUser(e.ctx, a.Grant.UserID, e.now) }, true,
			storage.ByUserDeleted},
		{"DeleteClient", func(a storage.Approval) error { return e.s.DeleteClient(e.ctx, a.Grant.ClientID, e.now) },
			false, storage.ByClientDeleted},
		{"ForgetConsent", func(a storage.Approval) error {
			return e.s.ForgetConsent(e.ctx, a.Grant.UserID, a.Grant.ClientID, a.Grant.Resource, e.now)
		}, false, storage.ByConsent},
	} {
		t.Run(c.name+"ends tokens and codes, and no others", func(t *testing.T) {
			a, refresh := e.granted(t)
			other, otherRefresh := e.granted(t)
			pending := e.approval(person{User: storage.User{ID: a.Grant.UserID}, session: a.Session})
			pending.Client, pending.Grant.ClientID = nil, a.Grant.ClientID
			if c.name != "RevokeGrant" {
				check(t, e.s.Approve(e.ctx, pending))
			}
			check(t, c.cut(a))
			e.wantLive(t, a, false)
			e.wantRefreshRefused(t, a, refresh)
			e.wantRevoked(t, a, refresh, c.by)
			if c.name != "RevokeGrant" {
				_, err := e.s.RedeemCode(e.ctx, e.redemption(pending))
				wantErr(t, err, storage.ErrRevoked)
			}
			_, err := e.s.Visit(e.ctx, storage.VisitKey{Session: a.Session, Now: e.now})
			if c.sessions {
				wantErr(t, err, storage.ErrNotFound)
			} else {
				check(t, err)
			}
			e.wantLive(t, other, true)
			e.rotate(t, e.rotation(other, otherRefresh))
		})
	}
	t.Run("SetPassword without grants ends the sessions only", func(t *testing.T) {
		a, refresh := e.granted(t)
		check(t, e.s.SetPassword(e.ctx, a.Grant.UserID, "$new", false, e.now))
		_, err := e.s.Visit(e.ctx, storage.VisitKey{Session: a.Session, Now: e.now})
		wantErr(t, err, storage.ErrNotFound)
		e.wantLive(t, a, true)
		e.rotate(t, e.rotation(a, refresh))
	})
	t.Run("ForgetConsent of one resource keeps the others", func(t *testing.T) {
		a, _ := e.granted(t)
		b := e.approval(person{User: storage.User{ID: a.Grant.UserID}, session: a.Session})
		b.Client, b.Grant.ClientID, b.Grant.Resource = nil, a.Grant.ClientID, "https://other.example/"
		check(t, e.s.Approve(e.ctx, b))
		check(t, e.s.ForgetConsent(e.ctx, a.Grant.UserID, a.Grant.ClientID, a.Grant.Resource, e.now))
		e.wantLive(t, b, true)
		v, err := e.s.Visit(e.ctx,
			storage.VisitKey{Session: a.Session, ClientID: a.Grant.ClientID, Resource: a.Grant.Resource, Now: e.now})
		check(t, err)
		if v.Consented != nil || !v.Known {
			t.Errorf("got consent %v, known %v; want none, true", v.Consented, v.Known)
		}
	})
	t.Run("a deleted client's consents are forgotten", func(t *testing.T) {
		a, _ := e.granted(t)
		check(t, e.s.DeleteClient(e.ctx, a.Grant.ClientID, e.now))
		v, err := e.s.Visit(e.ctx,
			storage.VisitKey{Session: a.Session, ClientID: a.Grant.ClientID, Resource: a.Grant.Resource, Now: e.now})
		check(t, err)
		if v.Known {
			t.Error("the consent is still there")
		}
	})
}

func revocations(t *testing.T, e *env) {
	t.Run("RFC 7009 2.1: a refresh token, live or spent, ends its grant", func(t *testing.T) {
		for _, spent := range []bool{false, true} {
			a, refresh := e.granted(t)
			if spent {
				e.rotate(t, e.rotation(a, refresh))
			}
			for range 2 {
				g, err := e.s.RevokeRefresh(e.ctx, refresh, a.Grant.ClientID, e.now)
				check(t, err)
				same(t, []string{g.ID, g.UserID, g.Resource}, []string{a.Grant.ID, a.Grant.UserID, a.Grant.Resource})
			}
			e.wantLive(t, a, false)
			e.wantRefreshRefused(t, a, refresh)
		}
	})
	t.Run("RFC 7009 2.1: another client cannot revoke it", func(t *testing.T) {
		a, refresh := e.granted(t)
		g, err := e.s.RevokeRefresh(e.ctx, refresh, "other", e.now)
		wantErr(t, err, storage.ErrMismatch)
		same(t, g, storage.Grant{})
		_, err = e.s.RevokeRefresh(e.ctx, unknown(), a.Grant.ClientID, e.now)
		wantErr(t, err, storage.ErrNotFound)
		e.wantLive(t, a, true)
	})
	t.Run("revoking an unknown or revoked grant is no error, and keeps the first time", func(t *testing.T) {
		check(t, e.s.RevokeGrant(e.ctx, "none", storage.ByOperator, e.now))
		a := e.approved(t)
		check(t, e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now))
		check(t, e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now.Add(time.Hour)))
		g, err := e.s.RedeemCode(e.ctx, e.redemption(a))
		wantErr(t, err, storage.ErrRevoked)
		same(t, g.Grant.RevokedAt, e.now)
	})
	active := func(t testing.TB, k storage.TokenKey) bool {
		t.Helper()
		got, err := e.s.TokenActive(e.ctx, k)
		check(t, err)
		return got.Active
	}
	t.Run("a token of an unknown or expired grant is inactive", func(t *testing.T) {
		a, _ := e.granted(t)
		k := storage.TokenKey{
			TokenID: "t", GrantID: a.Grant.ID, ClientID: a.Grant.ClientID,
			Now: a.Grant.ExpiresAt.Add(-time.Millisecond),
		}
		if !active(t, k) {
			t.Error("a millisecond before the end: inactive")
		}
		k.Now = a.Grant.ExpiresAt
		if active(t, k) {
			t.Error("at the end: active")
		}
		k.Now, k.GrantID = e.now, "none"
		if active(t, k) {
			t.Error("unknown grant: active")
		}
	})
	t.Run("RU-06 an expired token is good until something but time ends it", func(t *testing.T) {
		expiredTokens(t, e, active)
	})
	t.Run("a machine's token is active until it is denied or its client deleted", func(t *testing.T) {
		k := storage.TokenKey{TokenID: "jti", ClientID: "machine", Now: e.now}
		if !active(t, k) {
			t.Error("at first: inactive")
		}
		check(t, e.s.DenyToken(e.ctx, "jti", e.now.Add(time.Hour)))
		check(t, e.s.DenyToken(e.ctx, "jti", e.now.Add(time.Minute)))
		if active(t, k) {
			t.Error("denied: active")
		}
		late := k
		late.Now = e.now.Add(30 * time.Minute)
		if active(t, late) {
			t.Error("denied for an hour, then for a minute: active after the minute")
		}
		k.TokenID = "another"
		if !active(t, k) {
			t.Error("another token of the client: inactive")
		}
		check(t, e.s.DeleteClient(e.ctx, "machine", e.now))
		if active(t, k) {
			t.Error("client deleted: active")
		}
	})
}

func statusIndexes(t *testing.T, e *env) {
	seen, grants := map[int64]string{}, []storage.Grant{}
	for range 3 {
		a, refresh := e.granted(t)
		r := e.rotation(a, refresh)
		out, err := e.s.RotateRefresh(e.ctx, r)
		check(t, err)
		again, err := e.s.RotateRefresh(e.ctx, r)
		check(t, err)
		if i := out.Grant.StatusIndex; i <= 0 || seen[i] != "" || again.Grant.StatusIndex != i {
			t.Errorf("grant %s has the index %d, its replay %d, of %v", out.Grant.ID, i, again.Grant.StatusIndex, seen)
		}
		seen[out.Grant.StatusIndex] = out.Grant.ID
		grants = append(grants, out.Grant)
	}
	revoked := func(from, to int64) []int64 {
		t.Helper()
		out, err := e.s.RevokedGrants(e.ctx, from, to)
		check(t, err)
		return out
	}
	first, last := grants[0].StatusIndex, grants[2].StatusIndex
	if got := revoked(0, 1<<40); len(got) != 0 {
		t.Errorf("without a revocation: got %v", got)
	}
	check(t, e.s.RevokeGrant(e.ctx, grants[2].ID, storage.ByOperator, e.now))
	check(t, e.s.RevokeGrant(e.ctx, grants[0].ID, storage.ByOperator, e.now))
	same(t, revoked(0, 1<<40), []int64{first, last})
	same(t, revoked(first, last), []int64{first})
	same(t, revoked(first+1, last+1), []int64{last})
	t.Run("it is seen as long as a token can live", func(t *testing.T) {
		_, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(24*time.Hour - time.Second)}, 100)
		check(t, err)
		same(t, revoked(0, 1<<40), []int64{first, last})
	})
}

// expiredTokens checks tokens that expire with their grant and node, before and after these are
// swept.
func expiredTokens(t *testing.T, e *env, active func(testing.TB, storage.TokenKey) bool) {
	for _, swept := range []bool{false, true} {
		a, _ := e.granted(t)
		b, _ := e.granted(t)
		n := e.addNode(t, a, storage.Node{})
		denied := storage.TokenKey{TokenID: secrets.ID("jti_"), ClientID: "some-machine"}
		check(t, e.s.DenyToken(e.ctx, denied.TokenID, e.now.Add(time.Hour)))
		ends := a.Grant.ExpiresAt
		if swept {
			for n, err := 1, error(nil); n > 0; {
				n, err = e.s.Sweep(e.ctx, storage.Retention{Now: ends}, 1000)
				check(t, err)
			}
		}
		ask := func(g storage.Approval, change func(*storage.TokenKey)) bool {
			k := storage.TokenKey{
				TokenID: "t", GrantID: g.Grant.ID, ClientID: g.Grant.ClientID, Now: ends.Add(-time.Millisecond),
				Expired: true, UserID: g.Grant.UserID,
			}
			change(&k)
			return active(t, k)
		}
		node := func(k *storage.TokenKey) { k.NodeID, k.Now = n.ID, n.ExpiresAt.Add(-time.Millisecond) }
		nothing := func(*storage.TokenKey) {}
		if !ask(a, nothing) || !ask(a, node) || !ask(b, nothing) {
			t.Errorf("swept %v: inactive before anything ended them", swept)
		}
		if k := denied; !swept {
			k.Now, k.Expired = e.now.Add(time.Hour-time.Millisecond), true
			if active(t, k) {
				t.Error("denied: active")
			}
			check(t, e.s.PauseGrant(e.ctx, a.Grant.UserID, a.Grant.ID, e.now))
			if ask(a, nothing) || ask(a, node) {
				t.Error("paused: active")
			}
		}
		check(t, e.s.SetUserDisabled(e.ctx, b.Grant.UserID, true, e.now))
		if ask(b, nothing) {
			t.Errorf("swept %v: of a disabled user: active", swept)
		}
	}
}
