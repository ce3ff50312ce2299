package authserver

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// opened decodes a refresh token of this server.
func opened(t *testing.T, text any) grant.RefreshToken {
	t.Helper()
	token, _, _, ok := grant.DecodeRefresh(text.(string))
	if !ok {
		t.Fatalf("no refresh token of ours: %d characters", len(text.(string)))
	}
	return token
}

// TestARefreshTokenIsMadeOfKeyAndSecret checks that a stolen database or a stolen key, or both,
// cannot make a refresh token, and that attempts end nothing (issue 12, 1.1).
func TestARefreshTokenIsMadeOfKeyAndSecret(t *testing.T) {
	r := newRig(t)
	p := r.person()
	out := p.signIn()
	genuine := opened(t, out["refresh_token"])
	if genuine.Generation != 1 || !genuine.IssuedAt.Equal(r.now()) ||
		!strings.HasPrefix(genuine.GrantID, grant.Prefix) {
		t.Errorf("got %+v", genuine)
	}
	stored := sha256.Sum256(genuine.Secret[:])
	otherKey := make([]byte, 32)
	rand.Read(otherKey)
	for _, c := range []struct {
		name   string
		key    []byte
		secret [16]byte
	}{
		{"the secret without the key", otherKey, genuine.Secret},
		{"the key without the secret", r.keys.TokenKey(), [16]byte{1, 2, 3}},
		{"the key and what the database has of the secret", r.keys.TokenKey(), [16]byte(stored[:])},
	} {
		for generation := range int64(4) {
			forged := genuine
			forged.Generation, forged.Secret = generation, c.secret
			status, got := p.token(refreshForm(forged.Compose(c.key)))
			t.Log(c.name, generation)
			wantError(t, status, got, http.StatusBadRequest, oauth.InvalidGrant)
			if pg := p.post("/revoke",
				url.Values{"token": {forged.Compose(c.key)}, "client_id": {"app"}}); pg.status != http.StatusOK {
				t.Errorf("revocation: got %d", pg.status)
			}
		}
	}
	status, next := p.token(refreshForm(out["refresh_token"]))
	if second := opened(t, next["refresh_token"]); status != http.StatusOK || second.Generation != 2 ||
		second.Secret != genuine.Secret {
		t.Errorf("got %d %+v", status, second)
	}
}

// AS-96: the reply within the grace period is identical, byte for byte, even if the successor was
// used. After it, a token of any generation is detected as reuse.
func TestRefreshTokensOfEveryGeneration(t *testing.T) {
	r := newRig(t)
	p := r.person()
	out := p.signIn()
	var replies []map[string]any
	tokens := []any{out["refresh_token"]}
	for i := range 5 {
		r.advance(time.Second)
		status, reply := p.token(refreshForm(tokens[i]))
		if status != http.StatusOK {
			t.Fatalf("refresh %d: got %d %v", i, status, reply)
		}
		replies, tokens = append(replies, reply), append(tokens, reply["refresh_token"])
	}
	for i, want := range replies {
		status, got := p.token(refreshForm(tokens[i]))
		if status != http.StatusOK || got["refresh_token"] != want["refresh_token"] ||
			got["access_token"] != want["access_token"] {
			t.Errorf("token %d again: got %d, another reply", i, status)
		}
	}
	r.advance(2 * time.Minute)
	status, got := p.token(refreshForm(tokens[2]))
	wantError(t, status, got, http.StatusBadRequest, oauth.InvalidGrant)
	status, got = p.token(refreshForm(tokens[5]))
	wantError(t, status, got, http.StatusBadRequest, oauth.InvalidGrant)
	if !strings.Contains(r.log.String(), `"`+audit.TokenReuse+`"`) {
		t.Error("no event reports the reuse")
	}
}

