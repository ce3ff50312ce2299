package provider

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const callback = "https://auth.example.com/callback/up"

// toFake returns settings for a fake provider.
func toFake(u *fakeidp.Upstream) Settings {
	return Settings{Type: "oidc", Issuer: u.URL, ClientID: u.ClientID, ClientSecret: u.ClientSecret}
}

func connect(t *testing.T, s Settings) Provider {
	t.Helper()
	return connectIn(t, s, Options{})
}

func connectIn(t *testing.T, s Settings, o Options) Provider {
	t.Helper()
	out, err := New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// travel simulates a browser on its way to the provider and back.
func travel(t *testing.T, c Provider, u *fakeidp.Upstream, edit func(*AuthorizationRequest)) (Tokens, Profile, error) {
	t.Helper()
	q := AuthorizationRequest{
		State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text(), RedirectURI: callback,
	}
	if edit != nil {
		edit(&q)
	}
	at, err := c.AuthorizeURL(t.Context(), q)
	if err != nil {
		return Tokens{}, Profile{}, err
	}
	back, err := u.Visit(at)
	if err != nil {
		return Tokens{}, Profile{}, err
	}
	answer := back.Query()
	if answer.Get("state") != q.State {
		t.Fatalf("state came back as %q", answer.Get("state"))
	}
	if err := c.CheckIssuer(t.Context(), answer.Get("iss")); err != nil {
		return Tokens{}, Profile{}, err
	}
	if answer.Get("error") != "" {
		return Tokens{}, Profile{}, fmt.Errorf("authorize: %s", answer.Get("error"))
	}
	return c.Exchange(t.Context(), answer.Get("code"), q.Verifier, q.Nonce, q.RedirectURI)
}

func signedIn(t *testing.T, c Provider, u *fakeidp.Upstream) (Tokens, Profile) {
	t.Helper()
	got, p, err := travel(t, c, u, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got, p
}

// wantError checks that err has the class want and no other class.
func wantError(t *testing.T, err, want error) {
	t.Helper()
	for _, class := range []error{ErrDenied, ErrUnreachable, ErrGarbage, ErrMisconfigured, ErrUnsupported} {
		if errors.Is(err, class) != (class == want) {
			t.Errorf("got %v, want %v", err, want)
			return
		}
	}
}

func TestSignIn(t *testing.T) {
	u := fakeidp.Start(t)
	u.EditPerson(fakeidp.Alice.Subject, func(p *fakeidp.Person) {
		p.UserInfoOnly = map[string]any{"groups": []string{"staff"}, "id": 9007199254740993}
	})
	c := connect(t, toFake(u))
	got, p := signedIn(t, c, u)
	if p.Subject != fakeidp.Alice.Subject || p.Label != "alice" || p.SessionID == "" || p.AuthTime.IsZero() {
		t.Errorf("profile: got %q %q %q %v", p.Subject, p.Label, p.SessionID, p.AuthTime)
	}
	if !slices.Equal(claim.List(p.Claims, "groups"), []string{"staff"}) ||
		claim.Text(p.Claims, "email") != fakeidp.Alice.Email || !claim.True(p.Claims, "email_verified") {
		t.Errorf("claims: got %v", p.Claims)
	}
	for _, name := range ofTheToken {
		if _, ok := p.Claims[name]; ok {
			t.Errorf("claim %s is about the token", name)
		}
	}
	if got.Access == "" || got.Refresh == "" || time.Until(got.Expires).Round(time.Minute) != time.Hour ||
		!got.Scopes.Has("openid", "offline_access") {
		t.Errorf("tokens: expires %v, scopes %q", got.Expires, got.Scopes)
	}
	if v := u.Violations(); len(v) != 0 {
		t.Errorf("AS-225: the upstream complains of %q", v)
	}
	// A stored profile must be restored unchanged, so that rules give the same result.
	stored, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again Profile
	if err := json.Unmarshal(stored, &again); err != nil || !reflect.DeepEqual(again.Claims, func() map[string]any {
		var m map[string]any
		b, _ := json.Marshal(p.Claims)
		_ = json.Unmarshal(b, &m)
		return m
	}()) {
		t.Errorf("stored and read: got %v, %v", again.Claims, err)
	}
}

func TestAuthorizationRequest(t *testing.T) {
	u := fakeidp.Start(t)
	c := toFake(u)
	c.Parameters = map[string]string{"ui_locales": "de"}
	up := connect(t, c)
	ask := func(q AuthorizationRequest) url.Values {
		t.Helper()
		q.State, q.Nonce, q.Verifier, q.RedirectURI = "the-state", "the-nonce", strings.Repeat("v", 43), callback
		at, err := up.AuthorizeURL(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := url.Parse(at)
		if err != nil || !strings.HasPrefix(at, u.URL+"/authorize?") {
			t.Fatalf("got %q", at)
		}
		return parsed.Query()
	}
	t.Run("AS-220 AS-225 state, nonce and PKCE go along, resource and secrets do not", func(t *testing.T) {
		got := ask(AuthorizationRequest{LoginHint: "bob@example.org"})
		want := url.Values{
			"response_type": {"code"}, "client_id": {u.ClientID}, "redirect_uri": {callback},
			"scope": {"openid profile email offline_access"},
			"state": {"the-state"}, "nonce": {"the-nonce"},
			"code_challenge": {"GLFnBkr7ib8SrQH7OeCjLl6X5GLSMCQlIhHvZ_DxwB4"}, "code_challenge_method": {"S256"},
			"prompt": {"consent"}, "login_hint": {"bob@example.org"}, "ui_locales": {"de"},
		}
		want["code_challenge"] = got["code_challenge"] // the upstream checks it
		if !reflect.DeepEqual(got, want) || len(got.Get("code_challenge")) != 43 {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	})
	t.Run("fresh asks for new proof", func(t *testing.T) {
		if got := ask(AuthorizationRequest{Fresh: true}); got.Get("prompt") != "login consent" ||
			got.Get("max_age") != "0" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("more scopes are added", func(t *testing.T) {
		if got := ask(AuthorizationRequest{Scopes: oauth.Scopes{"repo", "email"}}).Get(
			"scope"); got != "openid profile email offline_access repo" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("an endless hint is dropped", func(t *testing.T) {
		if got := ask(AuthorizationRequest{LoginHint: strings.Repeat("x", 300)}); got.Has("login_hint") {
			t.Error("it was passed on")
		}
	})
	t.Run("RU-12 a list of scopes without offline_access is obeyed", func(t *testing.T) {
		for _, with := range []bool{true, false} {
			listed := toFake(u)
			listed.Scopes = oauth.Scopes{"openid", "email"}
			if with {
				listed.Scopes = append(listed.Scopes, "offline_access")
			}
			up = connect(t, listed)
			got := ask(AuthorizationRequest{})
			if got.Has("prompt") != with || strings.Contains(got.Get("scope"), "offline_access") != with {
				t.Errorf("offline_access listed %t: got %v", with, got)
			}
		}
	})
	t.Run("offline_access only where it is known", func(t *testing.T) {
		u.Behave(func(b *fakeidp.Behaviour) {
			b.EditMetadata = func(m map[string]any) { m["scopes_supported"] = []string{"openid"} }
		})
		up = connect(t, toFake(u))
		if got := ask(AuthorizationRequest{}); got.Get("scope") != "openid profile email" || got.Has("prompt") {
			t.Errorf("got %v", got)
		}
	})
}

func TestResponseIssuer(t *testing.T) {
	u := fakeidp.Start(t)
	silent := fakeidp.Start(t)
	silent.Behave(func(b *fakeidp.Behaviour) { b.NoResponseIssuer = true })
	plain := Settings{
		Type: "oauth2", ClientID: "c", AuthorizationURL: u.URL + "/authorize", TokenURL: u.URL + "/token",
		UserInfoURL: u.URL + "/userinfo",
	}
	named := plain
	named.Issuer = u.URL
	for _, tt := range []struct {
		name string
		c    Settings
		iss  string
		want error
	}{
		{"the right one", toFake(u), u.URL, nil},
		{"another one (mix-up)", toFake(u), "https://evil.example.com", ErrGarbage},
		{"with a slash", toFake(u), u.URL + "/", ErrGarbage},
		{"none, although promised", toFake(u), "", ErrGarbage},
		{"none, and none promised", toFake(silent), "", nil},
		{"one that was not promised", toFake(silent), silent.URL, nil},
		{"another one that was not promised", toFake(silent), u.URL, ErrGarbage},
		{"plain OAuth 2.0 of which no issuer is known", plain, "https://whoever.example.com", nil},
		{"plain OAuth 2.0 with an issuer", named, u.URL, nil},
		{"plain OAuth 2.0 with another issuer", named, "https://evil.example.com", ErrGarbage},
	} {
		t.Run("AS-225 SP-17 RFC 9207 2.4: "+tt.name, func(t *testing.T) {
			wantError(t, connect(t, tt.c).CheckIssuer(t.Context(), tt.iss), tt.want)
		})
	}
	t.Run("AS-223 an issuer that cannot be known is not believed", func(t *testing.T) {
		u.Fail(fakeidp.Discovery, fakeidp.Down)
		wantError(t, connect(t, toFake(u)).CheckIssuer(t.Context(), u.URL), ErrUnreachable)
	})
}

func TestNothingIsPrinted(t *testing.T) {
	secret := Tokens{Access: "s3cret-access", Refresh: "s3cret-refresh"}
	p := Profile{Subject: "s3cret-sub", Claims: map[string]any{"email": "s3cret-mail"}}
	var b strings.Builder
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
		slog.New(h).Info("x", "tokens", secret, "pointer", &secret, "profile", p, "pointer", &p)
	}
	fmt.Fprintf(&b, "%v %+v %#v %s %v", secret, secret, secret, secret, &secret)
	fmt.Fprintf(&b, "%v %+v %#v %s %v", p, p, p, p, &p)
	if strings.Contains(b.String(), "s3cret") {
		t.Errorf("AS-223 RS-202: printed in %s", b.String())
	}
}

func TestErrorsHoldNoSecrets(t *testing.T) {
	u := fakeidp.Start(t)
	c := connect(t, toFake(u))
	got, _ := signedIn(t, c, u)
	answer := fmt.Sprintf(`{"error":"%s","error_description":%q,"access_token":%q}`, got.Access, got.Refresh,
		got.Access)
	for _, e := range []fakeidp.Endpoint{fakeidp.Token, fakeidp.UserInfo} {
		for _, status := range []int{200, 400, 401, 403, 404, 500} {
			u.Fail(e, fakeidp.Fault{Status: status, Body: answer}, fakeidp.Fault{Status: status, Body: answer + "x"})
			for range 2 {
				_, _, err := c.Refresh(t.Context(), got)
				if e == fakeidp.UserInfo {
					_, err = c.Inspect(t.Context(), got)
				}
				if err != nil &&
					(strings.Contains(err.Error(), got.Refresh) || strings.Contains(err.Error(), got.Access) ||
						strings.Contains(err.Error(), u.ClientSecret)) {
					t.Errorf("AS-223 %s %d: %v", e, status, err)
				}
			}
		}
	}
}

func TestProbe(t *testing.T) {
	u := fakeidp.Start(t)
	probed := func(s Settings) error { return probe(t.Context(), connect(t, s), callback) }
	if err := probed(toFake(u)); err != nil {
		t.Errorf("a good configuration: %v", err)
	}
	wrong := toFake(u)
	wrong.ClientSecret = "wrong"
	wantError(t, probed(wrong), ErrMisconfigured)
	u.FailAll(fakeidp.Down)
	wantError(t, probed(toFake(u)), ErrUnreachable)
}

func TestOver(t *testing.T) {
	first := Profile{Subject: "s", Label: "old", SessionID: "sid", Parts: map[string]map[string]any{
		"id_token": {"sub": "s", "groups": []any{"a"}, "tid": "t", "name": "Old"},
		"userinfo": {"sub": "s", "groups": []any{"a"}, "mail": "m", "name": "Old"},
	}}
	first = first.Over(Profile{})
	for _, tt := range []struct {
		name string
		next Profile
		want map[string]any
	}{
		{"one source says otherwise",
			Profile{Subject: "s",
				Parts: map[string]map[string]any{
					"userinfo": {"sub": "s", "groups": []any{"b"}, "mail": "m", "name": "New"},
				}},
			map[string]any{"sub": "s", "groups": []any{"b"}, "tid": "t", "mail": "m", "name": "New"}},
		{"one source drops a claim that the other once had, too",
			Profile{Subject: "s",
				Parts: map[string]map[string]any{"userinfo": {"sub": "s", "mail": "m", "name": "Old"}}},
			map[string]any{"sub": "s", "tid": "t", "mail": "m", "name": "Old"}},
		{"the ID token is newer",
			Profile{Subject: "s",
				Parts: map[string]map[string]any{
					"id_token": {"sub": "s", "groups": []any{"c"}, "tid": "t", "name": "Old"},
				}},
			map[string]any{"sub": "s", "groups": []any{"c"}, "tid": "t", "mail": "m", "name": "Old"}},
	} {
		t.Run("AS-218 "+tt.name, func(t *testing.T) {
			before, _ := json.Marshal(first)
			got := tt.next.Over(first)
			if !reflect.DeepEqual(got.Claims, tt.want) || got.SessionID != "sid" {
				t.Errorf("got %v, want %v", got.Claims, tt.want)
			}
			if after, _ := json.Marshal(first); string(after) != string(before) {
				t.Error("the earlier profile was changed")
			}
		})
	}
	kept := (&Profile{Subject: "s", Parts: map[string]map[string]any{"userinfo": {"name": "N"}}}).Over(Profile{
		Claims: map[string]any{"tid": "t"},
	})
	if kept.Claims["tid"] != "t" || kept.Claims["name"] != "N" {
		t.Errorf("claims without parts: got %v", kept.Claims)
	}
}

func TestVerifiedAddress(t *testing.T) {
	first := Profile{Subject: "s", Parts: map[string]map[string]any{
		"id_token": {"sub": "s", "email": "me@example.com", "email_verified": true},
		"userinfo": {"sub": "s", "email": "me@example.com"},
	}}
	first = first.Over(Profile{})
	for _, tt := range []struct {
		name     string
		userInfo map[string]any
		want     bool
	}{
		{"a new address of which nothing is said is not verified because the old one was",
			map[string]any{"sub": "s", "email": "boss@example.com"}, false},
		{"the same address still is", map[string]any{"sub": "s", "email": "me@example.com"}, true},
		{"a new one that is said to be",
			map[string]any{"sub": "s", "email": "boss@example.com", "email_verified": true}, true},
		{"no address is said again", map[string]any{"sub": "s", "name": "Me", "email": nil}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := (&Profile{Subject: "s", Parts: map[string]map[string]any{"userinfo": tt.userInfo}}).Over(first)
			if claim.True(got.Claims, "email_verified") != tt.want {
				t.Errorf("got %v", got.Claims)
			}
		})
	}
}

func timeout(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestLabel: an account's label is printable and short.
func TestLabel(t *testing.T) {
	for _, tt := range []struct {
		claims map[string]any
		want   string
	}{
		{map[string]any{"sub": "1", "name": "Ann", "email": "a@example.com", "preferred_username": "ann"}, "ann"},
		{map[string]any{"sub": "1", "name": "Ann", "email": " \u202e\n"}, "Ann"},
		{map[string]any{"sub": "1", "name": "A\u0000n\u202en "}, "Ann"},
		{map[string]any{"name": strings.Repeat("ü", 150)}, strings.Repeat("ü", 100)},
		{map[string]any{"name": 7}, ""},
	} {
		if got := label(tt.claims); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.claims, got, tt.want)
		}
	}
}

// TestDroppedClaims: a claim that its source has dropped is removed, even if another source had it.
// A claim that only another source had remains.
func TestDroppedClaims(t *testing.T) {
	earlier := Profile{Parts: map[string]map[string]any{
		"id_token": {"role": "admin", "team": "a"}, "userinfo": {"role": "admin", "hd": "example.com"},
	}}
	now := Profile{Parts: map[string]map[string]any{"userinfo": {"hd": "example.com"}}}.Over(earlier)
	if _, ok := now.Claims["role"]; ok || now.Claims["team"] != "a" || now.Claims["hd"] != "example.com" {
		t.Errorf("got %v", now.Claims)
	}
	if len(earlier.Parts["id_token"]) != 2 {
		t.Error("the earlier profile has changed")
	}
}

// RU-15: a page names the account if there is a name, even if it equals the identifier.
func TestName(t *testing.T) {
	for _, c := range []struct {
		claims map[string]any
		want   string
	}{
		{map[string]any{"sub": "alice", "preferred_username": "alice"}, "alice"},
		{map[string]any{"sub": "1", "email": "alice@example.com"}, "alice@example.com"},
		{map[string]any{"sub": "1", "name": "Alice"}, "Alice"},
		{map[string]any{"sub": "1", "name": " \u200e"}, ""},
		{map[string]any{"sub": "1"}, ""},
	} {
		if got := (Profile{Claims: c.claims}).Name(); got != c.want {
			t.Errorf("%v: got %q, want %q", c.claims, got, c.want)
		}
	}
}
