package provider

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// web is a transport that simulates the internet, by URL without the query.
type web map[string]func(r *http.Request) (int, any)

// RoundTrip implements http.RoundTripper.
func (w web) RoundTrip(r *http.Request) (*http.Response, error) {
	at := *r.URL
	at.RawQuery = ""
	answer, ok := w[at.String()]
	if !ok {
		return nil, fmt.Errorf("no server is at %s", at.String())
	}
	status, body := answer(r)
	text, ok := body.(string)
	if !ok {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = string(encoded)
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

func says(body any) func(*http.Request) (int, any) {
	return func(*http.Request) (int, any) { return http.StatusOK, body }
}

// discoverable serves typical metadata of an issuer.
func discoverable(issuer, authorize string, scopes ...string) web {
	return web{strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration": says(map[string]any{
		"issuer": issuer, "authorization_endpoint": authorize, "token_endpoint": issuer + "/token",
		"jwks_uri": issuer + "/keys", "scopes_supported": scopes,
	})}
}

func appleKey(t *testing.T) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func TestPresetsNeedOnlyIDAndSecret(t *testing.T) {
	for _, id := range []string{"google", "github", "gitlab", "slack", "discord"} {
		if _, err := New(Settings{Type: id, ClientID: "c", ClientSecret: "s"}, Options{}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestAuthorizationRequests checks the authorization request to each provider.
func TestAuthorizationRequests(t *testing.T) {
	_, key := appleKey(t)
	const googleIssuer, entraAt = "https://accounts.google.com", "https://login.microsoftonline.com/organizations/v2.0"
	for _, tt := range []struct {
		c     Settings
		web   web
		q     AuthorizationRequest
		host  string
		want  url.Values // in addition to the common parameters
		scope string
	}{
		{
			c:   Settings{Type: "google", Domains: []string{"example.com"}},
			web: discoverable(googleIssuer, googleIssuer+"/o/oauth2/v2/auth", "openid"),
			q:   AuthorizationRequest{LoginHint: "a@example.com"}, host: "accounts.google.com",
			want: url.Values{
				"access_type": {"offline"}, "prompt": {"consent"}, "hd": {"example.com"},
				"login_hint": {"a@example.com"}}, scope: "openid profile email",
		},
		{
			c: Settings{Type: "google"}, web: discoverable(googleIssuer, googleIssuer+"/o/oauth2/v2/auth", "openid"),
			q:    AuthorizationRequest{Fresh: true, Scopes: oauth.Scopes{"https://www.googleapis.com/auth/calendar"}},
			host: "accounts.google.com",
			want: url.Values{
				"access_type": {"offline"}, "prompt": {"select_account consent"},
				"include_granted_scopes": {"true"},
			},
			scope: "openid profile email https://www.googleapis.com/auth/calendar",
		},
		{
			c:    Settings{Type: "google", Detached: true},
			web:  discoverable(googleIssuer, googleIssuer+"/o/oauth2/v2/auth", "openid"),
			host: "accounts.google.com",
			want: url.Values{}, scope: "openid profile email",
		},
		{
			c:    Settings{Type: "google", Parameters: map[string]string{"prompt": ""}},
			web:  discoverable(googleIssuer, googleIssuer+"/o/oauth2/v2/auth", "openid"),
			host: "accounts.google.com",
			want: url.Values{"access_type": {"offline"}}, scope: "openid profile email",
		},
		{c: Settings{Type: "github"}, host: "github.com", q: AuthorizationRequest{LoginHint: "alice"},
			want: url.Values{"login": {"alice"}}, scope: "read:user user:email"},
		{
			c: Settings{Type: "github", Memberships: true}, q: AuthorizationRequest{Fresh: true}, host: "github.com",
			want: url.Values{"prompt": {"select_account"}}, scope: "read:user user:email read:org",
		},
		{c: Settings{Type: "github", BaseURL: "https://git.example.com/"}, host: "git.example.com",
			want: url.Values{}, scope: "read:user user:email"},
		{
			c:    Settings{Type: "gitlab"},
			web:  discoverable("https://gitlab.com", "https://gitlab.com/oauth/authorize", "openid"),
			q:    AuthorizationRequest{Fresh: true},
			host: "gitlab.com", want: url.Values{"prompt": {"login"}, "max_age": {"0"}}, scope: "openid profile email",
		},
		{
			c: Settings{Type: "entra", Tenant: "organizations"}, host: "login.microsoftonline.com",
			q: AuthorizationRequest{Fresh: true},
			web: web{entraAt + "/.well-known/openid-configuration": says(map[string]any{
				"issuer":                 "https://login.microsoftonline.com/{tenantid}/v2.0",
				"authorization_endpoint": "https://login.microsoftonline.com/organizations/oauth2/v2.0/authorize",
				"token_endpoint":         "https://login.microsoftonline.com/t",
				"jwks_uri":               "https://login.microsoftonline.com/k",
				"scopes_supported":       []string{"openid", "offline_access"},
			})},
			want: url.Values{"prompt": {"login"}}, scope: "openid profile email offline_access",
		},
		{
			c: Settings{Type: "okta", Issuer: "https://acme.okta.com"},
			web: discoverable("https://acme.okta.com", "https://acme.okta.com/oauth2/v1/authorize", "openid",
				"offline_access"),
			host: "acme.okta.com", want: url.Values{}, scope: "openid profile email offline_access",
		},
		{
			c: Settings{Type: "auth0", Issuer: "https://acme.eu.auth0.com"},
			web: discoverable("https://acme.eu.auth0.com/", "https://acme.eu.auth0.com/authorize", "openid",
				"offline_access"),
			host: "acme.eu.auth0.com", want: url.Values{}, scope: "openid profile email offline_access",
		},
		{
			c: Settings{Type: "keycloak", Issuer: "https://sso.example.com/realms/acme"},
			web: discoverable("https://sso.example.com/realms/acme",
				"https://sso.example.com/realms/acme/protocol/openid-connect/auth", "openid", "offline_access"),
			q:    AuthorizationRequest{Fresh: true},
			host: "sso.example.com", want: url.Values{"prompt": {"login"}, "max_age": {"0"}},
			scope: "openid profile email",
		},
		{
			c:    Settings{Type: "slack", Organizations: []string{"T0RR"}},
			web:  discoverable("https://slack.com", "https://slack.com/openid/connect/authorize", "openid"),
			host: "slack.com", want: url.Values{"team": {"T0RR"}}, scope: "openid profile email",
		},
		{c: Settings{Type: "discord"}, host: "discord.com", want: url.Values{"prompt": {"none"}},
			scope: "identify email"},
		{
			c: Settings{Type: "discord", Memberships: true}, q: AuthorizationRequest{Fresh: true}, host: "discord.com",
			want: url.Values{"prompt": {"consent"}}, scope: "identify email guilds",
		},
		{
			c: Settings{Type: "apple", Key: key, KeyID: "K", TeamID: "T"},
			web: discoverable("https://appleid.apple.com", "https://appleid.apple.com/auth/authorize", "openid",
				"email", "name"),
			host: "appleid.apple.com", want: url.Values{"response_mode": {"form_post"}}, scope: "openid email name",
		},
	} {
		t.Run("AS-225 "+tt.c.Type+" "+tt.want.Encode(), func(t *testing.T) {
			tt.c.ClientID = "the-client"
			if tt.c.Type != "apple" {
				tt.c.ClientSecret = "secret"
			}
			c := connectIn(t, tt.c, Options{Transport: tt.web})
			tt.q.State, tt.q.Nonce, tt.q.Verifier, tt.q.RedirectURI = "s", "n", strings.Repeat("v", 43), callback
			at, err := c.AuthorizeURL(t.Context(), tt.q)
			if err != nil {
				t.Fatal(err)
			}
			u, _ := url.Parse(at)
			got := u.Query()
			for _, always := range []string{
				"state", "client_id", "redirect_uri", "response_type", "code_challenge", "code_challenge_method",
			} {
				if got.Get(always) == "" {
					t.Errorf("no %s", always)
				}
				got.Del(always)
			}
			if traits, _ := TraitsOf(tt.c.Type); (got.Get("nonce") == "n") != traits.OpenID {
				t.Errorf("nonce %q", got.Get("nonce"))
			}
			got.Del("nonce")
			if got.Get("scope") != tt.scope {
				t.Errorf("scope: got %q, want %q", got.Get("scope"), tt.scope)
			}
			got.Del("scope")
			if !reflect.DeepEqual(got, tt.want) || u.Host != tt.host ||
				!strings.Contains(c.AuthorizationEndpoint(), "//"+tt.host+"/") {
				t.Errorf("got %v at %s (%s), want %v at %s", got, u.Host, c.AuthorizationEndpoint(), tt.want, tt.host)
			}
		})
	}
}

// TestEntra: one address serves many tenants, and each has its issuer.
func TestEntra(t *testing.T) {
	const mine, other = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
	for _, tt := range []struct {
		name             string
		tenant           string
		issuer, iss, tid string // %s: the provider's URL
		want             error
	}{
		{"single tenant", mine, "%s/" + mine + "/v2.0", "%s/" + mine + "/v2.0", mine, nil},
		{"single tenant, metadata of another", mine, "%s/" + other + "/v2.0", "%s/" + other + "/v2.0", other,
			ErrGarbage},
		{"single tenant, token of another", mine, "%s/" + mine + "/v2.0", "%s/" + other + "/v2.0", other, ErrGarbage},
		{"single tenant, a template", mine, "%s/{tenantid}/v2.0", "%s/" + mine + "/v2.0", mine, ErrGarbage},
		{"tenant named by its domain", "acme.onmicrosoft.com", "%s/" + mine + "/v2.0", "%s/" + mine + "/v2.0", mine,
			nil},
		{"many tenants", "organizations", "%s/{tenantid}/v2.0", "%s/" + mine + "/v2.0", mine, nil},
		{"many tenants, issuer and tenant differ", "common", "%s/{tenantid}/v2.0", "%s/" + mine + "/v2.0", other,
			ErrGarbage},
		{"many tenants, an invalid tenant", "common", "%s/{tenantid}/v2.0", "%s/x/../y/v2.0", "x/../y", ErrGarbage},
		{"many tenants, no tenant", "common", "%s/{tenantid}/v2.0", "%s/{tenantid}/v2.0", "", ErrGarbage},
		{"many tenants, a token without a tenant", "common", "%s/{tenantid}/v2.0", "", mine, ErrGarbage},
		{"single tenant, a token without a tenant, about another", mine, "%s/" + mine + "/v2.0", "", other, ErrGarbage},
		{"many tenants, issuer elsewhere", "common", "https://evil.example.com/{tenantid}/v2.0",
			"https://evil.example.com/" + mine + "/v2.0", mine, ErrGarbage},
		{"personal accounts", "consumers", "%s/" + consumersTenant + "/v2.0", "%s/" + consumersTenant + "/v2.0",
			consumersTenant, nil},
	} {
		t.Run("AS-225 Entra: "+tt.name, func(t *testing.T) {
			u := fakeidp.Start(t)
			at := func(s string) string { return strings.ReplaceAll(s, "%s", u.URL) }
			u.Behave(func(b *fakeidp.Behaviour) {
				b.EditMetadata = func(m map[string]any) {
					m["issuer"] = at(tt.issuer)
					delete(m, "authorization_response_iss_parameter_supported")
				}
				b.EditIDToken = func(_, c map[string]any) {
					c["iss"], c["tid"] = at(tt.iss), tt.tid
					if tt.iss == "" {
						delete(c, "iss")
					}
				}
				b.NoResponseIssuer = tt.want != nil // only the token is wrong
				if tt.want == nil {
					b.ResponseIssuer = at(tt.iss)
				}
			})
			c := connect(t,
				Settings{Type: "entra", Tenant: tt.tenant, BaseURL: u.URL, ClientID: u.ClientID,
					ClientSecret: u.ClientSecret})
			have, p, err := travel(t, c, u, nil)
			wantError(t, err, tt.want)
			if tt.want != nil {
				return
			}
			if p.Subject != tt.tid+"/"+fakeidp.Alice.Subject || claim.True(p.Claims, "email_verified") {
				t.Errorf("got subject %q, email_verified %v", p.Subject, p.Claims["email_verified"])
			}
			if _, err := c.Inspect(t.Context(), have); u.Calls(fakeidp.UserInfo)+u.Calls(fakeidp.Introspect) != 0 {
				t.Error("an access token was shown around")
			} else {
				wantError(t, err, ErrUnsupported)
			}
			_, again, err := c.Refresh(t.Context(), have)
			if err != nil || again == nil || again.Subject != p.Subject {
				t.Errorf("refresh: %v", err)
			}
			out, err := c.VerifyLogout(t.Context(),
				u.LogoutToken(fakeidp.Alice.Subject, "", func(_, claims map[string]any) {
					claims["iss"], claims["tid"] = at(tt.iss), tt.tid
				}))
			if err != nil || out.Subject != p.Subject {
				t.Errorf("a logout token is about %q: %v", out.Subject, err)
			}
		})
	}
}

func TestEntraResponseIssuer(t *testing.T) {
	const template, tenant = "https://login.microsoftonline.com/{tenantid}/v2.0", "11111111-2222-3333-4444-555555555555"
	for iss, want := range map[string]bool{
		"https://login.microsoftonline.com/" + tenant + "/v2.0":            true,
		"https://login.microsoftonline.com/" + tenant + "/v2.0/":           false,
		"https://login.microsoftonline.com/x/v2.0":                         false,
		"https://login.microsoftonline.com//v2.0":                          false,
		"https://login.microsoftonline.com/v2.0":                           false,
		"https://evil.example.com/" + tenant + "/v2.0":                     false,
		"https://login.microsoftonline.com/" + tenant + "/../../evil/v2.0": false,
	} {
		if got := matchesTemplate(template, iss); got != want {
			t.Errorf("AS-225 %s: got %v", iss, got)
		}
	}
}

func TestApple(t *testing.T) {
	key, text := appleKey(t)
	var form url.Values
	world := discoverable("https://appleid.apple.com", "https://appleid.apple.com/auth/authorize", "openid", "email",
		"name")
	world["https://appleid.apple.com/token"] = func(r *http.Request) (int, any) {
		_ = r.ParseForm()
		form = r.PostForm
		return http.StatusBadRequest, map[string]string{"error": "invalid_grant"}
	}
	c := connectIn(t, Settings{Type: "apple", ClientID: "com.example.web", TeamID: "TEAM", KeyID: "KEY", Key: text},
		Options{Transport: world})
	_, _, err := c.Exchange(t.Context(), "code", "verifier", "nonce", callback)
	wantError(t, err, ErrDenied)
	token, err := jwt.ParseSigned(form.Get("client_secret"), []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	var claims jwt.Claims
	if err := token.Claims(key.Public(), &claims); err != nil {
		t.Fatal(err)
	}
	if claims.Issuer != "TEAM" || claims.Subject != "com.example.web" ||
		!slices.Equal(claims.Audience, jwt.Audience{"https://appleid.apple.com"}) || token.Headers[0].KeyID != "KEY" {
		t.Errorf("got %+v", claims)
	}
	if left := time.Until(claims.Expiry.Time()); left <= 0 || left > 5*time.Minute {
		t.Errorf("good for %v", left)
	}
	if form.Get("client_id") != "com.example.web" || form.Get("code_verifier") != "verifier" {
		t.Errorf("got %v", form)
	}
}

func TestFormPost(t *testing.T) {
	u := fakeidp.Start(t)
	c := toFake(u)
	c.Parameters = map[string]string{"response_mode": "form_post"}
	at, err := connect(t, c).AuthorizeURL(t.Context(),
		AuthorizationRequest{
			State: "s", Nonce: "n", Verifier: strings.Repeat("v", 43), RedirectURI: "https://a.example.com/cb",
		})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body),
		`method="post" action="https://a.example.com/cb"`) || !strings.Contains(string(body), `name="code"`) {
		t.Errorf("got %s", body)
	}
}

// TestSlack: errors have status 200, and user IDs belong to a workspace.
func TestSlack(t *testing.T) {
	world := discoverable("https://slack.com", "https://slack.com/openid/connect/authorize", "openid")
	at := "https://slack.com/.well-known/openid-configuration"
	world[at] = says(map[string]any{
		"issuer": "https://slack.com", "authorization_endpoint": "https://slack.com/openid/connect/authorize",
		"token_endpoint":    "https://slack.com/api/openid.connect.token",
		"userinfo_endpoint": "https://slack.com/api/openid.connect.userInfo",
		"jwks_uri":          "https://slack.com/openid/connect/keys",
	})
	c := connectIn(t,
		Settings{Type: "slack", ClientID: "c", ClientSecret: "s", Memberships: true, Organizations: []string{"T0RR"}},
		Options{Transport: world})
	for _, tt := range []struct {
		answer map[string]any
		want   error
	}{
		{map[string]any{"ok": true, "sub": "U0R7", "https://slack.com/team_id": "T0RR"}, nil},
		{map[string]any{"ok": true, "sub": "U0R7"}, ErrGarbage},
		{map[string]any{"ok": false, "error": "token_revoked"}, ErrDenied},
		{map[string]any{"ok": false, "error": "account_inactive"}, ErrDenied},
		{map[string]any{"ok": false, "error": "ratelimited"}, ErrUnreachable},
		{map[string]any{"ok": false, "error": "missing_scope"}, ErrMisconfigured},
		{map[string]any{"ok": false}, ErrGarbage},
	} {
		t.Run(fmt.Sprintf("AS-218 Slack: %v", tt.answer), func(t *testing.T) {
			world["https://slack.com/api/openid.connect.userInfo"] = says(tt.answer)
			p, err := c.Inspect(t.Context(), Tokens{Access: "a"})
			wantError(t, err, tt.want)
			if tt.want == nil &&
				(p.Subject != "T0RR/U0R7" || !slices.Equal(claim.List(p.Claims, "organizations"), []string{"T0RR"})) {
				t.Errorf("got %q, %v", p.Subject, p.Claims)
			}
		})
	}
	world["https://slack.com/api/openid.connect.token"] = says(map[string]any{
		"ok": false, "error": "invalid_refresh_token",
	})
	_, _, err := c.Refresh(t.Context(), Tokens{Access: "a", Refresh: "r"})
	wantError(t, err, ErrDenied)
	world["https://slack.com/api/auth.revoke"] = says(map[string]any{"ok": true, "revoked": true})
	wantError(t, c.Revoke(t.Context(), Tokens{Access: "a"}), nil)
}

func TestDiscord(t *testing.T) {
	var asked int
	world := web{
		"https://discord.com/api/users/@me": says(map[string]any{
			"id": "80351110224678912", "username": "nelly", "global_name": "Nelly", "email": "nelly@example.com",
			"verified": true, "organizations": []string{"forged"},
		}),
		"https://discord.com/api/users/@me/guilds": func(*http.Request) (int, any) {
			asked++
			return http.StatusOK, slices.Repeat([]map[string]any{{"id": "81384788765712384"}}, 150)
		},
	}
	for _, tt := range []struct {
		name        string
		memberships bool
		member      bool // the listed guild is in the claims
		asks        int
	}{
		{"no rule about guilds, nothing is asked", false, false, 0},
		{"what the account says of itself is no guild", true, true, 1},
	} {
		t.Run("Discord: "+tt.name, func(t *testing.T) {
			asked = 0
			c := connectIn(t,
				Settings{Type: "discord", ClientID: "c", ClientSecret: "s", Memberships: tt.memberships},
				Options{Transport: world})
			p, err := c.Inspect(t.Context(), Tokens{Access: "a"})
			if err != nil {
				t.Fatal(err)
			}
			if p.Subject != "80351110224678912" || p.Label != "nelly" || !claim.True(p.Claims, "email_verified") ||
				asked != tt.asks {
				t.Errorf("got %q %q, %v, asked %d times", p.Subject, p.Label, p.Claims, asked)
			}
			guilds := claim.List(p.Claims, "organizations")
			if slices.Contains(guilds, "forged") || slices.Contains(guilds, "81384788765712384") != tt.member {
				t.Errorf("got %v", p.Claims)
			}
		})
	}
}
