package authserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/proofstore"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func newSigner(t testing.TB) *dpop.Signer {
	t.Helper()
	s, err := dpop.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// proof returns a new proof for the token endpoint.
func (p *person) proof(s *dpop.Signer, nonce ...string) string {
	p.t.Helper()
	c := dpop.Claims{Method: "POST", URL: p.http.URL + "/token", Now: p.now()}
	if len(nonce) > 0 {
		c.Nonce = nonce[0]
	}
	text, err := s.Proof(c)
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// wantBound checks that a response has a token that is bound to a key; nil means unbound.
func (p *person) wantBound(status int, out map[string]any, s *dpop.Signer) string {
	p.t.Helper()
	token, _ := out["access_token"].(string)
	if status != http.StatusOK || token == "" {
		p.t.Fatalf("got %d %v, want a token", status, out)
	}
	claims := p.verified(p.t, token)
	switch {
	case s == nil && (claims.Confirmation != nil || out["token_type"] != "Bearer"):
		p.t.Errorf("got %v and cnf %v, want a bearer token", out["token_type"], claims.Confirmation)
	case s != nil && (claims.Confirmation == nil || claims.Confirmation.Thumbprint != s.Thumbprint() ||
		out["token_type"] != "DPoP"):
		p.t.Errorf("got %v and cnf %v, want a token bound to %s", out["token_type"], claims.Confirmation, s.Thumbprint())
	}
	return token
}

func robotForm() url.Values {
	return url.Values{"grant_type": {"client_credentials"}, "resource": {testResource}}
}

// asMachine requests a token as the machine.
func (p *person) asMachine(proofs ...string) (int, map[string]any) {
	header := []string{"Authorization", basic("machine", testSecret)}
	for _, proof := range proofs {
		header = append(header, "DPoP", proof)
	}
	return p.token(robotForm(), header...)
}

func TestDPoPEveryGrant(t *testing.T) {
	key, other := newSigner(t), newSigner(t)
	t.Run("AS-212 AS-122 client credentials", func(t *testing.T) {
		p := newRig(t).person()
		status, out := p.asMachine(p.proof(key))
		token := p.wantBound(status, out, key)
		answer := p.introspected(token)
		if answer.TokenType != "DPoP" || answer.Confirmation == nil ||
			answer.Confirmation.Thumbprint != key.Thumbprint() {
			t.Errorf("RFC 9449 6.2: introspection says %+v", answer)
		}
	})
	t.Run("AS-213 without a proof it is a bearer token", func(t *testing.T) {
		p := newRig(t).person()
		status, out := p.asMachine()
		if answer := p.introspected(p.wantBound(status, out, nil)); answer.TokenType != "Bearer" {
			t.Errorf("introspection says %+v", answer)
		}
	})
	t.Run("AS-212 a code, and AS-102 AS-241 the refresh token of a public client", func(t *testing.T) {
		p := newRig(t).person()
		code := p.approve(authorizeQuery()).Get("code")
		status, out := p.token(codeForm(code), "DPoP", p.proof(key))
		p.wantBound(status, out, key)
		first := out["refresh_token"]
		status, out = p.token(refreshForm(first), "DPoP", p.proof(other))
		wantError(t, status, out, 400, oauth.InvalidGrant)
		status, out = p.token(refreshForm(first))
		wantError(t, status, out, 400, oauth.InvalidDPoPProof)
		p.advance(10 * time.Minute) // beyond the grace period: a spent one would be reuse
		status, out = p.token(refreshForm(first), "DPoP", p.proof(key))
		p.wantBound(status, out, key)
		second := out["refresh_token"]
		t.Run("AS-241 a reply that is repeated is for the same key alone", func(t *testing.T) {
			status, again := p.token(refreshForm(first), "DPoP", p.proof(key))
			p.wantBound(status, again, key)
			if again["refresh_token"] != second || p.verified(t, again["access_token"].(string)).TokenID !=
				p.verified(t, out["access_token"].(string)).TokenID {
				t.Errorf("got %v, want %v again", again, out)
			}
			status, again = p.token(refreshForm(first), "DPoP", p.proof(other))
			wantError(t, status, again, 400, oauth.InvalidGrant)
		})
		t.Run("AS-102 the successor is bound as well", func(t *testing.T) {
			status, out := p.token(refreshForm(second), "DPoP", p.proof(other))
			wantError(t, status, out, 400, oauth.InvalidGrant)
			if pg := p.post("/revoke", url.Values{"token": {second.(string)}, "client_id": {"app"}}); pg.status != 200 {
				t.Errorf("RFC 7009: a client revokes it without a proof: got %d", pg.status)
			}
			status, out = p.token(refreshForm(second), "DPoP", p.proof(key))
			wantError(t, status, out, 400, oauth.InvalidGrant)
		})
	})
	t.Run("AS-212 AS-243 a bound token is exchanged for a helper by its key alone", func(t *testing.T) {
		p := newRig(t).person()
		status, out := p.token(codeForm(p.approve(authorizeQuery()).Get("code")), "DPoP", p.proof(key))
		form := url.Values{
			"grant_type": {oauth.GrantTokenExchange}, "client_id": {"app"},
			"subject_token":      {p.wantBound(status, out, key)},
			"subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
		}
		status, out = p.token(form)
		wantError(t, status, out, 400, oauth.InvalidDPoPProof)
		status, out = p.token(form, "DPoP", p.proof(other))
		wantError(t, status, out, 400, oauth.InvalidDPoPProof)
		status, out = p.token(form, "DPoP", p.proof(key))
		p.wantBound(status, out, key)
	})
	t.Run("AS-212 a confidential client may change its key at each refresh", func(t *testing.T) {
		p := newRig(t).person()
		auth := []string{"Authorization", basic("static", testSecret)}
		code := p.approve(authorizeQuery("client_id", "static")).Get("code")
		status, out := p.token(codeForm(code, "client_id", ""), append(auth, "DPoP", p.proof(key))...)
		p.wantBound(status, out, key)
		form := refreshForm(out["refresh_token"], "client_id", "static")
		status, out = p.token(form, append(auth, "DPoP", p.proof(other))...)
		p.wantBound(status, out, other)
		one := p.verified(t, out["access_token"].(string)).TokenID
		status, out = p.token(form, append(auth, "DPoP", p.proof(key))...) // within the grace period
		p.wantBound(status, out, key)
		if p.verified(t, out["access_token"].(string)).TokenID == one {
			t.Error("two tokens for two keys have one jti")
		}
	})
	t.Run("AS-212 a device", func(t *testing.T) {
		_, tv := withDevice(t)
		_, a := tv.ask()
		form := url.Values{"grant_type": {oauth.GrantDeviceCode}, "client_id": {"tv"}, "device_code": {a.DeviceCode}}
		status, out := tv.token(form, "DPoP", tv.proof(key))
		wantError(t, status, out, 400, oauth.AuthorizationPending)
		tv.decideDevice(tv.signInFor(devicePath(a.UserCode)), "approve")
		tv.advance(6 * time.Second)
		status, out = tv.token(form, "DPoP", tv.proof(key))
		tv.wantBound(status, out, key)
		status, out = tv.token(refreshForm(out["refresh_token"], "client_id", "tv"))
		wantError(t, status, out, 400, oauth.InvalidDPoPProof)
	})
	t.Run("AS-212 a key for a program", func(t *testing.T) {
		p := newRig(t).person()
		p.signIn()
		k := p.makeKey()
		status, out := p.token(robotForm(), "Authorization", basic(k.id, k.secret), "DPoP", p.proof(key))
		p.wantBound(status, out, key)
	})
}

// introspected returns the introspection of a token for a resource server.
func (p *person) introspected(token string) (out oauth.Introspection) {
	p.t.Helper()
	pg := p.post("/introspect", url.Values{"token": {token}}, "Authorization", basic("machine", testSecret))
	if err := json.Unmarshal([]byte(pg.body), &out); err != nil || !out.Active {
		p.t.Fatalf("got %d %s", pg.status, pg.body)
	}
	return out
}

func TestDPoPCode(t *testing.T) {
	key, other := newSigner(t), newSigner(t)
	p := newRig(t).person()
	t.Run("AS-215 RFC 9449 10: dpop_jkt binds the code, and a wrong key does not spend it", func(t *testing.T) {
		code := p.approve(authorizeQuery("dpop_jkt", key.Thumbprint())).Get("code")
		status, out := p.token(codeForm(code))
		wantError(t, status, out, 400, oauth.InvalidDPoPProof)
		status, out = p.token(codeForm(code), "DPoP", p.proof(other))
		wantError(t, status, out, 400, oauth.InvalidGrant)
		unmarked := "mcpac_" + strings.TrimPrefix(code, "mcpab_")
		status, out = p.token(codeForm(unmarked))
		wantError(t, status, out, 400, oauth.InvalidGrant)
		status, out = p.token(codeForm(code), "DPoP", p.proof(key))
		p.wantBound(status, out, key)
		t.Run("AS-99 a second use ends the grant, one with another key does not", func(t *testing.T) {
			status, got := p.token(codeForm(code), "DPoP", p.proof(other))
			wantError(t, status, got, 400, oauth.InvalidGrant)
			status, next := p.token(refreshForm(out["refresh_token"]), "DPoP", p.proof(key))
			p.wantBound(status, next, key)
			status, got = p.token(codeForm(code), "DPoP", p.proof(key))
			wantError(t, status, got, 400, oauth.InvalidGrant)
			status, got = p.token(refreshForm(next["refresh_token"]), "DPoP", p.proof(key))
			wantError(t, status, got, 400, oauth.InvalidGrant)
		})
	})
	t.Run("AS-215 RFC 9449 10.1: a proof at /par binds the code as well", func(t *testing.T) {
		proof := func(s *dpop.Signer) string {
			text, err := s.Proof(dpop.Claims{Method: "POST", URL: p.http.URL + "/par", Now: p.now()})
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		status, out := p.push(authorizeQuery("dpop_jkt", other.Thumbprint()), "DPoP", proof(key))
		if status != 400 || out.Error != "invalid_dpop_proof" {
			t.Errorf("dpop_jkt of another key: got %d %+v", status, out)
		}
		status, out = p.push(authorizeQuery(), "DPoP", p.proof(key))
		if status != 400 || out.Error != "invalid_dpop_proof" {
			t.Errorf("a proof for /token: got %d %+v", status, out)
		}
		code := p.approve(p.bring(p.reference(authorizeQuery(), "DPoP", proof(key)))).Get("code")
		status, refused := p.token(codeForm(code), "DPoP", p.proof(other))
		wantError(t, status, refused, 400, oauth.InvalidGrant)
		status, refused = p.token(codeForm(code), "DPoP", p.proof(key))
		p.wantBound(status, refused, key)
	})
	for name, jkt := range map[string]string{"short": "abc", "not base64url": strings.Repeat("+", 43)} {
		t.Run("AS-215 a dpop_jkt that is no thumbprint: "+name, func(t *testing.T) {
			pg := p.get("/authorize?" + authorizeQuery("dpop_jkt", jkt, "prompt", "none").Encode())
			if !strings.Contains(pg.body+pg.header.Get("Location"), "invalid_request") {
				t.Errorf("got %d %v %.300s", pg.status, pg.header.Get("Location"), pg.body)
			}
		})
	}
}

// handmade signs a proof with any claims and header; nil removes a member.
func handmade(t *testing.T, key *ecdsa.PrivateKey, claims, header map[string]any) string {
	t.Helper()
	head := map[jose.HeaderKey]any{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: key.Public()}}
	for k, v := range header {
		head[jose.HeaderKey(k)] = v
	}
	maps.DeleteFunc(head, func(_ jose.HeaderKey, v any) bool { return v == nil })
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	payload, err1 := json.Marshal(claims)
	signer, err2 := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key},
		&jose.SignerOptions{ExtraHeaders: head})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func newECKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestDPoPDefects(t *testing.T) {
	p := newRig(t).person()
	key, other := newECKey(t), newECKey(t)
	made := 0
	claims := func(change map[string]any) map[string]any {
		made++
		c := map[string]any{
			"jti": "proof-" + string(rune('a'+made)), "htm": "POST", "htu": p.http.URL + "/token",
			"iat": p.now().Unix(),
		}
		maps.Copy(c, change)
		return c
	}
	type m = map[string]any
	for _, tt := range []struct {
		name           string
		claims, header m
	}{
		{"typ of another token", nil, m{"typ": "JWT"}},
		{"no typ", nil, m{"typ": nil}},
		{"no jwk", nil, m{"jwk": nil}},
		{"a private key in it", nil, m{"jwk": jose.JSONWebKey{Key: key}}},
		{"signed by another key", nil, m{"jwk": jose.JSONWebKey{Key: other.Public()}}},
		{"a symmetric key", nil, m{"jwk": m{"kty": "oct", "k": "c2VjcmV0"}}},
		{"htm", m{"htm": "GET"}, nil},
		{"htm in lower case", m{"htm": "post"}, nil},
		{"no htm", m{"htm": nil}, nil},
		{"htu of another endpoint", m{"htu": p.http.URL + "/par"}, nil},
		{"htu of another server", m{"htu": "https://evil.example/token"}, nil},
		{"htu with a user", m{"htu": strings.Replace(p.http.URL, "http://", "http://a@", 1) + "/token"}, nil},
		{"no htu", m{"htu": nil}, nil},
		{"iat five minutes ago and one second", m{"iat": p.now().Add(-301 * time.Second).Unix()}, nil},
		{"iat five minutes ahead and one second", m{"iat": p.now().Add(301 * time.Second).Unix()}, nil},
		{"no iat", m{"iat": nil}, nil},
		{"iat a string", m{"iat": "now"}, nil},
		{"iat a string of digits", m{"iat": strconv.FormatInt(p.now().Unix(), 10)}, nil},
		{"no jti", m{"jti": nil}, nil},
		{"jti longer than any", m{"jti": strings.Repeat("j", 513)}, nil},
	} {
		t.Run("AS-211 RFC 9449 4.3 refused: "+tt.name, func(t *testing.T) {
			status, out := p.asMachine(handmade(t, key, claims(tt.claims), tt.header))
			wantError(t, status, out, 400, oauth.InvalidDPoPProof)
		})
	}
	good := func() string { return handmade(t, key, claims(nil), nil) }
	part := func(v any) string {
		b, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	head := func(alg string) string {
		return part(m{"typ": "dpop+jwt", "alg": alg, "jwk": jose.JSONWebKey{Key: key.Public()}}) + "."
	}
	for name, proofs := range map[string][]string{
		"two headers": {good(), good()}, "two in one header": {good() + ", " + good()}, "empty": {""},
		"garbage": {"a.b.c"}, "too long": {strings.Repeat("a", dpop.MaxSize+1)},
		"alg none": {head("none") + part(claims(nil)) + "."}, "alg HS256": {head("HS256") + part(claims(nil)) + ".YQ"},
	} {
		t.Run("AS-211 refused: "+name, func(t *testing.T) {
			req, _ := http.NewRequest("POST", p.http.URL+"/token", strings.NewReader(robotForm().Encode()))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Authorization", basic("machine", testSecret))
			req.Header["Dpop"] = proofs
			pg := p.do(req)
			if pg.status != 400 || !strings.Contains(pg.body, `"invalid_dpop_proof"`) {
				t.Errorf("got %d %s", pg.status, pg.body)
			}
		})
	}
	for name, change := range map[string]m{
		"as it should be":                          nil,
		"five minutes old":                         {"iat": p.now().Add(-300 * time.Second).Unix()},
		"htu with query and fragment":              {"htu": p.http.URL + "/token?a=b#c"},
		"AS-216 content_digest of an older draft":  {"content_digest": "sha-256=:x:"},
		"AS-216 a content_digest that is no value": {"content_digest": 7},
	} {
		t.Run("AS-211 taken: "+name, func(t *testing.T) {
			status, out := p.asMachine(handmade(t, key, claims(change), nil))
			if status != 200 || out["token_type"] != "DPoP" {
				t.Errorf("got %d %v", status, out)
			}
		})
	}
	t.Run("AS-211 a jti is for once", func(t *testing.T) {
		again := claims(nil)
		if status, out := p.asMachine(handmade(t, key, again, nil)); status != 200 {
			t.Fatalf("got %d %v", status, out)
		}
		status, out := p.asMachine(handmade(t, key, again, nil)) // with another signature
		wantError(t, status, out, 400, oauth.InvalidDPoPProof)
		if status, out := p.asMachine(handmade(t, other, again, nil)); status != 200 {
			t.Errorf("of another key: got %d %v", status, out)
		}
	})
	t.Run("AS-211 a client that did not authenticate uses nothing up", func(t *testing.T) {
		proof := good()
		status, out := p.token(robotForm(), "Authorization", basic("machine", "wrong"), "DPoP", proof)
		wantError(t, status, out, 401, oauth.InvalidClient)
		if status, out := p.asMachine(proof); status != 200 {
			t.Errorf("got %d %v", status, out)
		}
	})
}

// TestDPoPRace checks that if a proof is sent many times at once, one request gets a token, also
// with two replicas.
func TestDPoPRace(t *testing.T) {
	for name, stored := range map[string]bool{"AS-211 in memory": false, "AS-211 in the store, two replicas": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				if stored {
					c.DPoP.Replays = proofstore.New(c.Store.(storage.Proofs), "token")
				}
			})
			p := r.person()
			second := r.Server.handleToken
			if stored {
				other, err := Assemble(t.Context(), r.as)
				if err != nil {
					t.Fatal(err)
				}
				second = other.handleToken
			}
			proof, form := p.proof(newSigner(t)), robotForm().Encode()
			var won, refused atomic.Int32
			var wg sync.WaitGroup
			for i := range 32 {
				handle := r.Server.handleToken
				if i%2 == 1 {
					handle = second
				}
				wg.Go(func() {
					w := &memoryWriter{header: http.Header{}}
					req, _ := http.NewRequest("POST", p.http.URL+"/token", strings.NewReader(form))
					req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
					req.Header.Set("Authorization", basic("machine", testSecret))
					req.Header.Set("DPoP", proof)
					req.RemoteAddr = "127.0.0.1:1"
					handle(w, req)
					switch {
					case w.status == 200:
						won.Add(1)
					case strings.Contains(w.body.String(), "invalid_dpop_proof"):
						refused.Add(1)
					}
				})
			}
			wg.Wait()
			if won.Load() != 1 || refused.Load() != 31 {
				t.Errorf("%d got a token, %d were refused", won.Load(), refused.Load())
			}
		})
	}
}

