package authserver

import (
	"bytes"
	"net/url"
	"testing"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// EN-01: changes of a client by another process or a command take effect immediately, although the
// server caches clients for some seconds.
func TestClientChangedElsewhere(t *testing.T) {
	r := newRig(t, func(c *Config) {
		registry, err := dcr.New(dcr.Config{
			Store: c.Store, SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)}, Now: c.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Registry = registry
	})
	p := r.person()
	token := func(secret string) int {
		form := url.Values{"grant_type": {"client_credentials"}}
		status, _ := p.token(form, "Authorization", basic("machine", secret))
		return status
	}
	code := p.approve(authorizeQuery("client_id", "static")).Get("code")
	if token(testSecret) != 200 {
		t.Fatal("no token")
	}
	replaced := func(id, secret string) {
		c, err := r.store.Client(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		hash := storage.Hash(secrets.Hash(secret))
		c.SecretHash = &hash
		if err := r.store.ReplaceClient(t.Context(), c, r.now()); err != nil {
			t.Fatal(err)
		}
	}
	const next = "the next secret of this client, long enough"
	replaced("machine", next)
	replaced("static", next)
	if got := token(testSecret); got != 401 {
		t.Errorf("the previous secret: got %d, want 401", got)
	}
	if got := token(next); got != 200 {
		t.Errorf("the new secret: got %d, want 200", got)
	}
	status, out := p.token(codeForm(code, "client_id", ""), "Authorization", basic("static", testSecret))
	wantError(t, status, out, 401, oauth.InvalidClient)
	if status, out = p.token(codeForm(code, "client_id", ""), "Authorization", basic("static", next)); status != 200 {
		t.Errorf("the code, with the new secret: got %d %v", status, out)
	}
	t.Run("A-M8 EN-01 a public client that has a secret by now", func(t *testing.T) {
		one, other := p.approve(authorizeQuery()).Get("code"), p.approve(authorizeQuery()).Get("code")
		if status, out := p.token(codeForm(one)); status != 200 {
			t.Fatalf("while it is public: got %d %v", status, out)
		}
		c, err := r.store.Client(t.Context(), "app")
		if err != nil {
			t.Fatal(err)
		}
		hash := storage.Hash(secrets.Hash(next))
		c.SecretHash, c.AuthMethod = &hash, "client_secret_basic"
		if err := r.store.ReplaceClient(t.Context(), c, r.now()); err != nil {
			t.Fatal(err)
		}
		status, out := p.token(codeForm(other))
		wantError(t, status, out, 401, oauth.InvalidClient)
	})
	if err := r.store.DeleteClient(t.Context(), "machine", r.now()); err != nil {
		t.Fatal(err)
	}
	if got := token(next); got != 401 {
		t.Errorf("a deleted client: got %d, want 401", got)
	}
}
