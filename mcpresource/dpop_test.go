package mcpresource

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/oauth"
)

type holder struct {
	alg   jose.SignatureAlgorithm
	key   crypto.Signer
	jwk   jose.JSONWebKey
	print string
	made  int
}

func newHolder(t testing.TB, alg jose.SignatureAlgorithm, key crypto.Signer) *holder {
	h := &holder{alg: alg, key: key, jwk: jose.JSONWebKey{Key: key.Public()}}
	sum, err := h.jwk.Thumbprint(crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	h.print = base64.RawURLEncoding.EncodeToString(sum)
	return h
}

func newECHolder(t testing.TB) *holder {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return newHolder(t, jose.ES256, k)
}

func (h *holder) claims(method, uri, token string, now time.Time) map[string]any {
	h.made++
	hash := sha256.Sum256([]byte(token))
	return map[string]any{
		"jti": fmt.Sprint("proof-", h.made), "htm": method, "htu": uri, "iat": now.Unix(),
		"ath": base64.RawURLEncoding.EncodeToString(hash[:]),
	}
}

// sign makes a proof; a nil header makes a valid one.
func (h *holder) sign(t testing.TB, claims, header map[string]any) string {
	t.Helper()
	head := map[string]any{"typ": "dpop+jwt", "alg": string(h.alg), "jwk": h.jwk}
	maps.Copy(head, header)
	maps.DeleteFunc(head, func(_ string, v any) bool { return v == nil })
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	input := part(head) + "." + part(claims)
	return input + "." + base64.RawURLEncoding.EncodeToString(h.signature(t, input))
}

func (h *holder) signature(t testing.TB, input string) []byte {
	var sig []byte
	var err error
	sum := sha256.Sum256([]byte(input))
	switch k := h.key.(type) {
	case *ecdsa.PrivateKey:
		r, s, e := ecdsa.Sign(rand.Reader, k, sum[:])
		sig, err = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), e
	case ed25519.PrivateKey:
		sig = ed25519.Sign(k, []byte(input))
	case *rsa.PrivateKey:
		sig, err = rsa.SignPKCS1v15(rand.Reader, k, crypto.SHA256, sum[:])
	}
	if err != nil {
		t.Fatal(err)
	}
	return sig
}

// boundRig returns a rig that knows the token "bound" of alice, bound to the key of h.
func boundRig(t testing.TB, h *holder, change func(*Config)) *rig {
	return newRig(t, func(c *Config) {
		validator := c.Validator
		c.Validator = ValidatorFunc(func(ctx context.Context, cred Credential) (*Principal, error) {
			name, bound := strings.CutPrefix(cred.Token, "bound-")
			p, err := validator.Validate(ctx, Credential{Token: name})
			if bound && err == nil {
				own := *p
				own.Thumbprint = h.print
				p = &own
			}
			return p, err
		})
		if change != nil {
			change(c)
		}
	})
}

