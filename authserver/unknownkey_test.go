package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// keysAway is a store whose signing keys cannot be read for a while.
type keysAway struct {
	storage.Store
	away atomic.Bool
}

func (k *keysAway) Keys(ctx context.Context, now time.Time) ([]storage.SigningKey, error) {
	if k.away.Load() {
		return nil, errors.New("the store is away")
	}
	return k.Store.Keys(ctx, now)
}

// A replica gets a token with a key that it cannot read yet. It knows nothing about the token, so
// it must not report it as inactive, or its revocation as done.
func TestTokenOfUnknownKeyWhileStoreIsAway(t *testing.T) {
	store := &keysAway{}
	r := newRig(t, func(c *Config) {
		store.Store = c.Store.(storage.Store)
		c.Store = store
	})
	p := r.person()
	claims := r.verified(t, p.signIn()["access_token"].(string))
	other, err := keys.New(t.Context(), keys.Config{Store: store.Store, SecretKeys: r.cfg.SecretKeys, Now: r.now})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.RevokeAll(t.Context()); err != nil { // its new key signs immediately
		t.Fatal(err)
	}
	token, err := other.Sign(t.Context(), oauth.AccessTokenType, claims)
	if err != nil {
		t.Fatal(err)
	}
	send := func(path string, client ...string) (out map[string]any, status int) {
		t.Helper()
		form := url.Values{"token": {token}}
		if len(client) == 0 {
			form.Set("client_id", "app")
		}
		pg := p.post(path, form, client...)
		if pg.body != "" && json.Unmarshal([]byte(pg.body), &out) != nil {
			t.Fatalf("%s: got %d %s", path, pg.status, pg.body)
		}
		if pg.status == http.StatusServiceUnavailable && pg.header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", path)
		}
		return out, pg.status
	}
	machine := []string{"Authorization", basic("machine", testSecret)}
	store.away.Store(true)
	r.advance(time.Second)
	for range 2 { // the second is not read again so soon
		out, status := send("/revoke")
		wantError(t, status, out, http.StatusServiceUnavailable, oauth.TemporarilyUnavailable)
		out, status = send("/introspect", machine...)
		wantError(t, status, out, http.StatusServiceUnavailable, oauth.TemporarilyUnavailable)
	}
	store.away.Store(false)
	r.advance(3 * time.Second)
	if out, status := send("/introspect", machine...); status != http.StatusOK || out["active"] != true {
		t.Errorf("AS-226 when it is back: got %d %v", status, out)
	}
	if out, status := send("/revoke"); status != http.StatusOK {
		t.Errorf("AS-226 when it is back: got %d %v", status, out)
	}
	if out, _ := send("/introspect", machine...); out["active"] != false {
		t.Errorf("AS-226 after the revocation: got %v", out)
	}
}
