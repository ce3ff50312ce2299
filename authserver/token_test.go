package authserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func wantError(t *testing.T, status int, out map[string]any, wantStatus int, code oauth.Code) {
	t.Helper()
	if status != wantStatus || out["error"] != string(code) {
		t.Errorf("got %d %v, want %d %s", status, out, wantStatus, code)
	}
	if _, leaked := out["access_token"]; leaked {
		t.Error("an error carries a token")
	}
}

func TestCodeExchange(t *testing.T) {
	r := newRig(t)
	p := r.person()
	t.Run("AS-81 AS-80 AS-118 AS-122 the answer and the access token", func(t *testing.T) {
		code := p.approve(authorizeQuery()).Get("code")
		pg := p.post("/token", codeForm(code))
		if pg.status != 200 || pg.header.Get("Cache-Control") != "no-store" ||
			pg.header.Get("Content-Type") != "application/json" {
			t.Fatalf("got %d %v %s", pg.status, pg.header, pg.body)
		}
		var out oauth.TokenResponse
		if err := json.Unmarshal([]byte(pg.body), &out); err != nil {
			t.Fatal(err)
		}
		if out.TokenType != "Bearer" || out.ExpiresIn != 900 || out.Scope != "mcp" || out.RefreshToken == "" {
			t.Errorf("got %+v", out)
		}
		claims := r.verified(t, out.AccessToken)
		if claims.Issuer != r.Issuer() || claims.Audience != testResource || claims.ClientID != "app" ||
			claims.Scope != "mcp" ||
			!strings.HasPrefix(claims.Subject, "usr_") || claims.TokenID == "" || claims.GrantID == "" ||
			claims.IssuedAt != r.now().Unix() || claims.Expires != r.now().Add(15*time.Minute).Unix() ||
			claims.AuthTime == 0 {
			t.Errorf("got claims %+v", claims)
		}
	})
	t.Run("AS-04 a code and a refresh token have 256 random bits", func(t *testing.T) {
		seen := map[string]bool{}
		for range 2 {
			code := p.approve(authorizeQuery()).Get("code")
			_, out := p.token(codeForm(code))
			for _, token := range []string{code, out["refresh_token"].(string)} {
				_, random, _ := strings.Cut(token, "_")
				if len(random) < secrets.TokenSize || seen[random[len(random)-secrets.TokenSize:]] {
					t.Errorf("got %d characters, or the same twice", len(random))
				}
				seen[random[max(0, len(random)-secrets.TokenSize):]] = true
			}
		}
	})
	t.Run("AS-82 the answer says which scopes were granted, also where others were asked for", func(t *testing.T) {
		_, out := p.token(codeForm(p.approve(authorizeQuery("scope", "mcp unheard-of")).Get("code")))
		if out["scope"] != "mcp" {
			t.Errorf("got %v", out)
		}
	})
	for _, tt := range []struct {
		name   string
		change []string
		code   oauth.Code
	}{
		{"AS-64 RFC 7636 4.6: wrong verifier is invalid_grant", []string{"code_verifier", strings.Repeat("x", 43)},
			oauth.InvalidGrant},
		{"AS-64 missing verifier is invalid_grant", []string{"code_verifier", ""}, oauth.InvalidGrant},
		{"AS-66 verifier of 42 characters", []string{"code_verifier", strings.Repeat("x", 42)}, oauth.InvalidGrant},
		{"AS-66 verifier of 129 characters", []string{"code_verifier", strings.Repeat("x", 129)}, oauth.InvalidGrant},
		{"AS-92 another redirect URI is invalid_grant", []string{"redirect_uri", "http://127.0.0.1:1/callback"},
			oauth.InvalidGrant},
		{"AS-105 an unknown resource is invalid_target", []string{"resource", "https://evil.example.com/mcp"},
			oauth.InvalidTarget},
		{"AS-83 no code", []string{"code", ""}, oauth.InvalidRequest},
		{"AS-85 unknown grant type", []string{"grant_type", "password"}, oauth.UnsupportedGrantType},
		{"AS-03 RFC 6749 4.3: no password grant", []string{"grant_type", "password", "username", "alice"},
			oauth.UnsupportedGrantType},
		{"AS-83 no grant type", []string{"grant_type", ""}, oauth.InvalidRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code := p.approve(authorizeQuery()).Get("code")
			status, out := p.token(codeForm(code, tt.change...))
			wantError(t, status, out, 400, tt.code)
			if status, out := p.token(codeForm(code)); status != 200 {
				t.Errorf("the code was burnt by a request that did not match: %d %v", status, out)
			}
		})
	}
	t.Run("AS-92 redirect_uri may be left out", func(t *testing.T) {
		if status, out := p.token(
			codeForm(p.approve(authorizeQuery()).Get("code"), "redirect_uri", "")); status != 200 {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("AS-49 the code dies after sixty seconds", func(t *testing.T) {
		code := p.approve(authorizeQuery()).Get("code")
		r.advance(time.Minute)
		status, out := p.token(codeForm(code))
		wantError(t, status, out, 400, oauth.InvalidGrant)
	})
	t.Run("AS-90 another client's code is invalid_grant and stays good", func(t *testing.T) {
		code := p.approve(authorizeQuery()).Get("code")
		status, out := p.token(codeForm(code, "client_id", ""), "Authorization", basic("static", testSecret))
		wantError(t, status, out, 400, oauth.InvalidGrant)
		if status, _ := p.token(codeForm(code)); status != 200 {
			t.Error("the code was burnt")
		}
	})
	t.Run("AS-91 a second valid redemption revokes what the first gave; an invalid replay does not",
		func(t *testing.T) {
			code := p.approve(authorizeQuery()).Get("code")
			_, first := p.token(codeForm(code))
			status, out := p.token(codeForm(code, "code_verifier", strings.Repeat("y", 43)))
			wantError(t, status, out, 400, oauth.InvalidGrant)
			if status, out := p.token(refreshForm(first["refresh_token"])); status != 200 {
				t.Fatalf("an invalid replay revoked the grant: %d %v", status, out)
			}
			status, out = p.token(codeForm(code))
			wantError(t, status, out, 400, oauth.InvalidGrant)
			status, out = p.token(refreshForm(first["refresh_token"]))
			wantError(t, status, out, 400, oauth.InvalidGrant)
		})
	t.Run("AS-90 32 at once: one code, one winner", func(t *testing.T) {
		code := p.approve(authorizeQuery()).Get("code")
		if n := concurrently(32, func() int { status, _ := p.token(codeForm(code)); return status }); n != 1 {
			t.Errorf("got %d winners, want 1", n)
		}
	})
	t.Run("AS-07 unknown parameters are ignored, AS-08 empty ones are absent", func(t *testing.T) {
		f := codeForm(p.approve(authorizeQuery("foo", "bar")).Get("code"), "foo", "bar", "client_secret", "")
		f.Set("client_secret", "")
		f.Set("client_assertion", "")
		if status, out := p.token(f); status != 200 {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("AS-09 a repeated parameter is invalid_request", func(t *testing.T) {
		f := codeForm("x")
		f.Add("code", "y")
		status, out := p.token(f)
		wantError(t, status, out, 400, oauth.InvalidRequest)
	})
}

// concurrently counts how many of n simultaneous calls answer 200.
func concurrently(n int, call func() int) (won int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range n {
		wg.Go(func() {
			if call() == http.StatusOK {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return won
}

// unread finds no documents that were read.
type unread struct{}

func (unread) Fetch(context.Context, string) (storage.Client, error) {
	return storage.Client{}, storage.ErrNotFound
}
func (unread) Vouched(storage.Client) bool { return false }

// TestUnreadDocument checks that after the loss of the database, a client with a metadata document
// has lost its grant but not its registration.
func TestUnreadDocument(t *testing.T) {
	p := newRig(t, func(c *Config) { c.Registry = &registry{Clients: c.Store, Documents: unread{}} }).person()
	for grant, want := range map[string]string{
		oauth.GrantRefresh: "invalid_grant", oauth.GrantCode: "invalid_grant",
		oauth.GrantClientCredentials: "invalid_client",
	} {
		pg := p.post("/token",
			url.Values{"grant_type": {grant}, "client_id": {"https://client.example/oauth.json"},
				"refresh_token": {"x"}, "code": {"x"}})
		if !strings.Contains(pg.body, `"error":"`+want+`"`) {
			t.Errorf("%s: got %d %s, want %s", grant, pg.status, pg.body, want)
		}
	}
}

// verified checks an access token with only the published keys, like any resource server, and
// returns its claims.
func (r *rig) verified(t *testing.T, token string) (claims oauth.AccessTokenClaims) {
	t.Helper()
	var set jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(r.person().get("/jwks.json").body), &set); err != nil {
		t.Fatal(err)
	}
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA, jose.RS256})
	if err != nil {
		t.Fatal(err)
	}
	h := jws.Signatures[0].Header
	if h.ExtraHeaders[jose.HeaderType] != "at+jwt" {
		t.Errorf("got typ %v, want at+jwt", h.ExtraHeaders[jose.HeaderType])
	}
	payload, err := jws.Verify(set.Key(h.KeyID)[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

func TestRefresh(t *testing.T) {
	r := newRig(t)
	p := r.person()
	t.Run("AS-94 rotation", func(t *testing.T) {
		first := p.signIn()
		r.advance(time.Minute)
		status, second := p.token(refreshForm(first["refresh_token"]))
		if status != 200 || second["refresh_token"] == first["refresh_token"] ||
			second["access_token"] == first["access_token"] {
			t.Fatalf("got %d %v", status, second)
		}
		if got := r.verified(t, second["access_token"].(string)); got.Audience != testResource {
			t.Errorf("RFC 8707 2.2: audience %q not kept on refresh", got.Audience)
		}
	})
	t.Run("AS-96 within the grace window the same reply comes again", func(t *testing.T) {
		first := p.signIn()
		_, a := p.token(refreshForm(first["refresh_token"]))
		r.advance(10 * time.Second)
		status, b := p.token(refreshForm(first["refresh_token"]))
		if status != 200 || a["refresh_token"] != b["refresh_token"] || a["access_token"] != b["access_token"] {
			t.Fatalf("got %d %v, want %v", status, b, a)
		}
		if b["expires_in"].(float64) != a["expires_in"].(float64)-10 {
			t.Errorf("expires_in of the replay: got %v after %v", b["expires_in"], a["expires_in"])
		}
	})
	t.Run("AS-96 32 at once: everyone gets the same usable reply", func(t *testing.T) {
		first := p.signIn()
		seen := sync.Map{}
		won := concurrently(32, func() int {
			status, out := p.token(refreshForm(first["refresh_token"]))
			seen.Store(out["refresh_token"], out["access_token"])
			return status
		})
		n := 0
		seen.Range(func(next, _ any) bool {
			n++
			if status, out := p.token(refreshForm(next)); status != 200 {
				t.Errorf("the successor is not usable: %d %v", status, out)
			}
			return true
		})
		if won != 32 || n != 1 {
			t.Errorf("got %d answers and %d different successors, want 32 and 1", won, n)
		}
	})
	t.Run("AS-95 reuse after the window revokes the family", func(t *testing.T) {
		first := p.signIn()
		_, second := p.token(refreshForm(first["refresh_token"]))
		r.advance(time.Minute + time.Second)
		status, out := p.token(refreshForm(first["refresh_token"]))
		wantError(t, status, out, 400, oauth.InvalidGrant)
		status, out = p.token(refreshForm(second["refresh_token"]))
		wantError(t, status, out, 400, oauth.InvalidGrant)
		if in, _ := r.Introspect(t.Context(), second["access_token"].(string)); in.Active {
			t.Error("the access token is still active")
		}
	})
	t.Run("AS-97 another client cannot use it, and does not spend it", func(t *testing.T) {
		first := p.signIn()
		status, out := p.token(refreshForm(first["refresh_token"], "client_id", "static", "client_secret", testSecret))
		wantError(t, status, out, 400, oauth.InvalidGrant)
		if status, _ := p.token(refreshForm(first["refresh_token"])); status != 200 {
			t.Error("the token was spent by a stranger")
		}
	})
	t.Run("AS-98 AS-82 narrow, then full again; never wider", func(t *testing.T) {
		_, first := p.token(codeForm(p.approve(authorizeQuery("scope", "mcp notes:write")).Get("code")))
		status, narrow := p.token(refreshForm(first["refresh_token"], "scope", "mcp"))
		if status != 200 || narrow["scope"] != "mcp" {
			t.Fatalf("narrow: got %d %v", status, narrow)
		}
		status, full := p.token(refreshForm(narrow["refresh_token"]))
		if status != 200 || full["scope"] != "mcp notes:write" {
			t.Fatalf("full again: got %d %v", status, full)
		}
		small := p.signIn()
		status, out := p.token(refreshForm(small["refresh_token"], "scope", "mcp notes:write"))
		wantError(t, status, out, 400, oauth.InvalidScope)
		if status, _ := p.token(refreshForm(small["refresh_token"])); status != 200 {
			t.Error("asking for too much spent the token")
		}
	})
	t.Run("AS-99 a foreign resource is invalid_target and spends nothing", func(t *testing.T) {
		first := p.signIn()
		status, out := p.token(refreshForm(first["refresh_token"], "resource", "https://evil.example.com/"))
		wantError(t, status, out, 400, oauth.InvalidTarget)
		if status, _ := p.token(refreshForm(first["refresh_token"], "resource", testResource+"/")); status != 200 {
			t.Error("the same resource in another spelling was refused")
		}
	})
	t.Run("AS-100 idle and absolute expiry", func(t *testing.T) {
		first := p.signIn()
		r.advance(30 * 24 * time.Hour)
		status, out := p.token(refreshForm(first["refresh_token"]))
		wantError(t, status, out, 400, oauth.InvalidGrant)
		out = p.signIn()
		for range 8 {
			r.advance(25 * 24 * time.Hour)
			if status, out = p.token(refreshForm(out["refresh_token"])); status != 200 {
				break
			}
		}
		wantError(t, status, out, 400, oauth.InvalidGrant)
	})
	t.Run("AS-101 a confidential client authenticates when refreshing", func(t *testing.T) {
		code := p.approve(authorizeQuery("client_id", "static")).Get("code")
		_, first := p.token(codeForm(code, "client_id", ""), "Authorization", basic("static", testSecret))
		status, out := p.token(refreshForm(first["refresh_token"], "client_id", "static"))
		wantError(t, status, out, 401, oauth.InvalidClient)
	})
}

func TestClientAuthentication(t *testing.T) {
	r := newRig(t)
	p := r.person()
	machine := url.Values{"grant_type": {"client_credentials"}}
	with := func(kv ...string) url.Values {
		v := url.Values{"grant_type": {"client_credentials"}}
		for i := 0; i < len(kv); i += 2 {
			v.Set(kv[i], kv[i+1])
		}
		return v
	}
	for _, tt := range []struct {
		name   string
		form   url.Values
		header string
		status int
		code   oauth.Code
	}{
		{"AS-174 client_secret_basic", machine, basic("machine", testSecret), 200, ""},
		{"AS-88 client_secret_post", with("client_id", "machine", "client_secret", testSecret), "", 200, ""},
		{"AS-89 Basic with the same client_id in the body", with("client_id", "machine"),
			basic("machine", testSecret), 200, ""},
		{"AS-89 Basic halves are form-decoded", machine, basic("mach%69ne", testSecret), 200, ""},
		{"AS-86 two methods", with("client_secret", testSecret), basic("machine", testSecret), 400,
			oauth.InvalidRequest},
		{"AS-87 two identities", with("client_id", "static"), basic("machine", testSecret), 401, oauth.InvalidClient},
		{"AS-84 wrong secret", machine, basic("machine", "wrong"), 401, oauth.InvalidClient},
		{"AS-87 a secret left out", with("client_id", "machine"), "", 401, oauth.InvalidClient},
		{"AS-84 an unknown client", machine, basic("nobody", testSecret), 401, oauth.InvalidClient},
		{"AS-84 no client at all", machine, "", 401, oauth.InvalidClient},
		{"AS-84 another scheme", machine, "Bearer abc", 401, oauth.InvalidClient},
		{"AS-84 garbage", machine, "Basic !!!", 401, oauth.InvalidClient},
		{"AS-173 a public client may not", with("client_id", "app"), "", 400, oauth.UnauthorizedClient},
		{"AS-85 a client without this grant", machine, basic("static", testSecret), 400, oauth.UnauthorizedClient},
		{"AS-87 a public client with a secret is an impostor", with("client_id", "app", "client_secret", "x"), "",
			401, oauth.InvalidClient},
		{"AS-105 unknown resource",
			with("client_id", "machine", "client_secret", testSecret, "resource", "https://evil.example.com"), "",
			400, oauth.InvalidTarget},
		{"AS-176 a scope it may not have",
			with("client_id", "machine", "client_secret", testSecret, "scope", "notes:write"), "", 400,
			oauth.InvalidScope},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var header []string
			if tt.header != "" {
				header = []string{"Authorization", tt.header}
			}
			pg := p.post("/token", tt.form, header...)
			var out map[string]any
			json.Unmarshal([]byte(pg.body), &out)
			if tt.status == 200 {
				claims := r.verified(t, out["access_token"].(string))
				if claims.Subject != "machine" || claims.Audience != testResource || out["refresh_token"] != nil {
					t.Errorf("AS-177 AS-120: got %+v %v", claims, out)
				}
				return
			}
			wantError(t, pg.status, out, tt.status, tt.code)
			if basicUsed := tt.header != ""; tt.code == oauth.InvalidClient &&
				basicUsed != strings.HasPrefix(pg.header.Get("WWW-Authenticate"), "Basic ") {
				t.Errorf("AS-84: WWW-Authenticate is %q", pg.header.Get("WWW-Authenticate"))
			}
		})
	}
	t.Run("CL-49 go-sdk: Basic with an empty password is a public client", func(t *testing.T) {
		code := p.approve(authorizeQuery()).Get("code")
		if status, out := p.token(codeForm(code, "client_id", ""), "Authorization", basic("app", "")); status != 200 {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("AS-90 a failed authentication does not burn the code", func(t *testing.T) {
		code := p.approve(authorizeQuery("client_id", "static")).Get("code")
		status, out := p.token(codeForm(code, "client_id", "static"))
		wantError(t, status, out, 401, oauth.InvalidClient)
		if status, out := p.token(codeForm(code, "client_id", "static", "client_secret", testSecret)); status != 200 {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("AS-05 wrong secrets are slowed down, the right one passes", func(t *testing.T) {
		var status int
		for range 2 * 20 {
			status, _ = p.token(machine, "Authorization", basic("machine", "guess"))
		}
		if status != http.StatusTooManyRequests {
			t.Errorf("got %d after many guesses, want 429", status)
		}
		if status, out := p.token(machine, "Authorization", basic("machine", testSecret)); status != 200 {
			t.Errorf("got %d %v", status, out)
		}
	})
}

func TestTokenEndpointEdge(t *testing.T) {
	p := newRig(t).person()
	t.Run("AS-79 GET is 405 with Allow", func(t *testing.T) {
		if pg := p.get("/token?grant_type=client_credentials"); pg.status != 405 ||
			!strings.Contains(pg.header.Get("Allow"), "POST") {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
	})
	t.Run("AS-06 AS-79 credentials in the URL are refused", func(t *testing.T) {
		for _, param := range []string{
			"client_secret", "client_assertion", "code", "code_verifier", "refresh_token", "token", "subject_token",
			"actor_token", "grant_type",
		} {
			pg := p.post("/token?"+param+"=x", codeForm("x"))
			if pg.status != 400 || !strings.Contains(pg.body, `"invalid_request"`) ||
				!strings.Contains(pg.body, "not in the URL") {
				t.Errorf("%s: got %d %s", param, pg.status, pg.body)
			}
		}
	})
	t.Run("AS-79 JSON is refused", func(t *testing.T) {
		pg := p.post("/token", codeForm("x"), "Content-Type", "application/json")
		if pg.status != 400 || !strings.Contains(pg.body, "invalid_request") {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
	t.Run("RS-196 a body over the limit is 413", func(t *testing.T) {
		if pg := p.post("/token", url.Values{"x": {strings.Repeat("a", maxFormBytes)}}); pg.status != 413 {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("AS-11 browsers may call it", func(t *testing.T) {
		req, _ := http.NewRequest(http.MethodOptions, p.http.URL+"/token", nil)
		req.Header.Set("Origin", "https://inspector.example")
		req.Header.Set("Access-Control-Request-Method", "POST")
		req.Header.Set("Access-Control-Request-Headers", "mcp-protocol-version")
		pg := p.do(req)
		if pg.status >= 300 || pg.header.Get("Access-Control-Allow-Origin") != "*" ||
			!strings.Contains(strings.ToLower(pg.header.Get("Access-Control-Allow-Headers")), "mcp-protocol-version") {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
	})
	t.Run("AS-12 descriptions stay inside the permitted characters", func(t *testing.T) {
		_, out := p.token(url.Values{"grant_type": {"\"é\n"}, "client_id": {"app"}})
		for _, c := range out["error_description"].(string) {
			if c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
				t.Errorf("got %q", out["error_description"])
			}
		}
	})
}
