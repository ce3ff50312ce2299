package authserver

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// inlineKeys finds keys in the registration, like dcr.Registry for clients without a jwks_uri.
type inlineKeys struct{ err error }

func (k inlineKeys) ClientKeys(_ context.Context, c storage.Client, _ string) ([]jose.JSONWebKey, error) {
	var set jose.JSONWebKeySet
	if k.err != nil {
		return nil, k.err
	}
	err := json.Unmarshal(c.JWKS, &set)
	return set.Keys, err
}

// assertionSigner is a client with its own key.
type assertionSigner struct {
	id  string
	alg jose.SignatureAlgorithm
	key crypto.Signer
}

func (s assertionSigner) sign(t testing.TB, claims map[string]any, header map[jose.HeaderKey]any) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithHeader("kid", "k1")
	for k, v := range header {
		o = o.WithHeader(k, v)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: s.alg, Key: s.key}, o)
	if err != nil {
		t.Fatal(err)
	}
	payload, _ := json.Marshal(claims)
	sig, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := sig.CompactSerialize()
	return out
}

func newAssertionRig(t *testing.T) (*rig, map[string]assertionSigner) {
	t.Helper()
	r := newRig(t, func(c *Config) { c.Registry = &registry{Clients: c.Store, keys: inlineKeys{}} })
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	rs, _ := rsa.GenerateKey(rand.Reader, 2048)
	signers := map[string]assertionSigner{}
	for _, s := range []assertionSigner{
		{"keyed-es", jose.ES256, ec}, {"keyed-ed", jose.EdDSA, ed}, {"keyed-rs", jose.RS256, rs},
	} {
		set, err := json.Marshal(jose.JSONWebKeySet{
			Keys: []jose.JSONWebKey{{Key: s.key.Public(), KeyID: "k1", Algorithm: string(s.alg), Use: "sig"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.store.PutClient(t.Context(), storage.Client{
			ID: s.id, RedirectURIs: []string{testRedirect},
			GrantTypes: []string{oauth.GrantCode, oauth.GrantRefresh, oauth.GrantClientCredentials},
			AuthMethod: oauth.PrivateKeyJWT,
			JWKS:       set, Scopes: []string{"mcp"}, Source: storage.SourceStatic, CreatedAt: r.now(),
		}); err != nil {
			t.Fatal(err)
		}
		signers[s.id] = s
	}
	return r, signers
}

func (r *rig) claims(id, jti string) map[string]any {
	now := r.now().Unix()
	return map[string]any{"iss": id, "sub": id, "aud": r.Issuer(), "exp": now + 60, "iat": now, "jti": jti}
}

func machineForm(assertion string, change ...string) url.Values {
	v := url.Values{
		"grant_type": {oauth.GrantClientCredentials}, "client_assertion_type": {assertionType},
		"client_assertion": {assertion},
	}
	for i := 0; i+1 < len(change); i += 2 {
		v.Set(change[i], change[i+1])
	}
	return v
}

func TestAssertion(t *testing.T) {
	r, signers := newAssertionRig(t)
	p := r.person()
	for id, s := range signers {
		t.Run("AS-123 AS-175 "+string(s.alg)+" without client_id", func(t *testing.T) {
			if status, out := p.token(machineForm(s.sign(t, r.claims(id, "a"), nil))); status != 200 {
				t.Errorf("got %d %v", status, out)
			}
		})
		t.Run("AS-128 "+string(s.alg)+" again", func(t *testing.T) {
			if status, out := p.token(machineForm(s.sign(t, r.claims(id, "a"), nil))); status != 401 ||
				out["error"] != "invalid_client" {
				t.Errorf("got %d %v", status, out)
			}
		})
	}
	es := signers["keyed-es"]
	for name, change := range map[string]map[string]any{
		"AS-126 the token endpoint as audience": {"aud": r.Issuer() + "/token"},
		"AS-126 the issuer with a slash":        {"aud": r.Issuer() + "/"},
		"AS-126 a list of both":                 {"aud": []string{r.Issuer(), r.Issuer() + "/token"}},
		"AS-128 without jti":                    {"jti": nil},
		"AS-125 a clock that is behind":         {"exp": r.now().Unix() - 20},
		"AS-125 a clock that is ahead": {
			"iat": r.now().Unix() + 20, "nbf": r.now().Unix() + 20, "exp": r.now().Unix() + 80,
		},
	} {
		t.Run("accepted: "+name, func(t *testing.T) {
			if status, out := p.token(
				machineForm(es.sign(t, changed(r.claims(es.id, name), change), nil))); status != 200 {
				t.Errorf("got %d %v", status, out)
			}
		})
	}
	for name, change := range map[string]map[string]any{
		"AS-125 another issuer":                  {"iss": "x"},
		"AS-125 no issuer":                       {"iss": nil},
		"AS-125 another subject":                 {"sub": "static"},
		"AS-126 another audience":                {"aud": "https://evil.example"},
		"AS-126 another audience as well":        {"aud": []string{r.Issuer(), "https://evil.example"}},
		"AS-126 an audience that only begins so": {"aud": r.Issuer() + ".evil.example"},
		"AS-126 no audience":                     {"aud": nil},
		"AS-125 expired":                         {"exp": r.now().Unix() - 31},
		"AS-125 no expiry":                       {"exp": nil},
		"AS-125 valid for a day":                 {"exp": r.now().Unix() + 86400},
		"AS-125 not valid yet":                   {"nbf": r.now().Unix() + 60},
		"AS-125 issued in the future":            {"iat": r.now().Unix() + 60},
	} {
		t.Run("refused: "+name, func(t *testing.T) {
			if status, out := p.token(
				machineForm(es.sign(t, changed(r.claims(es.id, name), change), nil))); status != 401 ||
				out["error"] != "invalid_client" {
				t.Errorf("got %d %v", status, out)
			}
		})
	}
	for _, typ := range []string{"at+jwt", "dpop+jwt", "oauth-id-jag+jwt", "logout+jwt"} {
		t.Run("AS-127 refused: typ "+typ, func(t *testing.T) {
			if status, _ := p.token(
				machineForm(es.sign(t, r.claims(es.id, typ), map[jose.HeaderKey]any{"typ": typ}))); status != 401 {
				t.Errorf("got %d", status)
			}
		})
	}
	for _, typ := range []string{"JWT", "jwt", "client-authentication+jwt", "application/client-authentication+jwt"} {
		t.Run("AS-127 accepted: typ "+typ, func(t *testing.T) {
			if status, out := p.token(
				machineForm(es.sign(t, r.claims(es.id, typ), map[jose.HeaderKey]any{"typ": typ}))); status != 200 {
				t.Errorf("got %d %v", status, out)
			}
		})
	}
	t.Run("AS-128 without jti, again in other letters", func(t *testing.T) {
		raw := es.sign(t, changed(r.claims(es.id, ""), map[string]any{"jti": nil, "exp": r.now().Unix() + 59}), nil)
		if status, out := p.token(machineForm(raw)); status != 200 {
			t.Fatalf("got %d %v", status, out)
		}
		for _, again := range []string{
			strings.Replace(raw, ".", "\n.", 1), strings.Replace(raw, ".", ".\r\n", 1), raw[:8] + "\n" + raw[8:],
		} {
			if status, out := p.token(machineForm(again)); status != 401 || out["error"] != "invalid_client" {
				t.Errorf("got %d %v", status, out)
			}
		}
	})
	r.restart() // so many failures would be throttled
	good := func(jti string) string { return es.sign(t, r.claims(es.id, jti), nil) }
	public, _ := json.Marshal(jose.JSONWebKey{Key: es.key.Public()})
	confused, _ := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: public}, nil)
	payload, _ := json.Marshal(r.claims(es.id, "confused"))
	hs, _ := confused.Sign(payload)
	hmac, _ := hs.CompactSerialize()
	other := assertionSigner{es.id, jose.EdDSA, signers["keyed-ed"].key}
	for name, form := range map[string]url.Values{
		"AS-124 another type": machineForm(good("t1"), "client_assertion_type",
			"urn:ietf:params:oauth:client-assertion-type:saml2-bearer"),
		"AS-124 two assertions in one":      machineForm(good("t2") + " " + good("t3")),
		"AS-124 no assertion":               machineForm(""),
		"AS-129 another client_id":          machineForm(good("t4"), "client_id", "static"),
		"AS-130 the key of another client":  machineForm(other.sign(t, r.claims(es.id, "t5"), nil)),
		"AS-130 the public key as a secret": machineForm(hmac),
		"AS-130 alg none": machineForm("eyJhbGciOiJub25lIn0." +
			strings.Split(good("t6"), ".")[1] + "."),
		"AS-130 a client without keys": machineForm(assertionSigner{
			"app", jose.ES256, es.key}.sign(t, r.claims("app", "t7"), nil)),
		"AS-159 no assertion where one is due": {"grant_type": {oauth.GrantClientCredentials}, "client_id": {es.id}},
		"AS-159 a secret where a key is due": {
			"grant_type": {oauth.GrantClientCredentials}, "client_id": {es.id}, "client_secret": {testSecret},
		},
	} {
		t.Run("refused: "+name, func(t *testing.T) {
			if status, out := p.token(form); status != 401 || out["error"] != "invalid_client" {
				t.Errorf("got %d %v", status, out)
			}
		})
	}
	t.Run("AS-129 the same client_id", func(t *testing.T) {
		if status, out := p.token(machineForm(good("t8"), "client_id", es.id)); status != 200 {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("OAuth 2.1 2.4: two methods at once", func(t *testing.T) {
		if status, out := p.token(machineForm(good("t9"), "client_secret", "x")); status != 400 ||
			out["error"] != "invalid_request" {
			t.Errorf("got %d %v", status, out)
		}
		if status, out := p.token(machineForm(good("t10")), "Authorization", basic(es.id, "x")); status != 400 ||
			out["error"] != "invalid_request" {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("AS-27 the method and its algorithms are published", func(t *testing.T) {
		pg := p.get("/.well-known/oauth-authorization-server")
		for _, at := range []string{"token", "revocation", "introspection"} {
			if !strings.Contains(pg.body, `"private_key_jwt"`) ||
				!strings.Contains(pg.body,
					`"`+at+`_endpoint_auth_signing_alg_values_supported":["ES256","EdDSA","Ed25519","RS256"]`) {
				t.Errorf("%s: got %s", at, pg.body)
			}
		}
	})
	t.Run("SP-28 no assertion is logged", func(t *testing.T) {
		if strings.Contains(r.log.String(), strings.Split(good("t11"), ".")[1][:40]) {
			t.Error("the log has one")
		}
	})
}

func changed(claims, change map[string]any) map[string]any {
	out := maps.Clone(claims)
	for k, v := range change {
		if out[k] = v; v == nil {
			delete(out, k)
		}
	}
	return out
}

func TestAssertionOnce(t *testing.T) {
	r, signers := newAssertionRig(t)
	es := signers["keyed-es"]
	assertion := es.sign(t, r.claims(es.id, "once"), nil)
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if status, _ := r.person().token(machineForm(assertion)); status == 200 {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("AS-128: one assertion authenticated %d requests", won.Load())
	}
}

func TestFailedAuthenticationBurnsNothing(t *testing.T) {
	r, signers := newAssertionRig(t)
	es := signers["keyed-es"]
	p := r.person()
	code := p.approve(authorizeQuery("client_id", es.id)).Get("code")
	form := func(assertion string) url.Values {
		return codeForm(code, "client_id", es.id, "client_assertion_type", assertionType, "client_assertion", assertion)
	}
	for _, bad := range []url.Values{
		codeForm(code, "client_id", es.id),
		form(es.sign(t, changed(r.claims(es.id, "x"), map[string]any{"aud": "https://evil.example"}), nil)),
		codeForm(code, "client_id", es.id, "client_secret", "x"),
	} {
		if status, out := p.token(bad); status != 401 {
			t.Fatalf("got %d %v", status, out)
		}
	}
	status, out := p.token(form(es.sign(t, r.claims(es.id, "y"), nil)))
	if status != 200 {
		t.Fatalf("AS-159 the code is burnt: %d %v", status, out)
	}
	if status, _ := p.token(refreshForm(out["refresh_token"], "client_id", es.id)); status != 401 {
		t.Errorf("a refresh without an assertion: %d", status)
	}
	status, out = p.token(
		refreshForm(out["refresh_token"], "client_id", es.id, "client_assertion_type", assertionType,
			"client_assertion", es.sign(t, r.claims(es.id, "z"), nil)),
	)
	if status != 200 {
		t.Errorf("AS-159 the refresh token is burnt: %d %v", status, out)
	}
}

func TestKeysThatCannotBeHad(t *testing.T) {
	r, signers := newAssertionRig(t)
	r.restart(func(c *Config) { c.Registry = &registry{Clients: c.Store, keys: inlineKeys{errors.New("down")}} })
	es := signers["keyed-es"]
	pg := r.person().post("/token", machineForm(es.sign(t, r.claims(es.id, "a"), nil)))
	if pg.status != http.StatusServiceUnavailable || pg.header.Get("Retry-After") == "" {
		t.Errorf("AS-143: got %d %s, want a passing failure: the client must not register again", pg.status, pg.body)
	}
}

// TestAssertionRFC9864 signs like clients that know only the new name of EdDSA, among them
// oauth4webapi. go-jose cannot create such a JWT.
func TestAssertionRFC9864(t *testing.T) {
	r, signers := newAssertionRig(t)
	p := r.person()
	ed := signers["keyed-ed"] // its key is published with the old name
	signed := func(id, jti string) string {
		payload, _ := json.Marshal(r.claims(id, jti))
		input := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"Ed25519","kid":"k1"}`)) + "." +
			base64.RawURLEncoding.EncodeToString(payload)
		signature, err := ed.key.Sign(nil, []byte(input), crypto.Hash(0))
		if err != nil {
			t.Fatal(err)
		}
		return input + "." + base64.RawURLEncoding.EncodeToString(signature)
	}
	t.Run("AS-123 RFC 9864 2.2: Ed25519 is EdDSA", func(t *testing.T) {
		if status, out := p.token(machineForm(signed(ed.id, "a"))); status != 200 {
			t.Errorf("got %d %v", status, out)
		}
	})
	one, another := strings.Split(signed(ed.id, "b"), "."), strings.Split(signed(ed.id, "c"), ".")
	for name, assertion := range map[string]string{
		"AS-128 again":                              signed(ed.id, "a"),
		"AS-130 with the signature of another":      one[0] + "." + one[1] + "." + another[2],
		"AS-130 without a signature":                one[0] + "." + one[1] + ".",
		"AS-130 for a client whose key is of ES256": signed("keyed-es", "d"),
	} {
		t.Run("refused: "+name, func(t *testing.T) {
			if status, out := p.token(machineForm(assertion)); status != 401 || out["error"] != "invalid_client" {
				t.Errorf("got %d %v", status, out)
			}
		})
	}
}
