package authserver

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	thereIssuer   = "https://as.partner.example"
	thereResource = "https://mcp.partner.example/mcp"
)

// withAudience returns a rig with a client of the operator that signs users in, another such
// client, and an audience for assertions of the first.
func withAudience(t *testing.T, change ...func(*Config)) *person {
	t.Helper()
	r := newRig(t, change...)
	r.addAudience()
	return r.person()
}

// addAudience adds these clients and the audience.
func (r *rig) addAudience() {
	t := r.t
	t.Helper()
	hash := storage.Hash(secrets.Hash(testSecret))
	for _, id := range []string{"desk", "other"} {
		c := storage.Client{
			ID: id, Name: "Desk", RedirectURIs: []string{testRedirect}, Scopes: oauth.Scopes{"openid"},
			GrantTypes: []string{oauth.GrantCode, oauth.GrantRefresh}, AuthMethod: "client_secret_basic",
			SecretHash: &hash, Source: storage.SourceStatic, CreatedAt: r.now(),
		}
		if err := r.store.PutClient(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.store.AddAudience(t.Context(), storage.Audience{
		Issuer: thereIssuer, Resources: []string{thereResource}, Scopes: oauth.Scopes{"read", "write"},
		Clients:   []storage.AudienceClient{{ID: "desk", There: "desk-there"}},
		CreatedAt: r.now(),
	}); err != nil {
		t.Fatal(err)
	}
}

func signInQuery(change ...string) url.Values {
	return authorizeQuery(append([]string{
		"client_id", "desk", "resource", "", "scope", "openid profile", "nonce", "n-0S6_WzA2Mj",
	}, change...)...)
}

var asDesk = []string{"Authorization", basic("desk", testSecret)}

// identified signs the user in for a client, and returns the token response.
func (p *person) identified(query url.Values) map[string]any {
	p.t.Helper()
	form := codeForm(p.approve(query).Get("code"), "client_id", "", "resource", "")
	status, out := p.token(form, "Authorization", basic(query.Get("client_id"), testSecret))
	if status != http.StatusOK {
		p.t.Fatalf("got %d %v", status, out)
	}
	return out
}

func idjagForm(token any, change ...string) url.Values {
	v := url.Values{
		"grant_type": {oauth.GrantTokenExchange}, "requested_token_type": {oauth.TokenTypeIDJAG},
		"audience": {thereIssuer}, "resource": {thereResource}, "scope": {"read"},
		"subject_token": {token.(string)}, "subject_token_type": {oauth.TokenTypeID},
	}
	for i := 0; i+1 < len(change); i += 2 {
		if v.Set(change[i], change[i+1]); change[i+1] == "" {
			v.Del(change[i])
		}
	}
	return v
}

// jwtOf returns the header and the claims of a token.
func jwtOf(t *testing.T, token any) (header, claims map[string]any) {
	t.Helper()
	part := strings.Split(token.(string), ".")
	for i, into := range []*map[string]any{&header, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(part[i])
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return header, claims
}

func wantClaims(t *testing.T, got map[string]any, want map[string]any, alsoThere ...string) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: got %v, want %v", name, got[name], value)
		}
	}
	for _, name := range alsoThere {
		if got[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	if len(got) != len(want)+len(alsoThere) {
		t.Errorf("got the claims %v", got)
	}
}

func TestAS244IDTokens(t *testing.T) {
	t.Run("AS-244 a client that the operator registered for it gets a minimal ID token", func(t *testing.T) {
		p := withAudience(t)
		out := p.identified(signInQuery())
		header, claims := jwtOf(t, out["id_token"])
		if header["typ"] != "JWT" || out["scope"] != "openid" {
			t.Errorf("got %v and the scope %v", header, out["scope"])
		}
		wantClaims(t, claims, map[string]any{"iss": p.http.URL, "aud": "desk", "nonce": "n-0S6_WzA2Mj"},
			"sub", "exp", "iat", "jti", "auth_time", "amr")
		_, access := jwtOf(t, out["access_token"])
		if access["aud"] == testResource {
			t.Error("the access token is for an MCP server")
		}
		if pg := p.get("/account"); pg.status != http.StatusOK {
			t.Errorf("the account page: got %d", pg.status)
		}
	})
	t.Run("PE-13: that the client learns who the person is stands in their language", func(t *testing.T) {
		p := withAudience(t)
		p.identified(signInQuery())
		for language, words := range map[string]string{"de": "Wissen, wer Sie sind", "en": "Know who you are"} {
			query := signInQuery("prompt", "consent", "ui_locales", language)
			p.get("/authorize?"+query.Encode()).has(t, http.StatusOK, words)
			p.get("/account?ui_locales="+language, "Accept-Language", language).has(t, http.StatusOK, words)
		}
	})
	t.Run("AS-244 no other client gets one", func(t *testing.T) {
		p := withAudience(t)
		for _, query := range []url.Values{
			authorizeQuery("scope", "openid mcp", "nonce", "n"),
			authorizeQuery("scope", "openid", "resource", ""),
		} {
			_, out := p.token(codeForm(p.approve(query).Get("code")))
			if out["access_token"] == nil || out["id_token"] != nil {
				t.Errorf("%v: got %v", query, out)
			}
		}
		out := p.identified(signInQuery("resource", testResource, "scope", "openid mcp"))
		if out["id_token"] != nil || out["scope"] != "mcp" {
			t.Errorf("for an MCP server: got %v", out)
		}
	})
	t.Run("AS-244 a nonce that is too long, or twice, is refused", func(t *testing.T) {
		p := withAudience(t)
		if got := p.approve(signInQuery("nonce", strings.Repeat("n", 129))).Get("error"); got != "invalid_request" {
			t.Errorf("got %q", got)
		}
		twice := p.get("/authorize?nonce=b&" + signInQuery().Encode())
		if got := responseOf(t, twice).Get("error"); got != "invalid_request" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("AS-244 a code whose nonce was changed is not known", func(t *testing.T) {
		p := withAudience(t)
		code := p.approve(signInQuery()).Get("code")
		head, _, _ := strings.Cut(code, ".")
		for _, changed := range []string{head, head + ".AAAA"} {
			status, out := p.token(codeForm(changed, "client_id", "", "resource", ""), asDesk...)
			wantError(t, status, out, 400, oauth.InvalidGrant)
		}
	})
}

func TestAS196IdentityAssertions(t *testing.T) {
	t.Run("AS-196 EMA 4: a sign-in is exchanged for an assertion to an audience of the list", func(t *testing.T) {
		p := withAudience(t)
		out := p.identified(signInQuery("scope", "openid offline_access"))
		for kind, token := range map[string]any{
			oauth.TokenTypeID: out["id_token"], oauth.TokenTypeRefresh: out["refresh_token"],
		} {
			status, got := p.token(idjagForm(token, "subject_token_type", kind), asDesk...)
			if status != http.StatusOK || got["issued_token_type"] != oauth.TokenTypeIDJAG ||
				got["token_type"] != "N_A" || got["expires_in"] != 300.0 || got["scope"] != "read" {
				t.Fatalf("%s: got %d %v", kind, status, got)
			}
			header, claims := jwtOf(t, got["access_token"])
			if header["typ"] != "oauth-id-jag+jwt" || header["kid"] == nil {
				t.Errorf("got %v", header)
			}
			_, id := jwtOf(t, out["id_token"])
			wantClaims(t, claims, map[string]any{
				"iss": p.http.URL, "aud": thereIssuer, "client_id": "desk-there", "resource": thereResource,
				"scope": "read", "sub": id["sub"], "auth_time": id["auth_time"],
			}, "jti", "exp", "iat", "amr")
			if claims["exp"].(float64)-claims["iat"].(float64) != 300 {
				t.Errorf("got %v", claims)
			}
		}
	})
	t.Run("AS-194 with a DPoP proof, an assertion is bound to the key", func(t *testing.T) {
		p := withAudience(t)
		token, s := p.identified(signInQuery())["id_token"], newSigner(t)
		status, out := p.token(idjagForm(token), append([]string{"DPoP", p.proof(s)}, asDesk...)...)
		if status != http.StatusOK || out["token_type"] != "N_A" {
			t.Fatalf("got %d %v", status, out)
		}
		_, claims := jwtOf(t, out["access_token"])
		if cnf, _ := claims["cnf"].(map[string]any); cnf["jkt"] != s.Thumbprint() {
			t.Errorf("got %v, want %s", claims["cnf"], s.Thumbprint())
		}
	})
	t.Run("AS-244 nothing is asserted beyond the operator's list", func(t *testing.T) {
		p := withAudience(t)
		token := p.identified(signInQuery())["id_token"]
		for _, tt := range []struct {
			name, param, value string
			code               oauth.Code
		}{
			{"a foreign audience", "audience", "https://evil.example", oauth.InvalidTarget},
			{"no audience", "audience", "", oauth.InvalidTarget},
			{"ourselves", "audience", p.http.URL, oauth.InvalidTarget},
			{"a resource of another audience", "resource", testResource, oauth.InvalidTarget},
			{"no resource URI", "resource", "mcp", oauth.InvalidTarget},
			{"a scope that is not listed", "scope", "admin", oauth.InvalidScope},
			{"an actor", "actor_token", "x", oauth.InvalidRequest},
			{"an access token", "subject_token_type", oauth.TokenTypeAccess, oauth.InvalidRequest},
			{"no token", "subject_token", "", oauth.InvalidRequest},
			{"no token of ours", "subject_token", "e30.e30.e30", oauth.InvalidGrant},
		} {
			status, out := p.token(idjagForm(token, tt.param, tt.value), asDesk...)
			if wantError(t, status, out, 400, tt.code); t.Failed() {
				t.Fatal(tt.name)
			}
		}
		status, out := p.token(idjagForm(token, "scope", "read admin"), asDesk...)
		if status != http.StatusOK || out["scope"] != "read" {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("AS-244 the clients are those of the operator's list, with credentials", func(t *testing.T) {
		p := withAudience(t)
		token := p.identified(signInQuery())["id_token"]
		status, out := p.token(idjagForm(token), "Authorization", basic("other", testSecret))
		wantError(t, status, out, 400, oauth.InvalidTarget)
		status, out = p.token(idjagForm(token), "Authorization", basic("static", testSecret))
		wantError(t, status, out, 400, oauth.UnauthorizedClient)
		status, out = p.token(idjagForm(token, "client_id", "app"))
		wantError(t, status, out, 400, oauth.UnauthorizedClient)
		status, out = p.token(idjagForm(token))
		wantError(t, status, out, 401, oauth.InvalidClient)
	})
	t.Run("AS-196 the subject token is the client's own", func(t *testing.T) {
		p := withAudience(t)
		foreign := p.identified(signInQuery("client_id", "other", "scope", "openid offline_access"))
		ours := p.identified(signInQuery())
		for _, form := range []url.Values{
			idjagForm(foreign["id_token"]),
			idjagForm(foreign["refresh_token"], "subject_token_type", oauth.TokenTypeRefresh),
			idjagForm(ours["access_token"]),
			idjagForm(p.signIn()["refresh_token"], "subject_token_type", oauth.TokenTypeRefresh),
		} {
			status, out := p.token(form, asDesk...)
			wantError(t, status, out, 400, oauth.InvalidGrant)
		}
		mcp := p.identified(signInQuery("resource", testResource, "scope", "mcp"))
		status, out := p.token(idjagForm(mcp["refresh_token"], "subject_token_type", oauth.TokenTypeRefresh), asDesk...)
		wantError(t, status, out, 400, oauth.InvalidGrant)
	})
	t.Run("AS-196 nothing is asserted of a sign-in that has ended", func(t *testing.T) {
		for name, end := range map[string]func(p *person, userID, grantID string) error{
			"the grant was revoked": func(p *person, _, id string) error {
				return p.store.RevokeGrant(p.t.Context(), id, storage.ByOperator, p.now())
			},
			"the person was disabled": func(p *person, id, _ string) error {
				return p.store.SetUserDisabled(p.t.Context(), id, true, p.now())
			},
			"the client was deleted and made again": func(p *person, _, _ string) error {
				return p.store.DeleteClient(p.t.Context(), "desk", p.now())
			},
			"the ID token has expired": func(p *person, _, _ string) error {
				p.advance(time.Hour)
				return nil
			},
		} {
			p := withAudience(t)
			token := p.identified(signInQuery())["id_token"]
			_, claims := jwtOf(t, token)
			if err := end(p, claims["sub"].(string), claims["jti"].(string)); err != nil {
				t.Fatal(err)
			}
			status, out := p.token(idjagForm(token), asDesk...)
			if status < 400 || status >= 500 || out["access_token"] != nil {
				t.Errorf("%s: got %d %v", name, status, out)
			}
		}
	})
	t.Run("AS-196 RFC 9470: an audience may want a more recent sign-in", func(t *testing.T) {
		p := withAudience(t)
		strict := storage.Audience{Issuer: "https://strict.example", Resources: []string{thereResource},
			Scopes: oauth.Scopes{"read"}, Clients: []storage.AudienceClient{{ID: "desk", There: "desk"}},
			MaxAge: storage.Age(5 * time.Minute), CreatedAt: p.now()}
		if err := p.store.AddAudience(t.Context(), strict); err != nil {
			t.Fatal(err)
		}
		token := p.identified(signInQuery())["id_token"]
		form := idjagForm(token, "audience", strict.Issuer)
		p.advance(5 * time.Minute)
		if status, out := p.token(form, asDesk...); status != http.StatusOK {
			t.Errorf("got %d %v", status, out)
		}
		p.advance(time.Second)
		status, out := p.token(form, asDesk...)
		wantError(t, status, out, 400, oauth.InsufficientAuthentication)
		if out["max_age"] != 300.0 {
			t.Errorf("got %v", out)
		}
	})
	t.Run("AS-196 the metadata say so while there are audiences", func(t *testing.T) {
		p := withAudience(t, func(c *Config) { c.HelpersOff = true })
		type document struct {
			Chaining   []string `json:"identity_chaining_requested_token_types_supported"`
			Grants     []string `json:"grant_types_supported"`
			Algorithms []string `json:"id_token_signing_alg_values_supported"`
			Scopes     []string `json:"scopes_supported"`
		}
		read := func(path string) (d document) {
			if err := json.Unmarshal([]byte(p.get(path).body), &d); err != nil {
				t.Fatal(err)
			}
			return d
		}
		has := func(list []string, s string) bool {
			return strings.Contains(" "+strings.Join(list, " ")+" ", " "+s+" ")
		}
		p.advance(recent.TTL)
		plain, openID := read("/.well-known/oauth-authorization-server"), read("/.well-known/openid-configuration")
		if !has(plain.Chaining, oauth.TokenTypeIDJAG) || !has(plain.Grants, oauth.GrantTokenExchange) ||
			has(plain.Scopes, "openid") || !has(openID.Scopes, "openid") || !has(openID.Algorithms, "ES256") {
			t.Errorf("got %+v and %+v", plain, openID)
		}
		if err := p.store.RemoveAudience(t.Context(), thereIssuer); err != nil {
			t.Fatal(err)
		}
		p.advance(time.Minute)
		plain, openID = read("/.well-known/oauth-authorization-server"), read("/.well-known/openid-configuration")
		if len(plain.Chaining) > 0 || has(plain.Grants, oauth.GrantTokenExchange) || has(openID.Scopes, "openid") {
			t.Errorf("got %+v and %+v", plain, openID)
		}
	})
}

// TestAS244OwnAssertions checks that the server never accepts itself as an issuer, whatever is
// stored.
func TestAS244OwnAssertions(t *testing.T) {
	r := newBearerRig(t)
	if err := r.store.AddTrust(t.Context(), storage.TrustEntry{
		ID: "ourselves", Kind: storage.TrustEnterprise, Issuer: r.as.Issuer, CreatedAt: r.now(),
		TrustRules: storage.TrustRules{JWKS: r.person().get("/jwks.json").body, CreatePeople: true},
	}); err != nil {
		t.Fatal(err)
	}
	r.advance(time.Minute) // the entries are read again
	r.granted(r.jag(r.claims()))
	own, err := r.keys.Sign(t.Context(), oauth.IdentityAssertionType, oauth.IdentityAssertionClaims{
		Issuer: r.as.Issuer, Subject: "ada", Audience: r.as.Issuer, ClientID: "agent", TokenID: "one",
		Expires: r.now().Add(time.Minute).Unix(), IssuedAt: r.now().Unix(), Resource: testResource, Scope: "mcp",
	})
	if err != nil {
		t.Fatal(err)
	}
	r.refused(r.ask(own), oauth.InvalidGrant)
}
