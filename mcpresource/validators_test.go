package mcpresource

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeissuer"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// signerServer imitates an authorization server for validators.
type signerServer struct {
	*httptest.Server
	keys    map[string]crypto.Signer
	mu      sync.Mutex    // guards second and odd
	second  crypto.Signer // published as ES256-2 if not nil
	odd     string        // an additional published key
	fetches atomic.Int32
	down    atomic.Bool
	answer  func(token string) string // introspection
	asked   atomic.Int32
}

// Documented times of the key set.
const (
	refreshAfter = 5 * time.Minute  // when keys are fetched again, in the background
	waitAfter    = 15 * time.Minute // when a request waits for the fetch
	refreshPause = 10 * time.Second // between two fetches
	retryPause   = time.Second      // between two fetches without any keys
	staleFor     = 24 * time.Hour   // how long keys are used if fetching fails
	fetchTimeout = 5 * time.Second
)

func newSignerServer(t testing.TB) *signerServer {
	t.Helper()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := &signerServer{keys: map[string]crypto.Signer{"ES256": ec, "EdDSA": ed, "RS256": rs}}
	mux := http.NewServeMux()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.down.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"scopes_supported":["mcp",5],"token_endpoint":null,"resource_reports_endpoint":{},
			"protected_resource_scopes":{%q:["mcp",5],"urn:x":5},
			"issuer":%q,"jwks_uri":%q,"introspection_endpoint":%q}`, resource, s.URL, s.URL+"/jwks", s.URL+"/introspect")
	})
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		s.fetches.Add(1)
		var set jose.JSONWebKeySet
		for alg, k := range s.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.Public(), KeyID: alg, Algorithm: alg, Use: "sig"})
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.second != nil {
			set.Keys = append(set.Keys,
				jose.JSONWebKey{Key: s.second.Public(), KeyID: "ES256-2", Algorithm: "ES256", Use: "sig"})
		}
		out := map[string]any{"keys": set.Keys}
		if s.odd != "" {
			out["keys"] = []any{json.RawMessage(s.odd), set.Keys[0], set.Keys[1], set.Keys[2]}
		}
		json.NewEncoder(w).Encode(out)
	})
	mux.HandleFunc("/introspect", func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if id, secret, _ := r.BasicAuth(); id != "rs" || secret != "s%2B1" { // form-encoded, RFC 6749 §2.3.1
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, s.answer(r.FormValue("token")))
	})
	return s
}

// rotate publishes a second ES256 key and returns the previous one.
func (s *signerServer) rotate(k crypto.Signer) crypto.Signer {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.second
	s.second = k
	return old
}

// token signs claims; header changes are in pairs.
func (s *signerServer) token(t testing.TB, alg string, key any, claims map[string]any, header ...string) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", alg)
	for i := 0; i+1 < len(header); i += 2 {
		o = o.WithHeader(jose.HeaderKey(header[i]), header[i+1])
	}
	if key == nil {
		key = s.keys[alg]
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(alg), Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	payload, _ := json.Marshal(claims)
	jws, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := jws.CompactSerialize()
	return out
}

func (s *signerServer) claims(change ...any) map[string]any {
	now := time.Now()
	c := map[string]any{
		"iss": s.URL, "sub": "alice", "aud": resource, "client_id": "app", "jti": "1", "scope": "mcp files:read",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	for i := 0; i+1 < len(change); i += 2 {
		if change[i+1] == nil {
			delete(c, change[i].(string))
			continue
		}
		c[change[i].(string)] = change[i+1]
	}
	return c
}

// roundTrip is a server without a network.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func validate(v Validator, token string) (*Principal, error) {
	return v.Validate(context.Background(), Credential{Scheme: "Bearer", Token: token})
}

func TestJWT(t *testing.T) {
	s := newSignerServer(t)
	v, err := Discover(t.Context(), s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, alg := range []string{"ES256", "EdDSA", "RS256"} {
		t.Run("RS-42 AS-118 a good token by "+alg, func(t *testing.T) {
			p, err := validate(v, s.token(t, alg, nil, s.claims()))
			if err != nil || p.Subject != "alice" || p.ClientID != "app" || p.Issuer != s.URL ||
				!p.Scopes.Has("mcp", "files:read") || p.Audience[0] != resource || p.TokenID != "1" ||
				p.ExpiresAt.IsZero() {
				t.Errorf("got %+v, %v", p, err)
			}
		})
	}
	t.Run("RS-47 aud as an array, scope as an array", func(t *testing.T) {
		p, err := validate(v,
			s.token(t, "ES256", nil,
				s.claims("aud", []string{"account", resource}, "scope", nil, "scp", []string{"a", "b"})))
		if err != nil || len(p.Audience) != 2 || p.Scopes.String() != "a b" {
			t.Errorf("got %+v, %v", p, err)
		}
	})
	stranger, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	publicPEM := []byte(s.URL + " as an HMAC key, 32 bytes and more")
	future := time.Now().Add(time.Hour).Unix()
	for name, token := range map[string]string{
		"RS-42 signed by a stranger under a known kid": s.token(t, "ES256", stranger, s.claims()),
		"RS-42 HMAC":                        s.token(t, "HS256", publicPEM, s.claims(), "kid", "ES256"),
		"RS-42 alg none":                    "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0.e30.",
		"RS-42 an ID token":                 s.token(t, "ES256", nil, s.claims(), "typ", "JWT"),
		"RS-42 a key for another algorithm": s.token(t, "EdDSA", nil, s.claims(), "kid", "ES256"),
		"RS-46 an unknown key":              s.token(t, "ES256", nil, s.claims(), "kid", "nobody"),
		"RS-40 another issuer with the right key": s.token(t, "ES256", nil,
			s.claims("iss", "https://evil.example.com")),
		"RS-40 the issuer with a slash": s.token(t, "ES256", nil, s.claims("iss", s.URL+"/")),
		"RS-41 expired": s.token(t, "ES256", nil,
			s.claims("exp", time.Now().Add(-time.Minute).Unix())),
		"RS-41 without exp":          s.token(t, "ES256", nil, s.claims("exp", nil)),
		"RS-41 not yet":              s.token(t, "ES256", nil, s.claims("nbf", future)),
		"RS-41 issued in the future": s.token(t, "ES256", nil, s.claims("iat", future)),
		"RFC 9068 2.2 without sub":   s.token(t, "ES256", nil, s.claims("sub", nil)),
		"garbage":                    "a.b.c",
		"nothing":                    "",
		"claims of the wrong type":   s.token(t, "ES256", nil, s.claims("aud", 7)),
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := validate(v, token); !errors.Is(err, ErrInvalidToken) {
				t.Errorf("got %+v, %v, want ErrInvalidToken", p, err)
			}
		})
	}
	t.Run("RS-41 a little skew is allowed", func(t *testing.T) {
		if _, err := validate(v,
			s.token(t, "ES256", nil, s.claims("exp", time.Now().Add(-5*time.Second).Unix()))); err != nil {
			t.Error(err)
		}
	})
	t.Run("RS-42 dangerous algorithms cannot be configured", func(t *testing.T) {
		for _, alg := range []string{"none", "HS256"} {
			if _, err := NewJWTValidator(JWTConfig{Issuer: s.URL, Algorithms: []string{alg}}); err == nil {
				t.Errorf("%s was accepted", alg)
			}
		}
	})
}

// TestOddKeys: RU-10 RFC 7517 5: a key in an unknown format does not affect other tokens, at the
// start or later.
func TestOddKeys(t *testing.T) {
	for name, odd := range fakeissuer.OddKeys() {
		t.Run("RU-10 "+name, func(t *testing.T) {
			s := newSignerServer(t)
			s.odd = odd
			v, err := Discover(t.Context(), s.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			for alg := range s.keys {
				if _, err := validate(v, s.token(t, alg, nil, s.claims())); err != nil {
					t.Errorf("%s: %v", alg, err)
				}
			}
			_, err = validate(v, s.token(t, "ES256", nil, s.claims(), "kid", "odd"))
			if !errors.Is(err, ErrInvalidToken) {
				t.Errorf("by the odd key: got %v, want ErrInvalidToken", err)
			}
			scopes, known, err := v.(Catalogue).ResourceScopes(t.Context(), resource)
			if err != nil || !known || !slices.Equal(scopes, []string{"mcp"}) {
				t.Errorf("scopes: got %q, %t, %v", scopes, known, err)
			}
		})
	}
	t.Run("RU-10 a key that appears later", func(t *testing.T) {
		s := newSignerServer(t)
		now := time.Now()
		v, err := NewJWTValidator(JWTConfig{Issuer: s.URL, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		for _, odd := range fakeissuer.OddKeys() {
			s.mu.Lock()
			s.odd = odd
			s.mu.Unlock()
			now = now.Add(waitAfter)
			before := s.fetches.Load()
			token := s.token(t, "ES256", nil, s.claims("iat", now.Unix(), "exp", now.Add(time.Minute).Unix()))
			if _, err := validate(v, token); err != nil || s.fetches.Load() != before+1 {
				t.Errorf("%s: %v after %d readings", odd, err, s.fetches.Load()-before)
			}
		}
	})
}

func TestJWKS(t *testing.T) {
	s := newSignerServer(t)
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	advance := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	fresh := func(t *testing.T) Validator {
		v, err := NewJWTValidator(JWTConfig{Issuer: s.URL, Now: clock, CacheSize: -1})
		if err != nil {
			t.Fatal(err)
		}
		s.fetches.Store(0)
		return v
	}
	good := s.token(t, "ES256", nil, s.claims("exp", time.Now().Add(100*time.Hour).Unix()))
	t.Run("RS-46 one fetch for many at once", func(t *testing.T) {
		v := fresh(t)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := validate(v, good); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := s.fetches.Load(); n != 1 {
			t.Errorf("got %d fetches", n)
		}
	})
	t.Run("RS-46 forged tokens are not fetches", func(t *testing.T) {
		v := fresh(t)
		validate(v, good)
		advance(refreshPause)
		stranger, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		for i := range 100 {
			validate(v, s.token(t, "ES256", stranger, s.claims(), "kid", fmt.Sprint(i)))
			validate(v, s.token(t, "ES256", stranger, s.claims()))
		}
		if n := s.fetches.Load(); n != 2 {
			t.Errorf("got %d fetches for 200 forged tokens, want 2 in all", n)
		}
	})
	t.Run("RS-46 AS-121 a new key is found, after the pause", func(t *testing.T) {
		v := fresh(t)
		validate(v, good)
		next, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		old := s.rotate(next)
		defer s.rotate(old)
		token := s.token(t, "ES256", next, s.claims("exp", clock().Add(time.Hour).Unix()), "kid", "ES256-2")
		if _, err := validate(v, token); !errors.Is(err, ErrInvalidToken) {
			t.Errorf("within the pause: got %v", err)
		}
		advance(refreshPause)
		if _, err := validate(v, token); err != nil {
			t.Errorf("after it: got %v", err)
		}
	})
	t.Run("AS-121 a withdrawn key ends its tokens, those known before too, however late they expire",
		func(t *testing.T) {
			v, err := NewJWTValidator(JWTConfig{Issuer: s.URL, Now: clock})
			if err != nil {
				t.Fatal(err)
			}
			stolen, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			s.rotate(stolen)
			forged := s.token(t, "ES256", stolen, s.claims("exp", clock().Add(1000*time.Hour).Unix()), "kid", "ES256-2")
			if _, err := validate(v, forged); err != nil {
				t.Fatal(err)
			}
			s.rotate(nil)
			advance(refreshAfter)
			validate(v, forged) // triggers a fetch
			wait.Until(t, "the set without the key is read", func() bool {
				_, err = validate(v, forged)
				return err != nil
			})
			if !errors.Is(err, ErrInvalidToken) {
				t.Errorf("got %v", err)
			}
		})
	t.Run("AS-121 a withdrawn key does not pass even once after a long time without requests", func(t *testing.T) {
		for _, size := range []int{0, -1} {
			v, err := NewJWTValidator(JWTConfig{Issuer: s.URL, Now: clock, CacheSize: size})
			if err != nil {
				t.Fatal(err)
			}
			stolen, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			s.rotate(stolen)
			forged := s.token(t, "ES256", stolen, s.claims("exp", clock().Add(1000*time.Hour).Unix()), "kid", "ES256-2")
			if _, err := validate(v, forged); err != nil {
				t.Fatal(err)
			}
			s.rotate(nil)
			advance(waitAfter)
			if _, err := validate(v, forged); !errors.Is(err, ErrInvalidToken) {
				t.Errorf("cache %d: got %v", size, err)
			}
		}
	})
	t.Run("AS-121 a withdrawn key ends its tokens also where the next key has its name", func(t *testing.T) {
		for _, kid := range []string{"ES256-2", ""} {
			var key crypto.Signer
			publish := func() crypto.Signer {
				key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
				return key
			}
			v, err := NewJWTValidator(JWTConfig{
				Issuer: s.URL, Now: clock,
				HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					w := httptest.NewRecorder()
					json.NewEncoder(w).Encode(jose.JSONWebKeySet{
						Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: kid, Algorithm: "ES256", Use: "sig"}},
					})
					return w.Result(), nil
				})}, JWKSURL: s.URL + "/jwks"})
			if err != nil {
				t.Fatal(err)
			}
			stolen := publish()
			forged := s.token(t, "ES256", stolen, s.claims("exp", clock().Add(1000*time.Hour).Unix()), "kid", kid)
			for range 2 {
				if _, err := validate(v, forged); err != nil {
					t.Fatal(err)
				}
			}
			good := s.token(t, "ES256", publish(), s.claims("exp", clock().Add(1000*time.Hour).Unix()), "kid", kid)
			advance(waitAfter)
			if _, err := validate(v, forged); !errors.Is(err, ErrInvalidToken) {
				t.Errorf("kid %q: got %v", kid, err)
			}
			if _, err := validate(v, good); err != nil {
				t.Errorf("kid %q: a token of the next key: got %v", kid, err)
			}
		}
	})
	t.Run("RS-46 RS-196 while the keys are read again, requests are neither goroutines nor lines in the log",
		func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fetches atomic.Int32
				var lines bytes.Buffer
				client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					if fetches.Add(1) > 1 {
						wait.Advance(time.Second)
						return nil, errors.New("dial tcp 10.0.0.7:443: connection refused")
					}
					w := httptest.NewRecorder()
					json.NewEncoder(w).Encode(jose.JSONWebKeySet{
						Keys: []jose.JSONWebKey{{Key: s.keys["ES256"].Public(), KeyID: "ES256", Algorithm: "ES256"}},
					})
					return w.Result(), nil
				})}
				v, err := NewJWTValidator(JWTConfig{
					Issuer: s.URL, JWKSURL: s.URL + "/jwks", HTTPClient: client,
					Logger: slog.New(slog.NewTextHandler(&lines, nil)),
				})
				if err != nil {
					t.Fatal(err)
				}
				token := s.token(t, "ES256", nil, s.claims())
				validate(v, token)
				wait.Advance(refreshAfter)
				before := runtime.NumGoroutine()
				for range 1000 {
					if _, err := validate(v, token); err != nil {
						t.Fatal(err)
					}
				}
				if n := runtime.NumGoroutine() - before; n > 5 {
					t.Errorf("%d goroutines", n)
				}
				wait.Advance(5 * time.Second)
				synctest.Wait()
				if n := bytes.Count(lines.Bytes(), []byte("\n")); n != 1 {
					t.Errorf("%d lines for one reading", n)
				}
			})
		})
	t.Run("RS-46 an outage: keys serve on for a day, then the answer is unavailable", func(t *testing.T) {
		v := fresh(t)
		validate(v, good)
		s.down.Store(true)
		defer s.down.Store(false)
		advance(staleFor - time.Hour)
		if _, err := validate(v, good); err != nil {
			t.Errorf("stale keys: got %v", err)
		}
		advance(2 * time.Hour)
		if _, err := validate(v, good); !errors.Is(err, ErrUnavailable) {
			t.Errorf("after a day: got %v", err)
		}
	})
	t.Run("RS-46 a server that is not up yet is waited for", func(t *testing.T) {
		s.down.Store(true)
		v := fresh(t)
		token := s.token(t, "ES256", nil, s.claims("exp", clock().Add(time.Hour).Unix(), "iat", clock().Unix()))
		if _, err := validate(v, token); !errors.Is(err, ErrUnavailable) {
			t.Errorf("down: got %v", err)
		}
		s.down.Store(false)
		advance(retryPause)
		if _, err := validate(v, token); err != nil {
			t.Errorf("up: got %v", err)
		}
	})
	t.Run("RS-40 metadata of another issuer is not believed", func(t *testing.T) {
		if _, err := Discover(t.Context(), s.URL+"/tenant", nil); err == nil {
			t.Error("got nil")
		}
	})
}

func TestIntrospection(t *testing.T) {
	s := newSignerServer(t)
	now := time.Now()
	s.answer = func(token string) string {
		if token == "good" {
			return fmt.Sprintf(`{"active":true,"sub":"alice","client_id":"app","aud":[%q],"scope":"mcp","exp":%d}`,
				resource, now.Add(time.Hour).Unix())
		}
		return `{"active":false}`
	}
	var mu sync.Mutex
	v, err := NewIntrospectionValidator(IntrospectionConfig{
		Issuer: s.URL, ClientID: "rs", ClientSecret: "s+1",
		Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("RS-45 SP-29 active, with our own credentials, asked once", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if p, err := validate(v, "good"); err != nil || p.Subject != "alice" || p.Issuer != s.URL ||
					!p.Scopes.Has("mcp") {
					t.Errorf("got %+v, %v", p, err)
				}
			})
		}
		wg.Wait()
		if n := s.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
	t.Run("RS-44 RS-45 inactive, remembered for a moment", func(t *testing.T) {
		before := s.asked.Load()
		for range 3 {
			if _, err := validate(v, "bad"); !errors.Is(err, ErrInvalidToken) {
				t.Errorf("got %v", err)
			}
		}
		if n := s.asked.Load() - before; n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
	t.Run("RS-44 a revoked token is refused after the cache time", func(t *testing.T) {
		s.answer = func(string) string { return `{"active":false}` }
		mu.Lock()
		now = now.Add(token.IntrospectionCache)
		mu.Unlock()
		if _, err := validate(v, "good"); !errors.Is(err, ErrInvalidToken) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("RS-45 an outage is not a bad token", func(t *testing.T) {
		s.down.Store(true)
		defer s.down.Store(false)
		if _, err := validate(v, "other"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("RS-45 nor is a refusal of our credentials", func(t *testing.T) {
		v, err := NewIntrospectionValidator(IntrospectionConfig{Issuer: s.URL, ClientID: "rs", ClientSecret: "wrong"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := validate(v, "good"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}

type inProcess map[string]oauth.Introspection

func (m inProcess) Introspect(_ context.Context, token string) (oauth.Introspection, error) {
	if token == "outage" {
		return oauth.Introspection{}, errors.New("store is gone")
	}
	return m[token], nil
}

func TestLocalAndAnyOf(t *testing.T) {
	local := Local(inProcess{
		"good": {Active: true, Issuer: authServer, Subject: "a", Audience: resource,
			Expires: time.Now().Add(time.Hour).Unix()},
	})
	never := ValidatorFunc(func(context.Context, Credential) (*Principal, error) { return nil, ErrInvalidToken })
	broken := ValidatorFunc(func(context.Context, Credential) (*Principal, error) { return nil, ErrUnavailable })
	for _, tt := range []struct {
		name  string
		v     Validator
		token string
		want  error
	}{
		{"RS-44 active", local, "good", nil},
		{"RS-44 inactive", local, "bad", ErrInvalidToken},
		{"RS-44 outage", local, "outage", ErrUnavailable},
		{"RS-40 the second knows it", AnyOf(never, local), "good", nil},
		{"RS-40 no validator knows it", AnyOf(never, local), "bad", ErrInvalidToken},
		{"RS-40 one could not be asked", AnyOf(broken, never), "bad", ErrUnavailable},
		{"RS-40 one could not be asked, another knows it", AnyOf(broken, local), "good", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := validate(tt.v, tt.token); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	s := newSignerServer(b)
	token := s.token(b, "ES256", nil, s.claims("exp", time.Now().Add(100*time.Hour).Unix()))
	for name, size := range map[string]int{"cached": 0, "uncached": -1} {
		b.Run(name, func(b *testing.B) {
			v, err := NewJWTValidator(JWTConfig{Issuer: s.URL, CacheSize: size})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := validate(v, token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGuard measures a whole request with a cached token, with and without a guard.
func BenchmarkGuard(b *testing.B) {
	done := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	r := newRig(b, func(c *Config) { c.Audit, c.Limits.Calls.PerSecond = nil, 1e6 })
	r.h = r.Protect(done)
	for name, h := range map[string]http.Handler{"guarded": r.h, "bare": done} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.h, r.now = h, r.now.Add(time.Millisecond) // so that the rate limit is not reached
				if w := r.call("alice", tool("read")); w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