// TestARefreshTokenThatTheDatabaseHasLost checks that after an asynchronous failover, or a restored
// backup, the client continues with its token, and the log reports it (issue 12, 2.3).
func TestARefreshTokenThatTheDatabaseHasLost(t *testing.T) {
	r := newRig(t)
	p := r.person()
	out := p.signIn()
	lost := opened(t, out["refresh_token"]).Successor(r.now()).Successor(r.now()).Compose(r.keys.TokenKey())
	r.advance(time.Minute)
	pg := p.post("/introspect", url.Values{"token": {lost}}, "Authorization", basic("static", testSecret))
	if pg.status != http.StatusOK || strings.Contains(pg.body, `"active":true`) {
		t.Errorf("introspection by another client: got %d %s", pg.status, pg.body)
	}
	status, reply := p.token(refreshForm(lost, "scope", "mcp")) // reads before it writes
	if status != http.StatusOK || opened(t, reply["refresh_token"]).Generation != 4 {
		t.Fatalf("got %d %v", status, reply["error"])
	}
	if !strings.Contains(r.log.String(), `"`+audit.TokenRecovered+`"`) {
		t.Error("no event reports it")
	}
	status, again := p.token(refreshForm(lost))
	if status != http.StatusOK || again["refresh_token"] != reply["refresh_token"] {
		t.Errorf("again: got %d, another reply", status)
	}
	if status, reply = p.token(refreshForm(reply["refresh_token"])); status != http.StatusOK {
		t.Errorf("its successor: got %d %v", status, reply)
	}
	ended := opened(t, reply["refresh_token"]).Successor(r.now()).Successor(r.now()).Compose(r.keys.TokenKey())
	r.advance(31 * 24 * time.Hour)
	status, reply = p.token(refreshForm(ended))
	wantError(t, status, reply, http.StatusBadRequest, oauth.InvalidGrant)
}

// Junk costs no query: a token that no server of this installation made is detected without the
// store.
func TestJunkIsNoQuery(t *testing.T) {
	var store *storagetest.Failing
	r := newRig(t, func(c *Config) {
		store = storagetest.NewFailing(c.Store.(storage.Store))
		c.Store = store
	})
	p := r.person()
	token := p.signIn()["refresh_token"].(string)
	changed := []byte(token)
	changed[len(changed)/2] ^= 1
	for _, junk := range []string{
		"x", grant.RefreshPrefix, "mcprt", strings.TrimPrefix(token, grant.RefreshPrefix), token + "A",
		token[:len(token)-1], string(changed),
		token[:len(token)-4] + "\n" + token[len(token)-4:], grant.RefreshPrefix + strings.Repeat("A", 4000),
		secrets.Token("mcprs_"),
	} {
		store.Arm(1 << 30)
		status, out := p.token(refreshForm(junk))
		p.post("/revoke", url.Values{"token": {junk}, "client_id": {"app"}})
		p.post("/introspect", url.Values{"token": {junk}}, "Authorization", basic("static", testSecret))
		_, called := store.Disarm()
		wantError(t, status, out, http.StatusBadRequest, oauth.InvalidGrant)
		for _, verb := range []string{"RotateRefresh", "RefreshToken", "RevokeRefresh"} {
			if slices.Contains(called, verb) {
				t.Errorf("%.20q of %d characters: the store was asked for %s", junk, len(junk), verb)
			}
		}
	}
	if status, out := p.token(refreshForm(token)); status != http.StatusOK {
		t.Errorf("the token itself: got %d %v", status, out)
	}
}

// After the token key is renewed, earlier refresh tokens are invalid; the grants stay.
func TestARenewedTokenKeyEndsRefreshTokens(t *testing.T) {
	r := newRig(t)
	p := r.person()
	out := p.signIn()
	if err := r.Keys().RenewTokenKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	status, got := p.token(refreshForm(out["refresh_token"]))
	wantError(t, status, got, http.StatusBadRequest, oauth.InvalidGrant)
	if status, got = p.token(refreshForm(p.signIn()["refresh_token"])); status != http.StatusOK {
		t.Errorf("a new one: got %d %v", status, got)
	}
}