type memoryWriter struct {
	header http.Header
	status int
	body   strings.Builder
}

func (w *memoryWriter) Header() http.Header         { return w.header }
func (w *memoryWriter) WriteHeader(status int)      { w.status = status }
func (w *memoryWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

func TestDPoPNonce(t *testing.T) {
	p := newRig(t, func(c *Config) { c.DPoP.Nonce = true }).person()
	key := newSigner(t)
	ask := func(nonce ...string) page {
		return p.post("/token", robotForm(), "Authorization", basic("machine", testSecret),
			"DPoP", p.proof(key, nonce...), "Origin", "https://app.example")
	}
	first := ask()
	nonce := first.header.Get("DPoP-Nonce")
	t.Run("AS-214 AS-236 RFC 9449 8: a proof without a nonce is told which one to carry", func(t *testing.T) {
		if first.status != 400 || !strings.Contains(first.body, `"use_dpop_nonce"`) || len(nonce) < 20 {
			t.Fatalf("got %d %v %s", first.status, first.header, first.body)
		}
		exposed := strings.ToLower(first.header.Get("Access-Control-Expose-Headers"))
		for _, name := range []string{"dpop-nonce", "www-authenticate", "retry-after"} {
			if !strings.Contains(exposed, name) {
				t.Errorf("AS-236: pages cannot read %s: %q", name, exposed)
			}
		}
	})
	t.Run("AS-214 two requests at once with one nonce", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 2 {
			proof := p.proof(key, nonce)
			wg.Go(func() {
				pg := p.post("/token", robotForm(), "Authorization", basic("machine", testSecret), "DPoP", proof)
				if pg.status != 200 || pg.header.Get("DPoP-Nonce") == "" {
					t.Errorf("got %d %v %s", pg.status, pg.header, pg.body)
				}
			})
		}
		wg.Wait()
	})
	t.Run("AS-214 it is good for minutes, and the next one is in every answer", func(t *testing.T) {
		p.advance(dpop.NonceTime)
		pg := ask(nonce)
		if next := pg.header.Get("DPoP-Nonce"); pg.status != 200 || next == "" || next == nonce {
			t.Errorf("the previous nonce: got %d %q", pg.status, pg.header.Get("DPoP-Nonce"))
		}
		p.advance(2 * dpop.NonceTime)
		if pg := ask(nonce); pg.status != 400 || !strings.Contains(pg.body, `"use_dpop_nonce"`) {
			t.Errorf("an old one: got %d %s", pg.status, pg.body)
		}
	})
	t.Run("AS-214 another replica takes it, and without a proof none is needed", func(t *testing.T) {
		nonce := ask().header.Get("DPoP-Nonce")
		p.restart()
		if pg := ask(nonce); pg.status != 200 {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
		if status, out := p.asMachine(); status != 200 || out["token_type"] != "Bearer" {
			t.Errorf("got %d %v", status, out)
		}
	})
}

func TestDPoPPolicy(t *testing.T) {
	key := newSigner(t)
	t.Run("AS-142 a client with dpop_bound_access_tokens: without a proof nothing is spent", func(t *testing.T) {
		r := newRig(t)
		app, err := r.store.Client(t.Context(), "app")
		if err != nil {
			t.Fatal(err)
		}
		app.Metadata = []byte(`{"dpop_bound_access_tokens":true}`)
		if err := r.store.ReplaceClient(t.Context(), app, r.now()); err != nil {
			t.Fatal(err)
		}
		p := r.person()
		code := p.approve(authorizeQuery()).Get("code")
		status, out := p.token(codeForm(code))
		wantError(t, status, out, 400, oauth.InvalidDPoPProof)
		status, out = p.token(codeForm(code), "DPoP", p.proof(key))
		p.wantBound(status, out, key)
	})
	t.Run("AS-213 a resource that demands it, by each grant", func(t *testing.T) {
		p := newRig(t, func(c *Config) { c.Resources[0].DPoP = storage.DPoPRequired }).person()
		status, out := p.asMachine()
		wantError(t, status, out, 400, oauth.InvalidDPoPProof)
		code := p.approve(authorizeQuery()).Get("code")
		status, out = p.token(codeForm(code))
		wantError(t, status, out, 400, oauth.InvalidDPoPProof)
		status, out = p.token(codeForm(code), "DPoP", p.proof(key))
		p.wantBound(status, out, key)
		t.Run("also where the request does not name it", func(t *testing.T) {
			code := p.approve(authorizeQuery()).Get("code")
			status, out := p.token(codeForm(code, "resource", ""))
			wantError(t, status, out, 400, oauth.InvalidDPoPProof)
		})
	})
	t.Run("AS-213 a resource that demands it since, for a refresh token of before", func(t *testing.T) {
		p := newRig(t).person()
		out := p.signIn()
		p.restart(func(c *Config) { c.Resources[0].DPoP = storage.DPoPRequired })
		status, refused := p.token(refreshForm(out["refresh_token"], "resource", testResource))
		wantError(t, status, refused, 400, oauth.InvalidDPoPProof)
		p.advance(10 * time.Minute) // after the grace period; the refused request used up no token
		status, out = p.token(refreshForm(out["refresh_token"], "resource", testResource), "DPoP", p.proof(key))
		p.wantBound(status, out, key)
	})
	t.Run("AS-210 the metadata names asymmetric algorithms alone", func(t *testing.T) {
		p := newRig(t).person()
		var doc struct {
			Algorithms []string `json:"dpop_signing_alg_values_supported"`
		}
		body := p.get("/.well-known/oauth-authorization-server").body
		if err := json.Unmarshal([]byte(body), &doc); err != nil || len(doc.Algorithms) == 0 {
			t.Fatalf("got %s", body)
		}
		for _, a := range doc.Algorithms {
			if a == "none" || strings.HasPrefix(a, "HS") {
				t.Errorf("it names %s", a)
			}
		}
	})
	t.Run("AS-211 it is unknown whether a proof was used", func(t *testing.T) {
		p := newRig(t, func(c *Config) { c.DPoP.Replays = forgetful{} }).person()
		status, out := p.asMachine(p.proof(key))
		wantError(t, status, out, 503, oauth.TemporarilyUnavailable)
	})
	t.Run("AS-211 a client that registered itself cannot fill the memory of proofs", func(t *testing.T) {
		p := newRig(t).person()
		for range 301 {
			status, out := p.token(refreshForm("mcprt_unknown"), "DPoP", p.proof(key))
			if status == http.StatusTooManyRequests {
				return
			}
			wantError(t, status, out, 400, oauth.InvalidGrant)
		}
		t.Error("301 proofs in one moment were taken")
	})
}

type forgetful struct{}

func (forgetful) Use(context.Context, string, time.Time) (bool, error) {
	return false, errors.New("the store is gone")
}
