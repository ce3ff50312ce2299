package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func clients(t *testing.T, e *env) {
	secret := randomHash()
	full := storage.Client{ID: "full", SecretHash: &secret, Name: "Näme", RedirectURIs: []string{"a", "b"},
		GrantTypes: []string{"client_credentials"}, AuthMethod: "client_secret_basic", JWKS: []byte(`{"keys":[]}`),
		JWKSURI: "https://k", Scopes: oauth.Scopes{"x", "y"},
		Resources: []string{"https://r"}, Source: storage.SourceStatic, Metadata: []byte(`{"k":1}`), CreatedAt: e.now,
		LastUsedAt: e.now}

	t.Run("what was put is what is returned", func(t *testing.T) {
		for _, c := range []storage.Client{full, {ID: "bare", CreatedAt: e.now}} {
			check(t, e.s.PutClient(e.ctx, c))
			got, err := e.s.Client(e.ctx, c.ID)
			check(t, err)
			same(t, got, c)
		}
	})
	t.Run("a taken id is ErrExists", func(t *testing.T) {
		wantErr(t, e.s.PutClient(e.ctx, storage.Client{ID: "full", CreatedAt: e.now}), storage.ErrExists)
	})
	t.Run("AS-150 a replacement changes all but the last use, and creates what was never stored", func(t *testing.T) {
		c := full
		c.ID = "replaced"
		check(t, e.s.PutClient(e.ctx, c))
		next := storage.Client{
			ID: c.ID, Name: "New", RedirectURIs: []string{"c"}, AuthMethod: "none", Source: storage.SourceDynamic,
			CreatedAt: c.CreatedAt,
		}
		check(t, e.s.ReplaceClient(e.ctx, next, e.now))
		next.LastUsedAt = c.LastUsedAt
		got, err := e.s.Client(e.ctx, c.ID)
		check(t, err)
		same(t, got, next)

		next.ID, next.LastUsedAt = "replaced, never stored", time.Time{}
		check(t, e.s.ReplaceClient(e.ctx, next, e.now))
		got, err = e.s.Client(e.ctx, next.ID)
		check(t, err)
		same(t, got, next)

		for _, id := range []string{c.ID, next.ID} {
			check(t, e.s.DeleteClient(e.ctx, id, e.now))
			next.ID = id
			wantErr(t, e.s.ReplaceClient(e.ctx, next, e.now), storage.ErrRevoked)
		}
	})
	t.Run("an unknown id is ErrNotFound", func(t *testing.T) {
		_, err := e.s.Client(e.ctx, "unknown")
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("a deleted client is ErrRevoked and its id is never free again", func(t *testing.T) {
		check(t, e.s.DeleteClient(e.ctx, "bare", e.now))
		check(t, e.s.DeleteClient(e.ctx, "bare", e.now.Add(time.Hour)))
		_, err := e.s.Client(e.ctx, "bare")
		wantErr(t, err, storage.ErrRevoked)
		wantErr(t, e.s.PutClient(e.ctx, storage.Client{ID: "bare", CreatedAt: e.now}), storage.ErrExists)
	})
	t.Run("a client that was never stored can be deleted", func(t *testing.T) {
		check(t, e.s.DeleteClient(e.ctx, "sealed", e.now))
		_, err := e.s.Client(e.ctx, "sealed")
		wantErr(t, err, storage.ErrRevoked)
	})
	t.Run("lists by id, page by page, without the deleted", func(t *testing.T) {
		for _, id := range []string{"l3", "l1", "l2"} {
			check(t, e.s.PutClient(e.ctx, storage.Client{ID: id, CreatedAt: e.now}))
		}
		var got []string
		for after := ""; ; {
			page, err := e.s.ListClients(e.ctx, after, 2)
			check(t, err)
			if len(page) == 0 {
				break
			}
			for _, c := range page {
				got = append(got, c.ID)
			}
			after = got[len(got)-1]
		}
		same(t, got, []string{"full", "l1", "l2", "l3"})
	})
	t.Run("the last use is that of approval, redemption and refresh, to the minute", func(t *testing.T) {
		lastUse(t, e)
	})
}

func lastUse(t *testing.T, e *env) {
	a := e.approval(e.person(t))
	want := func(step string, at time.Time) {
		t.Helper()
		c, err := e.s.Client(e.ctx, a.Grant.ClientID)
		check(t, err)
		if !c.LastUsedAt.Equal(at) {
			t.Errorf("after %s: got %v, want %v", step, c.LastUsedAt, at)
		}
	}
	later := *e
	check(t, e.s.Approve(e.ctx, a))
	want("approval", e.now)

	later.now = e.now.Add(time.Second)
	r := later.redemption(a)
	first := later.redeem(t, r)
	want("redemption a second later", e.now)

	later.now = e.now.Add(time.Minute)
	rotated := later.rotation(a, first)
	later.rotate(t, rotated)
	want("refresh a minute later", later.now)

	later.now = e.now.Add(time.Hour)
	again := later.approval(person{User: storage.User{ID: a.Grant.UserID}, session: a.Session})
	again.Client, again.Grant.ClientID = nil, a.Grant.ClientID
	check(t, e.s.Approve(e.ctx, again))
	want("second approval", later.now)

	later.now = e.now.Add(time.Hour + time.Minute)
	again.Code.ExpiresAt = later.now.Add(time.Minute)
	again.Grant.ID, again.Code.Hash = secrets.ID("gr_"), randomHash()
	check(t, e.s.Approve(e.ctx, again))
	later.redeem(t, later.redemption(again))
	want("redemption", later.now)
}