func challengesOf(t testing.TB, w *httptest.ResponseRecorder) map[string]map[string]string {
	t.Helper()
	list, err := oauth.ParseChallenges(w.Header().Values("WWW-Authenticate"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]string{}
	for _, c := range list {
		out[c.Scheme] = c.Params
	}
	return out
}

func TestDPoP(t *testing.T) {
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	h := newECHolder(t)
	const token = "bound-alice"
	present := func(r *rig, method, token, proof string, header ...string) *httptest.ResponseRecorder {
		header = append([]string{"Authorization", "DPoP " + token}, header...)
		if proof != "" {
			header = append(header, "DPoP", proof)
		}
		body := ""
		if method == "POST" {
			body = tool("read")
		}
		return r.do(method, "/mcp", body, header...)
	}
	for _, h := range []*holder{h, newHolder(t, jose.EdDSA, ed), newHolder(t, jose.RS256, rs)} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			t.Run("RS-205 RS-211 a good proof by "+string(h.alg)+" for "+method, func(t *testing.T) {
				r := boundRig(t, h, nil)
				w := present(r, method, token, h.sign(t, h.claims(method, resource, token, r.now), nil))
				if w.Code != 200 {
					t.Fatalf("got %d %s", w.Code, w.Body)
				}
				if got := r.seen[0].Header; got.Get("DPoP") != "" || got.Get("Authorization") != "" {
					t.Errorf("RS-49: the handler sees %v", got)
				}
			})
		}
	}
	for _, uri := range []string{
		resource, resource + "?a=b", resource + "#f", resource + "/", "HTTPS://MCP.example.com:443/mcp",
	} {
		t.Run("RS-205 RS-211 htu as "+uri, func(t *testing.T) {
			r := boundRig(t, h, nil)
			if w := present(r, "POST", token, h.sign(t, h.claims("POST", uri, token, r.now), nil)); w.Code != 200 {
				t.Errorf("got %d", w.Code)
			}
		})
	}
	other := newECHolder(t)
	private := jose.JSONWebKey{Key: h.key}
	small := jose.JSONWebKey{Key: &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 1023), E: 65537}}
	huge := jose.JSONWebKey{Key: &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 8191), E: 65537}}
	for _, tt := range []struct {
		name           string
		claims, header map[string]any
		by             *holder
	}{
		{"typ", nil, map[string]any{"typ": "JWT"}, h},
		{"no typ", nil, map[string]any{"typ": nil}, h},
		{"alg none", nil, map[string]any{"alg": "none"}, h},
		{"alg HS256", nil, map[string]any{"alg": "HS256"}, h},
		{"alg of another kind of key", nil, map[string]any{"alg": "RS256"}, h},
		{"no key", nil, map[string]any{"jwk": nil}, h},
		{"a private key", nil, map[string]any{"jwk": private}, h},
		{"a symmetric key", nil, map[string]any{"jwk": map[string]string{"kty": "oct", "k": "c2VjcmV0"}}, h},
		{"a short RSA key", nil, map[string]any{"alg": "RS256", "jwk": small}, h},
		{"an RSA key that takes long", nil, map[string]any{"alg": "RS256", "jwk": huge}, h},
		{"a key for another algorithm", nil,
			map[string]any{"jwk": jose.JSONWebKey{Key: h.key.Public(), Algorithm: "ES384"}}, h},
		{"an extension that must be understood", nil, map[string]any{"crit": []string{"x"}, "x": 1}, h},
		{"the key of another client", nil, nil, other},
		{"our key, signed with another", nil, map[string]any{"jwk": h.jwk}, other},
		{"htm", map[string]any{"htm": "GET"}, nil, h},
		{"htm in lower case", map[string]any{"htm": "post"}, nil, h},
		{"no htm", map[string]any{"htm": nil}, nil, h},
		{"htu of another path", map[string]any{"htu": "https://mcp.example.com/other"}, nil, h},
		{"htu of another host", map[string]any{"htu": "https://evil.example.com/mcp"}, nil, h},
		{"htu by http", map[string]any{"htu": "http://mcp.example.com/mcp"}, nil, h},
		{"htu with a user", map[string]any{"htu": "https://a@mcp.example.com/mcp"}, nil, h},
		{"no htu", map[string]any{"htu": nil}, nil, h},
		{"iat long ago", map[string]any{"iat": -301}, nil, h},
		{"iat far ahead", map[string]any{"iat": 301}, nil, h},
		{"no iat", map[string]any{"iat": nil}, nil, h},
		{"iat a string", map[string]any{"iat": "now"}, nil, h},
		{"ath of another token", map[string]any{"ath": base64.RawURLEncoding.EncodeToString(make([]byte, 32))}, nil, h},
		{"no ath", map[string]any{"ath": nil}, nil, h},
		{"no jti", map[string]any{"jti": nil}, nil, h},
		{"jti a number", map[string]any{"jti": 7}, nil, h},
	} {
		t.Run("RS-205 RS-206 refused: "+tt.name, func(t *testing.T) {
			r := boundRig(t, h, nil)
			claims := tt.by.claims("POST", resource, token, r.now)
			for k, v := range tt.claims {
				if offset, ok := v.(int); ok && k == "iat" {
					v = r.now.Unix() + int64(offset)
				}
				claims[k] = v
			}
			maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
			w := present(r, "POST", token, tt.by.sign(t, claims, tt.header))
			c := challengesOf(t, w)["DPoP"]
			if w.Code != 401 || len(r.seen) != 0 || c["error"] != "invalid_dpop_proof" || c["algs"] == "" ||
				c["resource_metadata"] != prmURL || challengesOf(t, w)["Bearer"] != nil {
				t.Errorf("got %d %v", w.Code, w.Header().Values("WWW-Authenticate"))
			}
		})
	}
	t.Run("RS-205 refused: none, two, garbage, too long", func(t *testing.T) {
		r := boundRig(t, h, nil)
		good := func() string { return h.sign(t, h.claims("POST", resource, token, r.now), nil) }
		for _, w := range []*httptest.ResponseRecorder{
			present(r, "POST", token, ""), present(r, "POST", token, good(), "DPoP", good()),
			present(r, "POST", token, "a.b.c"),
			present(r, "POST", token, good()+", "+good()),
			present(r, "POST", token, strings.Repeat("a", dpop.MaxSize+1)),
		} {
			if w.Code != 401 || challengesOf(t, w)["DPoP"]["error"] != "invalid_dpop_proof" || len(r.seen) != 0 {
				t.Errorf("got %d %v", w.Code, w.Header())
			}
		}
	})
	t.Run("RS-205 the clock of a client may be off by five minutes", func(t *testing.T) {
		r := boundRig(t, h, nil)
		for _, off := range []time.Duration{-5 * time.Minute, 5 * time.Minute} {
			if w := present(r, "POST", token,
				h.sign(t, h.claims("POST", resource, token, r.now.Add(off)), nil)); w.Code != 200 {
				t.Errorf("%s: got %d", off, w.Code)
			}
		}
	})
	t.Run("RS-207 a bound token is no bearer token", func(t *testing.T) {
		r := boundRig(t, h, nil)
		proof := h.sign(t, h.claims("POST", resource, token, r.now), nil)
		for _, header := range [][]string{nil, {"DPoP", proof}} {
			w := r.call(token, tool("read"), header...)
			if c := challengesOf(t, w); w.Code != 401 || len(r.seen) != 0 ||
				c["Bearer"]["error"] != "invalid_token" || c["DPoP"]["algs"] == "" {
				t.Errorf("got %d %v", w.Code, w.Header())
			}
		}
	})
	t.Run("RS-206 a bearer token is no bound one", func(t *testing.T) {
		r := boundRig(t, h, nil)
		w := present(r, "POST", "alice", h.sign(t, h.claims("POST", resource, "alice", r.now), nil))
		if w.Code != 401 || challengesOf(t, w)["DPoP"]["error"] != "invalid_token" {
			t.Errorf("got %d %v", w.Code, w.Header())
		}
	})
	t.Run("RS-210 the audience counts as ever", func(t *testing.T) {
		r := boundRig(t, h, nil)
		w := present(r, "POST", "bound-other-audience",
			h.sign(t, h.claims("POST", resource, "bound-other-audience", r.now), nil))
		if w.Code != 401 || challengesOf(t, w)["DPoP"]["error"] != "invalid_token" {
			t.Errorf("got %d %v", w.Code, w.Header())
		}
	})
	t.Run("RS-209 a proof is for once", func(t *testing.T) {
		r := boundRig(t, h, nil)
		claims := h.claims("POST", resource, token, r.now)
		if w := present(r, "POST", token, h.sign(t, claims, nil)); w.Code != 200 {
			t.Fatalf("got %d", w.Code)
		}
		if w := present(r, "POST", token, h.sign(t, claims, nil)); w.Code != 401 { // with another signature
			t.Errorf("again: got %d", w.Code)
		}
		delete(claims, "ath")
		claims["jti"] = "unspent"
		present(r, "POST", token, h.sign(t, claims, nil)) // an invalid one uses up nothing
		claims = h.claims("POST", resource, token, r.now)
		claims["jti"] = "unspent"
		if w := present(r, "POST", token, h.sign(t, claims, nil)); w.Code != 200 {
			t.Errorf("after a bad one of that name: got %d", w.Code)
		}
	})
	t.Run("RS-209 of many at once one passes", func(t *testing.T) {
		r := boundRig(t, h, func(c *Config) { c.Audit = nil })
		proof := h.sign(t, h.claims("POST", resource, token, r.now), nil)
		var passed atomic.Int32
		guarded := r.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed.Add(1) }))
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				req := httptest.NewRequest("POST", resource, strings.NewReader(tool("read")))
				req.Header.Set("Authorization", "DPoP "+token)
				req.Header.Set("DPoP", proof)
				guarded.ServeHTTP(httptest.NewRecorder(), req)
			})
		}
		wg.Wait()
		if passed.Load() != 1 {
			t.Errorf("%d passed", passed.Load())
		}
	})
	t.Run("RS-209 it is unknown whether it was used", func(t *testing.T) {
		r := boundRig(t, h, func(c *Config) { c.DPoP = &DPoP{Replays: brokenReplays{}} })
		if w := present(r, "POST", token, h.sign(t, h.claims("POST", resource, token, r.now), nil)); w.Code != 503 ||
			strings.Contains(w.Body.String(), "redis") {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
}

type brokenReplays struct{}

func (brokenReplays) Use(context.Context, string, time.Time) (bool, error) {
	return false, errors.New("redis is gone")
}

func TestDPoPNonce(t *testing.T) {
	h := newECHolder(t)
	const token = "bound-alice"
	r := boundRig(t, h, func(c *Config) { c.DPoP = &DPoP{NonceKey: make([]byte, 32)} })
	try := func(nonce string) *httptest.ResponseRecorder {
		claims := h.claims("POST", resource, token, r.now)
		if nonce != "" {
			claims["nonce"] = nonce
		}
		return r.do("POST", "/mcp", tool("read"), "Authorization", "DPoP "+token, "DPoP", h.sign(t, claims, nil))
	}
	first := r.do("POST", "/mcp", tool("read"))
	w := try("")
	nonce := w.Header().Get("DPoP-Nonce")
	if c := challengesOf(t, w)["DPoP"]; w.Code != 401 || c["error"] != "use_dpop_nonce" || len(nonce) < 20 {
		t.Fatalf("RS-208: got %d %v", w.Code, w.Header())
	}
	if got := first.Header().Get("DPoP-Nonce"); got != nonce {
		t.Errorf("RS-208: the first answer has the nonce %q, want %q", got, nonce)
	}
	if w := try(nonce); w.Code != 200 || w.Header().Get("DPoP-Nonce") == "" {
		t.Errorf("RS-208 with it: got %d %v", w.Code, w.Header())
	}
	if w := try(nonce[1:] + "A"); w.Code != 401 || challengesOf(t, w)["DPoP"]["error"] != "use_dpop_nonce" {
		t.Errorf("RS-208 an invented one: got %d", w.Code)
	}
	r.now = r.now.Add(dpop.NonceTime)
	w = try(nonce)
	if next := w.Header().Get("DPoP-Nonce"); w.Code != 200 || next == nonce || next == "" {
		t.Errorf("RS-208 the previous nonce: got %d %q", w.Code, next)
	}
	r.now = r.now.Add(dpop.NonceTime)
	if w := try(nonce); w.Code != 401 {
		t.Errorf("RS-208 one before that: got %d", w.Code)
	}
	if _, err := New(Config{
		Resource: resource, AuthorizationServers: []string{authServer}, Validator: Local(nil),
		DPoP: &DPoP{NonceKey: make([]byte, 31)}}); err == nil {
		t.Error("a short key was taken")
	}
}

func TestDPoPOffered(t *testing.T) {
	h := newECHolder(t)
	t.Run("RS-212 RS-15 both challenges, Bearer first, and the metadata says so", func(t *testing.T) {
		r := boundRig(t, h, func(c *Config) { c.DPoP = &DPoP{} })
		w := r.do("POST", "/mcp", tool("read"))
		c := challengesOf(t, w)
		if w.Code != 401 || !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer ") ||
			c["Bearer"]["resource_metadata"] != prmURL ||
			c["DPoP"]["algs"] != "ES256 EdDSA ES384 PS256 RS256" || c["DPoP"]["error"] != "" {
			t.Errorf("got %v", w.Header().Values("WWW-Authenticate"))
		}
		if w := r.do("GET", "/.well-known/oauth-protected-resource/mcp", ""); !strings.Contains(w.Body.String(),
			`"dpop_signing_alg_values_supported":["ES256"`) || strings.Contains(w.Body.String(), "dpop_bound") {
			t.Errorf("RS-11: got %s", w.Body)
		}
		if w := r.call("alice", tool("read")); w.Code != 200 {
			t.Errorf("a bearer token: got %d", w.Code)
		}
		if c := challengesOf(t, r.call("junk", tool("read"))); c["Bearer"]["error"] != "invalid_token" ||
			c["DPoP"] == nil || c["DPoP"]["error"] != "" {
			t.Errorf("a bad bearer token says nothing of proofs: got %v", c)
		}
	})
	t.Run("RS-207 required: no bearer tokens, and no challenge that asks for one", func(t *testing.T) {
		r := boundRig(t, h, func(c *Config) { c.DPoP = &DPoP{Required: true} })
		for _, w := range []*httptest.ResponseRecorder{
			r.do("POST", "/mcp", tool("read")), r.call("alice", tool("read")),
		} {
			if c := challengesOf(t, w); w.Code != 401 || c["Bearer"] != nil || c["DPoP"]["algs"] == "" {
				t.Errorf("got %d %v", w.Code, w.Header())
			}
		}
		if w := r.do("GET", "/.well-known/oauth-protected-resource/mcp", ""); !strings.Contains(w.Body.String(),
			`"dpop_bound_access_tokens_required":true`) {
			t.Errorf("RS-11: got %s", w.Body)
		}
	})
	t.Run("RS-28 RS-212 a scope that lacks is said in both ways", func(t *testing.T) {
		r := boundRig(t, h, nil)
		w := r.do("POST", "/mcp", tool("write_file"), "Authorization", "DPoP bound-alice", "DPoP",
			h.sign(t, h.claims("POST", resource, "bound-alice", r.now), nil))
		for scheme, c := range challengesOf(t, w) {
			if w.Code != 403 || c["error"] != "insufficient_scope" || c["scope"] != "mcp files:write" {
				t.Errorf("%s: got %d %v", scheme, w.Code, c)
			}
		}
	})
	t.Run("RS-207 a JWT with a binding that cannot be checked is refused", func(t *testing.T) {
		s := newSignerServer(t)
		v, err := Discover(t.Context(), s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		for claim, want := range map[string]string{
			`{"jkt":"thumb"}`: "thumb", `null`: "", `{}`: "no", `{"jkt":""}`: "no", `{"x5t#S256":"a"}`: "no",
			`{"jkt":"a","x5t#S256":"b"}`: "no", `{"jwk":{}}`: "no", `"jkt"`: "no",
		} {
			p, err := validate(v, s.token(t, "ES256", nil, s.claims("cnf", json.RawMessage(claim))))
			if refused := errors.Is(err, ErrInvalidToken); refused != (want == "no") ||
				!refused && (err != nil || p.Thumbprint != want) {
				t.Errorf("%s: got %+v, %v", claim, p, err)
			}
		}
	})
}

func BenchmarkDPoP(b *testing.B) {
	h := newECHolder(b)
	r := boundRig(b, h, nil)
	proof, err := dpop.Parse(h.sign(b, h.claims("POST", resource, "bound-alice", r.now), nil))
	if err != nil {
		b.Fatal(err)
	}
	header, made := h.sign(b, h.claims("POST", resource, "bound-alice", r.now), nil), 0
	b.Run("parse and verify", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p, err := dpop.Parse(header)
			if err != nil || p.Verify() != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("replay", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			made++
			proof.ID = fmt.Sprint(made)
			if first, _ := r.bindings.Replays.Use(b.Context(), proof.Digest(), r.now.Add(dpop.Window)); !first {
				b.Fatal("used")
			}
		}
	})
}
