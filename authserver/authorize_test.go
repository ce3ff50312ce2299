package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/internal/cookie"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// static returns an authorization request of the operator's own client, whose errors are redirected
// without a page.
func static(change ...string) url.Values {
	return authorizeQuery(append([]string{"client_id", "static"}, change...)...)
}

func TestIdentifyFailsToAPage(t *testing.T) {
	p := newRig(t).person()
	for _, tt := range []struct{ name, key, value string }{
		{"AS-40 no client", "client_id", ""},
		{"AS-40 unknown client", "client_id", "nobody"},
		{"AS-59 several registered, none named", "redirect_uri", ""},
		{"AS-53 another path", "redirect_uri", "http://127.0.0.1:33418/callback/x"},
		{"AS-53 trailing slash", "redirect_uri", testRedirect + "/"},
		{"AS-53 other case", "redirect_uri", "http://127.0.0.1:33418/Callback"},
		{"AS-53 extra query", "redirect_uri", testRedirect + "?x=1"},
		{"AS-55 localhost is not 127.0.0.1", "redirect_uri", "http://localhost:33418/callback"},
		{"AS-53 user information", "redirect_uri", "http://u:p@127.0.0.1:33418/callback"},
		{"AS-56 javascript", "redirect_uri", "javascript:alert(1)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pg := p.get("/authorize?" + static(tt.key, tt.value).Encode())
			if pg.status != 400 || pg.header.Get("Location") != "" ||
				!strings.HasPrefix(pg.header.Get("Content-Type"), "text/html") {
				t.Errorf("got %d %v", pg.status, pg.header)
			}
			if strings.Contains(pg.body, `href="javascript:`) {
				t.Error("the page has a live link to the refused URI")
			}
		})
	}
	t.Run("AS-09 two clients or two redirect URIs", func(t *testing.T) {
		for _, k := range []string{"client_id", "redirect_uri"} {
			v := static()
			v.Add(k, "other")
			if pg := p.get("/authorize?" + v.Encode()); pg.status != 400 || pg.header.Get("Location") != "" {
				t.Errorf("%s: got %d %v", k, pg.status, pg.header)
			}
		}
	})
	t.Run("AS-53 the page names what was sent and what is registered, of the operator's clients only what was sent",
		func(t *testing.T) {
			const sent = "http://127.0.0.1:1/other"
			pg := p.get("/authorize?" + static("client_id", "app", "redirect_uri", sent).Encode())
			if !strings.Contains(pg.body, sent) || !strings.Contains(pg.body, testRedirect) {
				t.Errorf("got %s", pg.body)
			}
			pg = p.get("/authorize?" + static("redirect_uri", sent).Encode())
			if !strings.Contains(pg.body, sent) || strings.Contains(pg.body, testRedirect) {
				t.Errorf("got %s", pg.body)
			}
		})
	t.Run("AS-40 a program that asks for JSON gets invalid_client as JSON", func(t *testing.T) {
		pg := p.get("/authorize?"+static("client_id", "nobody").Encode(), "Accept", "application/json")
		if pg.status != 400 || !strings.Contains(pg.body, `"error":"invalid_client"`) {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
}

func TestValidateFailsToTheRedirect(t *testing.T) {
	r := newRig(t)
	p := r.person()
	for _, tt := range []struct {
		name   string
		change []string
		code   oauth.Code
	}{
		{"AS-38 no response type", []string{"response_type", ""}, oauth.InvalidRequest},
		{"AS-03 RFC 6749 4.2: no implicit grant", []string{"response_type", "token"}, oauth.UnsupportedResponseType},
		{"AS-38 hybrid", []string{"response_type", "code id_token"}, oauth.UnsupportedResponseType},
		{"AS-61 no challenge", []string{"code_challenge", ""}, oauth.InvalidRequest},
		{"AS-63 no method means plain", []string{"code_challenge_method", ""}, oauth.InvalidRequest},
		{"AS-63 plain", []string{"code_challenge_method", "plain"}, oauth.InvalidRequest},
		{"AS-66 challenge too short", []string{"code_challenge", strings.Repeat("a", 42)}, oauth.InvalidRequest},
		{"AS-66 challenge too long", []string{"code_challenge", strings.Repeat("a", 129)}, oauth.InvalidRequest},
		{"AS-105 unknown resource", []string{"resource", "https://evil.example.com/"}, oauth.InvalidTarget},
		{"AS-104 resource with a fragment", []string{"resource", testResource + "#x"}, oauth.InvalidTarget},
		{"OAuth 2.1 4.1.1 unknown response mode", []string{"response_mode", "fragment"}, oauth.InvalidRequest},
		{"T19 request objects are refused", []string{"request_uri", "https://evil.example.com/r"},
			oauth.InvalidRequest},
		{"OIDC 3.1.2.6 prompt=none without a session", []string{"prompt", "none"}, oauth.LoginRequired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := responseOf(t, p.get("/authorize?"+static(tt.change...).Encode()))
			if got.Get("error") != string(tt.code) || got.Get("state") != "st-1" || got.Get("iss") != r.Issuer() ||
				got.Has("code") {
				t.Errorf("AS-41 AS-69: got %v, want %s", got, tt.code)
			}
			pg := p.get("/authorize?" + authorizeQuery(tt.change...).Encode())
			if pg.status != 400 || pg.header.Get("Location") != "" || !strings.Contains(pg.body, string(tt.code)) {
				t.Errorf("AS-60 a self-registered client: got %d %v, want a page that says %s", pg.status, pg.header,
					tt.code)
			}
		})
	}
	t.Run("AS-09 a repeated parameter", func(t *testing.T) {
		v := static()
		v.Add("scope", "other")
		if got := responseOf(t, p.get("/authorize?"+v.Encode())); got.Get("error") != "invalid_request" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-09 the same resource twice is tolerated", func(t *testing.T) {
		v := authorizeQuery()
		v.Add("resource", testResource+"/")
		if pg := p.get("/authorize?" + v.Encode()); pg.status != 200 {
			t.Errorf("got %d", pg.status)
		}
	})
}

func TestAuthorizationResponse(t *testing.T) {
	r := newRig(t)
	t.Run("AS-42 AS-43 AS-67 AS-68 code, state and iss once each, byte for byte", func(t *testing.T) {
		state := "vscode://x?a=b&c=%25+/==\"<é>"
		got := r.person().approve(authorizeQuery("state", state))
		for k, want := range map[string]string{"state": state, "iss": r.Issuer()} {
			if len(got[k]) != 1 || got.Get(k) != want {
				t.Errorf("%s: got %q, want %q", k, got[k], want)
			}
		}
		if len(got["code"]) != 1 || !strings.HasPrefix(got.Get("code"), grant.CodePrefix) {
			t.Errorf("code: got %q", got["code"])
		}
	})
	t.Run("AS-50 OAuth 2.1 4.1.2: the response has nothing of the challenge", func(t *testing.T) {
		q := authorizeQuery()
		for k, v := range r.person().approve(q) {
			if k != "code" && k != "state" && k != "iss" || strings.Contains(v[0], q.Get("code_challenge")) ||
				strings.Contains(v[0], testVerifier) {
				t.Errorf("%s: got %q", k, v)
			}
		}
	})
	t.Run("AS-37 OAuth 2.1 3.1: GET is accepted, POST is 405 with Allow", func(t *testing.T) {
		if pg := r.person().get("/authorize?" + authorizeQuery().Encode()); pg.status != 200 {
			t.Errorf("GET: got %d", pg.status)
		}
		if pg := r.person().post("/authorize", authorizeQuery()); pg.status != 405 || pg.header.Get("Allow") != "GET" {
			t.Errorf("POST: got %d, Allow %q", pg.status, pg.header.Get("Allow"))
		}
	})
	t.Run("AS-42 no state, none back", func(t *testing.T) {
		if got := r.person().approve(authorizeQuery("state", "")); got.Has("state") || !got.Has("code") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-44 the redirect URI keeps its own query", func(t *testing.T) {
		if got := r.person().approve(static("redirect_uri", "https://app.example.com/cb?a=1")); got.Get("a") != "1" ||
			!got.Has("code") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-54 another loopback port", func(t *testing.T) {
		if got := r.person().approve(authorizeQuery("redirect_uri", "http://127.0.0.1:51004/callback")); !got.Has(
			"code",
		) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-51 CL-47 AS-109 a minimal request of 2025-03-26", func(t *testing.T) {
		p := r.person()
		code := p.approve(authorizeQuery("scope", "", "resource", "", "state", "", "redirect_uri", "")).Get("code")
		status, out := p.token(codeForm(code, "resource", "", "redirect_uri", ""))
		if status != 200 || r.verified(t, out["access_token"].(string)).Audience != testResource {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("AS-41 denial", func(t *testing.T) {
		p := r.person()
		pg := p.login(authorizeQuery("prompt", "consent"))
		pg = p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"deny"}})
		if got := responseOf(t, pg); got.Get("error") != "access_denied" || got.Get("iss") != r.Issuer() ||
			got.Get("state") != "st-1" {
			t.Errorf("got %v", got)
		}
	})
}

func TestConsentIsRemembered(t *testing.T) {
	r := newRig(t)
	p := r.person()
	p.approve(authorizeQuery())
	t.Run("AS-74 the same request is answered without asking", func(t *testing.T) {
		if got := responseOf(t, p.get("/authorize?"+authorizeQuery().Encode())); !got.Has("code") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-74 another client is not", func(t *testing.T) {
		if pg := p.get("/authorize?" + static().Encode()); pg.status != 200 || !strings.Contains(pg.body, "Our App") {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("AS-114 more scopes ask again, and mark what is new", func(t *testing.T) {
		pg := p.get("/authorize?" + authorizeQuery("scope", "mcp notes:write").Encode())
		if pg.status != 200 || !strings.Contains(pg.body, "add notes") {
			t.Fatalf("got %d", pg.status)
		}
		got := responseOf(t, p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"approve"}}))
		if _, out := p.token(codeForm(got.Get("code"))); out["scope"] != "mcp notes:write" {
			t.Errorf("got %v", out)
		}
	})
	t.Run("CL-53 a client that leaves out what it has is answered, and keeps the approval of it", func(t *testing.T) {
		code := p.approve(authorizeQuery("scope", "notes:write")).Get("code")
		if status, out := p.token(codeForm(code)); status != 200 || out["scope"] != "notes:write" {
			t.Errorf("got %d %v", status, out)
		}
		if got := responseOf(t, p.get("/authorize?"+authorizeQuery("scope", "mcp").Encode())); !got.Has("code") {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-41 errors now go straight to the client", func(t *testing.T) {
		if got := responseOf(t,
			p.get("/authorize?"+authorizeQuery("code_challenge", "").Encode())); got.Get("error") != "invalid_request" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-74 another person is asked", func(t *testing.T) {
		if _, err := r.Users().Create(t.Context(), "bob", "bob's long password", false); err != nil {
			t.Fatal(err)
		}
		bob := r.person()
		pg := bob.get("/authorize?" + authorizeQuery().Encode())
		pg = bob.post("/login",
			url.Values{"step": {pg.step(t)}, "username": {"bob"}, "password": {"bob's long password"}})
		if pg = bob.get(pg.header.Get("Location")); pg.status != 200 || !strings.Contains(pg.body, `value="approve"`) {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("OAuth 2.1 4.3.3 a disabled account ends its sessions and grants", func(t *testing.T) {
		tokens := p.signIn()
		if err := r.Users().Disable(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		if pg := p.get("/authorize?" + authorizeQuery().Encode()); !strings.Contains(pg.body, `name="password"`) {
			t.Errorf("got %d, want the login page", pg.status)
		}
		status, out := p.token(refreshForm(tokens["refresh_token"]))
		wantError(t, status, out, 400, oauth.InvalidGrant)
	})
}

func TestPagesAreSafe(t *testing.T) {
	r := newRig(t)
	evil := storage.Client{
		ID: "evil", Name: `<script>alert(1)</script>`, RedirectURIs: []string{"https://evil.example.com/cb"},
		GrantTypes: []string{oauth.GrantCode}, AuthMethod: "none", Source: storage.SourceDynamic, CreatedAt: r.now()}
	if err := r.store.PutClient(t.Context(), evil); err != nil {
		t.Fatal(err)
	}
	query := authorizeQuery("client_id", "evil", "redirect_uri", "https://evil.example.com/cb", "state", `"><script>`)
	t.Run("AS-48 AS-71 hostile names are inert and the host is shown", func(t *testing.T) {
		p := r.person()
		pg := p.login(query)
		if strings.Contains(pg.body, "<script>") || !strings.Contains(pg.body, "evil.example.com") ||
			!strings.Contains(pg.body, "mcp.example.com") {
			t.Errorf("got %s", pg.body)
		}
	})
	t.Run("AS-46 AS-10 SP-26 no framing, no CORS, no script", func(t *testing.T) {
		for _, path := range []string{"/authorize?" + query.Encode(), "/authorize?client_id=nobody", "/", "/setup"} {
			h := r.person().get(path, "Origin", "https://evil.example.com").header
			csp := h.Get("Content-Security-Policy")
			if !strings.Contains(csp, "frame-ancestors 'none'") || h.Get("X-Frame-Options") != "DENY" ||
				strings.Contains(csp, "unsafe") ||
				h.Get("Access-Control-Allow-Origin") != "" || !strings.Contains(h.Get("Cache-Control"), "no-store") {
				t.Errorf("%s: got %v", path, h)
			}
		}
	})
	t.Run("AS-47 a form replayed from another browser is refused", func(t *testing.T) {
		victim, attacker := r.person(), r.person()
		attackers := attacker.login(authorizeQuery())
		victim.login(authorizeQuery())
		pg := victim.post("/consent", url.Values{"step": {consentStep(t, attackers)}, "decision": {"approve"}})
		if pg.status != 400 || pg.header.Get("Location") != "" {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
		login := attacker.get("/authorize?prompt=login&" + authorizeQuery().Encode()).step(t)
		if pg := r.person().post("/login",
			url.Values{"step": {login}, "username": {"alice"},
				"password": {"correct horse battery"}}); pg.status != 400 {
			t.Errorf("login: got %d", pg.status)
		}
	})
	t.Run("AS-47 a post from another site is refused by its headers", func(t *testing.T) {
		p := r.person()
		pg := p.login(authorizeQuery())
		form := url.Values{"step": {consentStep(t, pg)}, "decision": {"approve"}}
		for _, h := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example.com"}} {
			if pg := p.post("/consent", form, h...); pg.status != http.StatusForbidden {
				t.Errorf("%v: got %d", h, pg.status)
			}
		}
	})
	t.Run("AS-47 a step of one page is no good on another", func(t *testing.T) {
		p := r.person()
		step := p.get("/authorize?" + authorizeQuery().Encode()).step(t)
		if pg := p.post("/consent", url.Values{"step": {step}, "decision": {"approve"}}); pg.status != 400 {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("AS-75 cookies are HttpOnly and SameSite=Lax", func(t *testing.T) {
		p := r.person()
		pg := p.get("/authorize?" + authorizeQuery().Encode())
		pg2 := p.post("/login",
			url.Values{"step": {pg.step(t)}, "username": {"alice"}, "password": {"correct horse battery"}})
		for _, c := range append(pg.header.Values("Set-Cookie"), pg2.header.Values("Set-Cookie")...) {
			if !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Lax") {
				t.Errorf("got %q", c)
			}
		}
	})
	t.Run("AS-06 SP-28 nothing secret reaches the log", func(t *testing.T) {
		out := r.person().signIn()
		for _, s := range []string{
			"correct horse battery", testVerifier, testSecret, out["access_token"].(string),
			out["refresh_token"].(string), grant.CodePrefix, grant.RefreshPrefix,
		} {
			if strings.Contains(r.log.String(), s) {
				t.Errorf("the log holds %q", s)
			}
		}
	})
}

// AS-47, protocol 2.1: cookies of an earlier installation on the same host and port, or under
// another master key, do not stop a user.
func TestUnreadableCookies(t *testing.T) {
	r := newRig(t)
	p := r.person()
	u, _ := url.Parse(r.http.URL)
	var old []*http.Cookie
	for _, name := range []string{"browser", "session", "device"} {
		old = append(old, &http.Cookie{Name: cookie.Shared(r.http.URL, name), Value: "x", Path: "/"},
			&http.Cookie{Name: cookie.Name(r.http.URL, name), Value: "x", Path: "/"})
	}
	p.client.Jar.SetCookies(u, old)
	pg := p.get("/authorize?" + authorizeQuery().Encode())
	if got := pg.header.Values("Set-Cookie"); len(got) != 1 {
		t.Errorf("the page sets %d cookies, want 1: %v", len(got), got)
	}
	if code := p.approve(authorizeQuery()).Get("code"); code == "" {
		t.Error("no code")
	}
}

func TestLogin(t *testing.T) {
	r := newRig(t)
	p := r.person()
	t.Run("a wrong password says nothing about which half was wrong", func(t *testing.T) {
		step := p.get("/authorize?" + authorizeQuery().Encode()).step(t)
		a := p.post("/login", url.Values{"step": {step}, "username": {"alice"}, "password": {"wrong"}})
		b := p.post("/login", url.Values{"step": {step}, "username": {"nobody"}, "password": {"wrong"}})
		if a.status != 401 || b.status != 401 || !strings.Contains(a.body, "not right") ||
			!strings.Contains(b.body, "not right") {
			t.Errorf("got %d and %d", a.status, b.status)
		}
	})
	t.Run("AS-45 the answer to a login is 303", func(t *testing.T) {
		if pg := p.login(authorizeQuery()); pg.status != 200 {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("signing out ends the session", func(t *testing.T) {
		pg := p.get("/")
		if pg = p.post("/logout", url.Values{"step": {pg.step(t)}}); pg.status != 200 {
			t.Fatalf("got %d", pg.status)
		}
		if pg := p.get("/authorize?" + authorizeQuery().Encode()); !strings.Contains(pg.body, `name="password"`) {
			t.Error("still signed in")
		}
	})
}
