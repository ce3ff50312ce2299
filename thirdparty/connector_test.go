package thirdparty

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

	"github.com/mcp-authd/mcp-authd/internal/fakeupstream"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const ownIssuer = "https://auth.example.com"

// toFake is the configuration of a connector to a fake upstream.
func toFake(u *fakeupstream.Upstream) Connector {
	return Connector{ID: "up", Type: "oidc", Issuer: u.URL, ClientID: u.ClientID, ClientSecret: u.ClientSecret}
}

func connect(t *testing.T, c Connector) *connector {
	t.Helper()
	return connectIn(t, c, surroundings{})
}

func connectIn(t *testing.T, c Connector, s surroundings) *connector {
	t.Helper()
	s.issuer = ownIssuer
	out, err := newConnector(c, s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// travel is the way of a browser through a provider and back.
func travel(t *testing.T, c *connector, u *fakeupstream.Upstream, edit func(*authorizeRequest)) (tokens, profile, error) {
	t.Helper()
	q := authorizeRequest{State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text(), RedirectURI: c.redirectURI()}
	if edit != nil {
		edit(&q)
	}
	at, err := c.authorizeURL(t.Context(), q)
	if err != nil {
		return tokens{}, profile{}, err
	}
	back, err := u.Visit(at)
	if err != nil {
		return tokens{}, profile{}, err
	}
	answer := back.Query()
	if answer.Get("state") != q.State {
		t.Fatalf("state came back as %q", answer.Get("state"))
	}
	if err := c.checkIssuer(t.Context(), answer.Get("iss")); err != nil {
		return tokens{}, profile{}, err
	}
	if answer.Get("error") != "" {
		return tokens{}, profile{}, fmt.Errorf("authorize: %s", answer.Get("error"))
	}
	return c.exchange(t.Context(), answer.Get("code"), q.Verifier, q.Nonce, q.RedirectURI)
}

func signedIn(t *testing.T, c *connector, u *fakeupstream.Upstream) (tokens, profile) {
	t.Helper()
	got, p, err := travel(t, c, u, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got, p
}

// wantError checks the class of an error, of which there must be one only.
func wantError(t *testing.T, err, want error) {
	t.Helper()
	for _, class := range []error{errDenied, errUnreachable, errGarbage, errMisconfigured, errUnsupported} {
		if errors.Is(err, class) != (class == want) {
			t.Errorf("got %v, want %v", err, want)
			return
		}
	}
}

func TestSignInOfConnector(t *testing.T) {
	u := fakeupstream.Start(t)
	u.EditPerson(fakeupstream.Alice.Subject, func(p *fakeupstream.Person) {
		p.UserInfoOnly = map[string]any{"groups": []string{"staff"}, "id": 9007199254740993}
	})
	c := connect(t, toFake(u))
	got, p := signedIn(t, c, u)
	if p.Subject != fakeupstream.Alice.Subject || p.Label != "alice" || p.SessionID == "" || p.AuthTime.IsZero() {
		t.Errorf("profile: got %q %q %q %v", p.Subject, p.Label, p.SessionID, p.AuthTime)
	}
	if !slices.Equal(list(p.Claims, "groups"), []string{"staff"}) || text(p.Claims, "email") != fakeupstream.Alice.Email || !truth(p.Claims, "email_verified") {
		t.Errorf("claims: got %v", p.Claims)
	}
	for _, name := range ofTheToken {
		if _, ok := p.Claims[name]; ok {
			t.Errorf("claim %s is about the token", name)
		}
	}
	if got.Access == "" || got.Refresh == "" || time.Until(got.Expires).Round(time.Minute) != time.Hour || !got.Scopes.Has("openid", "offline_access") {
		t.Errorf("tokens: expires %v, scopes %q", got.Expires, got.Scopes)
	}
	if v := u.Violations(); len(v) != 0 {
		t.Errorf("AS-225: the upstream complains of %q", v)
	}
	// What is stored comes back as it was, so that rules say the same of it.
	stored, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again profile
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
	u := fakeupstream.Start(t)
	c := toFake(u)
	c.Parameters = map[string]string{"ui_locales": "de"}
	up := connect(t, c)
	ask := func(q authorizeRequest) url.Values {
		t.Helper()
		q.State, q.Nonce, q.Verifier, q.RedirectURI = "the-state", "the-nonce", strings.Repeat("v", 43), up.redirectURI()
		at, err := up.authorizeURL(t.Context(), q)
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
		got := ask(authorizeRequest{LoginHint: "bob@example.org"})
		want := url.Values{
			"response_type": {"code"}, "client_id": {u.ClientID}, "redirect_uri": {ownIssuer + "/callback/up"}, "scope": {"openid profile email offline_access"},
			"state": {"the-state"}, "nonce": {"the-nonce"}, "code_challenge": {"GLFnBkr7ib8SrQH7OeCjLl6X5GLSMCQlIhHvZ_DxwB4"}, "code_challenge_method": {"S256"},
			"prompt": {"consent"}, "login_hint": {"bob@example.org"}, "ui_locales": {"de"},
		}
		want["code_challenge"] = got["code_challenge"] // the upstream checks it
		if !reflect.DeepEqual(got, want) || len(got.Get("code_challenge")) != 43 {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	})
	t.Run("fresh asks for proof anew", func(t *testing.T) {
		if got := ask(authorizeRequest{Fresh: true}); got.Get("prompt") != "login consent" || got.Get("max_age") != "0" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("more scopes are added", func(t *testing.T) {
		if got := ask(authorizeRequest{Scopes: oauth.Scopes{"repo", "email"}}).Get("scope"); got != "openid profile email offline_access repo" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a hint without end is none", func(t *testing.T) {
		if got := ask(authorizeRequest{LoginHint: strings.Repeat("x", 300)}); got.Has("login_hint") {
			t.Error("it was passed on")
		}
	})
	t.Run("offline_access only where it is known", func(t *testing.T) {
		u.Behave(func(b *fakeupstream.Behaviour) {
			b.EditMetadata = func(m map[string]any) { m["scopes_supported"] = []string{"openid"} }
		})
		up = connect(t, toFake(u))
		if got := ask(authorizeRequest{}); got.Get("scope") != "openid profile email" || got.Has("prompt") {
			t.Errorf("got %v", got)
		}
	})
}

func TestResponseIssuer(t *testing.T) {
	u := fakeupstream.Start(t)
	silent := fakeupstream.Start(t)
	silent.Behave(func(b *fakeupstream.Behaviour) { b.NoResponseIssuer = true })
	plain := Connector{
		ID: "up", Type: "oauth2", ClientID: "c", AuthorizationURL: u.URL + "/authorize", TokenURL: u.URL + "/token", UserInfoURL: u.URL + "/userinfo",
	}
	named := plain
	named.Issuer = u.URL
	for _, tt := range []struct {
		name string
		c    Connector
		iss  string
		want error
	}{
		{"the right one", toFake(u), u.URL, nil},
		{"another one (mix-up)", toFake(u), "https://evil.example.com", errGarbage},
		{"with a slash", toFake(u), u.URL + "/", errGarbage},
		{"none, although promised", toFake(u), "", errGarbage},
		{"none, and none promised", toFake(silent), "", nil},
		{"one that was not promised", toFake(silent), silent.URL, nil},
		{"another one that was not promised", toFake(silent), u.URL, errGarbage},
		{"plain OAuth 2.0 of which no issuer is known", plain, "https://whoever.example.com", nil},
		{"plain OAuth 2.0 with an issuer", named, u.URL, nil},
		{"plain OAuth 2.0 with another issuer", named, "https://evil.example.com", errGarbage},
	} {
		t.Run("AS-225 SP-17 RFC 9207 2.4: "+tt.name, func(t *testing.T) {
			wantError(t, connect(t, tt.c).checkIssuer(t.Context(), tt.iss), tt.want)
		})
	}
	t.Run("AS-223 an issuer that cannot be known is not believed", func(t *testing.T) {
		u.Fail(fakeupstream.Discovery, fakeupstream.Down)
		wantError(t, connect(t, toFake(u)).checkIssuer(t.Context(), u.URL), errUnreachable)
	})
}

func TestNothingIsPrinted(t *testing.T) {
	secret := tokens{Access: "s3cret-access", Refresh: "s3cret-refresh"}
	p := profile{Subject: "s3cret-sub", Claims: map[string]any{"email": "s3cret-mail"}}
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
	u := fakeupstream.Start(t)
	c := connect(t, toFake(u))
	got, _ := signedIn(t, c, u)
	answer := fmt.Sprintf(`{"error":"%s","error_description":%q,"access_token":%q}`, got.Access, got.Refresh, got.Access)
	for _, e := range []fakeupstream.Endpoint{fakeupstream.Token, fakeupstream.UserInfo} {
		for _, status := range []int{200, 400, 401, 403, 404, 500} {
			u.Fail(e, fakeupstream.Fault{Status: status, Body: answer}, fakeupstream.Fault{Status: status, Body: answer + "x"})
			for range 2 {
				_, _, err := c.refresh(t.Context(), got)
				if e == fakeupstream.UserInfo {
					_, err = c.inspect(t.Context(), got)
				}
				if err != nil && (strings.Contains(err.Error(), got.Refresh) || strings.Contains(err.Error(), got.Access) || strings.Contains(err.Error(), u.ClientSecret)) {
					t.Errorf("AS-223 %s %d: %v", e, status, err)
				}
			}
		}
	}
}

func TestProbeOfConnector(t *testing.T) {
	u := fakeupstream.Start(t)
	if err := connect(t, toFake(u)).probe(t.Context()); err != nil {
		t.Errorf("a good configuration: %v", err)
	}
	wrong := toFake(u)
	wrong.ClientSecret = "wrong"
	wantError(t, connect(t, wrong).probe(t.Context()), errMisconfigured)
	u.FailAll(fakeupstream.Down)
	wantError(t, connect(t, toFake(u)).probe(t.Context()), errUnreachable)
}

func TestOver(t *testing.T) {
	first := profile{Subject: "s", Label: "old", SessionID: "sid", Parts: map[string]map[string]any{
		"id_token": {"sub": "s", "groups": []any{"a"}, "tid": "t", "name": "Old"}, "userinfo": {"sub": "s", "groups": []any{"a"}, "mail": "m", "name": "Old"},
	}}
	first = first.over(profile{})
	for _, tt := range []struct {
		name string
		next profile
		want map[string]any
	}{
		{"one source says otherwise", profile{Subject: "s", Parts: map[string]map[string]any{"userinfo": {"sub": "s", "groups": []any{"b"}, "mail": "m", "name": "New"}}},
			map[string]any{"sub": "s", "groups": []any{"b"}, "tid": "t", "mail": "m", "name": "New"}},
		{"one source drops a claim that the other once had, too", profile{Subject: "s", Parts: map[string]map[string]any{"userinfo": {"sub": "s", "mail": "m", "name": "Old"}}},
			map[string]any{"sub": "s", "tid": "t", "mail": "m", "name": "Old"}},
		{"the ID token is newer", profile{Subject: "s", Parts: map[string]map[string]any{"id_token": {"sub": "s", "groups": []any{"c"}, "tid": "t", "name": "Old"}}},
			map[string]any{"sub": "s", "groups": []any{"c"}, "tid": "t", "mail": "m", "name": "Old"}},
	} {
		t.Run("AS-218 "+tt.name, func(t *testing.T) {
			before, _ := json.Marshal(first)
			got := tt.next.over(first)
			if !reflect.DeepEqual(got.Claims, tt.want) || got.SessionID != "sid" {
				t.Errorf("got %v, want %v", got.Claims, tt.want)
			}
			if after, _ := json.Marshal(first); string(after) != string(before) {
				t.Error("the earlier profile was changed")
			}
		})
	}
	kept := (&profile{Subject: "s", Parts: map[string]map[string]any{"userinfo": {"name": "N"}}}).over(profile{Claims: map[string]any{"tid": "t"}})
	if kept.Claims["tid"] != "t" || kept.Claims["name"] != "N" {
		t.Errorf("claims without parts: got %v", kept.Claims)
	}
}

func TestVerifiedAddress(t *testing.T) {
	first := profile{Subject: "s", Parts: map[string]map[string]any{
		"id_token": {"sub": "s", "email": "me@example.com", "email_verified": true}, "userinfo": {"sub": "s", "email": "me@example.com"},
	}}
	first = first.over(profile{})
	for _, tt := range []struct {
		name     string
		userInfo map[string]any
		want     bool
	}{
		{"a new address of which nothing is said is not verified because the old one was", map[string]any{"sub": "s", "email": "boss@example.com"}, false},
		{"the same address still is", map[string]any{"sub": "s", "email": "me@example.com"}, true},
		{"a new one that is said to be", map[string]any{"sub": "s", "email": "boss@example.com", "email_verified": true}, true},
		{"no address is said again", map[string]any{"sub": "s", "name": "Me", "email": nil}, false},
	} {
		t.Run("AS-224 "+tt.name, func(t *testing.T) {
			got := (&profile{Subject: "s", Parts: map[string]map[string]any{"userinfo": tt.userInfo}}).over(first)
			if truth(got.Claims, "email_verified") != tt.want {
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
