package provider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// plainTo returns settings of plain OAuth 2.0 for a fake upstream.
func plainTo(u *fakeidp.Upstream) Settings {
	return Settings{
		Type: "oauth2", ClientID: u.ClientID, ClientSecret: u.ClientSecret, Scopes: oauth.Scopes{"profile"},
		AuthorizationURL: u.URL + "/authorize", TokenURL: u.URL + "/token", UserInfoURL: u.URL + "/userinfo",
		RevocationURL: u.URL + "/revoke",
	}
}

func TestPlainOAuth(t *testing.T) {
	u := fakeidp.Start(t)
	u.Behave(func(b *fakeidp.Behaviour) {
		b.EditUserInfo = func(c map[string]any) {
			clear(c)
			c["id"], c["login"], c["email_verified"] = json.Number("9007199254740993"), "alice", true
			c["contact"] = map[string]any{"mail": "alice@example.com", "ok": true}
			c["teams.of"] = []string{"a", "b"}
		}
	})
	c := plainTo(u)
	c.Claims = map[string]string{
		"sub": "id", "preferred_username": "login", "email": "contact.mail", "email_verified": "",
		"groups": "teams.of", "x": "contact.missing",
	}
	got, p := signedIn(t, connect(t, c), u)
	if p.Subject != "9007199254740993" || p.Label != "alice" {
		t.Errorf("got %q %q, want the number as it was written", p.Subject, p.Label)
	}
	if claim.Text(p.Claims, "email") != "alice@example.com" ||
		!slices.Equal(claim.List(p.Claims, "groups"), []string{"a", "b"}) {
		t.Errorf("got %v", p.Claims)
	}
	for _, gone := range []string{"email_verified", "x"} {
		if _, ok := p.Claims[gone]; ok {
			t.Errorf("%s is there", gone)
		}
	}
	if got.Access == "" || !slices.Equal(got.Scopes, oauth.Scopes{"profile"}) || len(u.Violations()) != 0 {
		t.Errorf("got scopes %q, violations %q", got.Scopes, u.Violations())
	}
	if u.Calls(fakeidp.Discovery) != 0 {
		t.Error("plain OAuth 2.0 has no discovery")
	}
	_, err := connect(t, c).VerifyLogout(t.Context(), u.LogoutToken("sub-alice", "", nil))
	wantError(t, err, ErrUnsupported)
}

// TestFailures: every failure of an upstream is classified as an end, an outage or a fault.
func TestFailures(t *testing.T) {
	internal := fakeidp.Start(t)
	steps := map[string]func(t *testing.T, c Provider, u *fakeidp.Upstream, have Tokens) error{
		"sign-in": func(t *testing.T, c Provider, u *fakeidp.Upstream, _ Tokens) error {
			_, _, err := travel(t, c, u, nil)
			return err
		},
		"refresh": func(t *testing.T, c Provider, _ *fakeidp.Upstream, have Tokens) error {
			_, _, err := c.Refresh(t.Context(), have)
			return err
		},
		"inspect": func(t *testing.T, c Provider, _ *fakeidp.Upstream, have Tokens) error {
			_, err := c.Inspect(t.Context(), have)
			return err
		},
		"introspect": func(t *testing.T, c Provider, u *fakeidp.Upstream, have Tokens) error {
			c.(*openID).IntrospectionURL = u.URL + "/introspect"
			_, err := c.Inspect(t.Context(), have)
			return err
		},
		"revoke": func(t *testing.T, c Provider, _ *fakeidp.Upstream, have Tokens) error {
			return c.Revoke(t.Context(), have)
		},
	}
	faults := []struct {
		name  string
		fault fakeidp.Fault
		want  error
	}{
		{"down", fakeidp.Down, ErrUnreachable},
		{"500", fakeidp.Error500, ErrUnreachable},
		{"503 with an OAuth error", fakeidp.OAuthError(503, "invalid_grant"), ErrUnreachable},
		{"429", fakeidp.Error429, ErrUnreachable},
		{"garbage", fakeidp.Garbage, ErrGarbage},
		{"HTML", fakeidp.HTML, ErrGarbage},
		{"not an object", fakeidp.NotJSON, ErrGarbage},
		{"huge", fakeidp.Huge, ErrGarbage},
		{"a redirect to this machine", fakeidp.Redirect(internal.URL + "/userinfo"), ErrGarbage},
		{"a redirect to the metadata service", fakeidp.Redirect("http://169.254.169.254/latest/meta-data/"),
			ErrGarbage},
		{"404", fakeidp.Fault{Status: 404, Body: "{}"}, ErrGarbage},
		{"an empty object", fakeidp.Fault{Body: "{}"}, ErrGarbage},
		{"cut off", fakeidp.Fault{Body: "{}", Header: http.Header{"Content-Length": {"100"}}}, ErrUnreachable},
	}
	for _, on := range []struct {
		step string
		at   fakeidp.Endpoint
		lax  bool // the response body is ignored
	}{
		{"sign-in", fakeidp.Discovery, false}, {"sign-in", fakeidp.Keys, false}, {"sign-in", fakeidp.Token, false},
		{"sign-in", fakeidp.UserInfo, false},
		{"refresh", fakeidp.Token, false}, {"inspect", fakeidp.UserInfo, false},
		{"introspect", fakeidp.Introspect, false}, {"revoke", fakeidp.Revoke, true},
	} {
		for _, f := range faults {
			t.Run(fmt.Sprintf("AS-223 SP-10 SP-12 %s, %s: %s", on.step, on.at, f.name), func(t *testing.T) {
				u := fakeidp.Start(t)
				have := Tokens{}
				if on.step != "sign-in" {
					have, _ = signedIn(t, connect(t, toFake(u)), u)
				}
				c := connect(t, toFake(u))
				if on.at != fakeidp.Discovery {
					wantError(t, c.CheckIssuer(t.Context(), u.URL), nil) // discovered
				}
				u.Fail(on.at, f.fault)
				want := f.want
				if on.lax && want == ErrGarbage && (f.fault.Status == 0 && f.fault.Huge == 0) {
					want = nil
				}
				wantError(t, steps[on.step](t, c, u, have), want)
			})
		}
	}
	if n := len(internal.Requests("")); n != 0 {
		t.Errorf("SP-10: a redirect was followed %d times", n)
	}
}

// TestSlowUpstream: AS-223, a request ends with its context.
func TestSlowUpstream(t *testing.T) {
	u := fakeidp.Start(t)
	c := connect(t, toFake(u))
	got, _ := signedIn(t, c, u)
	u.FailAll(fakeidp.Fault{Held: make(chan struct{})}) // until the client gives up
	_, _, err := c.Refresh(timeout(t, 100*time.Millisecond), got)
	wantError(t, err, ErrUnreachable)
	_, err = c.Inspect(timeout(t, 100*time.Millisecond), got)
	wantError(t, err, ErrUnreachable)
	_, err = connect(t, toFake(u)).AuthorizeURL(timeout(t, 100*time.Millisecond), AuthorizationRequest{})
	wantError(t, err, ErrUnreachable)
}

// TestTokenErrors: an error code about the client must never end a session.
func TestTokenErrors(t *testing.T) {
	for _, tt := range []struct {
		status int
		code   string
		want   error
	}{
		{400, "invalid_grant", ErrDenied},
		{401, "invalid_grant", ErrDenied},
		{200, "bad_refresh_token", ErrDenied},
		{403, "access_denied", ErrDenied},
		{400, "interaction_required", ErrDenied},
		{401, "invalid_client", ErrMisconfigured},
		{400, "unauthorized_client", ErrMisconfigured},
		{400, "invalid_scope", ErrMisconfigured},
		{400, "invalid_request", ErrMisconfigured},
		{400, "unsupported_grant_type", ErrMisconfigured},
		{200, "incorrect_client_credentials", ErrMisconfigured},
		{400, "temporarily_unavailable", ErrUnreachable},
		{400, "slow_down", ErrUnreachable},
		{400, "never-heard-of", ErrMisconfigured},
	} {
		t.Run(fmt.Sprintf("AS-218 AS-223 RFC 6749 5.2: %s with %d", tt.code, tt.status), func(t *testing.T) {
			u := fakeidp.Start(t)
			c := connect(t, toFake(u))
			got, _ := signedIn(t, c, u)
			u.Fail(fakeidp.Token, fakeidp.OAuthError(tt.status, tt.code))
			_, _, err := c.Refresh(t.Context(), got)
			wantError(t, err, tt.want)
		})
	}
	for _, description := range []string{
		"Refresh token is invalid or has already been claimed by another client.", "Refresh token expired.",
	} {
		t.Run("AS-218 Dex calls it an invalid request: "+description, func(t *testing.T) {
			u := fakeidp.Start(t)
			c := connect(t, toFake(u))
			got, _ := signedIn(t, c, u)
			u.Fail(fakeidp.Token,
				fakeidp.Fault{
					Status: 400, Body: `{"error":"invalid_request","error_description":"` + description + `"}`,
				})
			_, _, err := c.Refresh(t.Context(), got)
			wantError(t, err, ErrDenied)
		})
	}
	t.Run("AS-223 401 without a code says nothing about the person", func(t *testing.T) {
		u := fakeidp.Start(t)
		c := connect(t, toFake(u))
		got, _ := signedIn(t, c, u)
		u.Fail(fakeidp.Token, fakeidp.Fault{Status: 401, Body: "no"})
		_, _, err := c.Refresh(t.Context(), got)
		wantError(t, err, ErrMisconfigured)
	})
	t.Run("AS-223 a token that is no bearer token", func(t *testing.T) {
		u := fakeidp.Start(t)
		u.Fail(fakeidp.Token, fakeidp.Fault{Body: `{"access_token":"a","token_type":"DPoP"}`})
		_, _, err := travel(t, connect(t, plainTo(u)), u, nil)
		wantError(t, err, ErrGarbage)
	})
}

func TestRefresh(t *testing.T) {
	for _, tt := range []struct {
		name   string
		edit   func(*fakeidp.Behaviour)
		before func(u *fakeidp.Upstream, have *Tokens)
		want   error
		check  func(t *testing.T, old, renewed Tokens, p *Profile)
	}{
		{name: "rotating", check: func(t *testing.T, old, renewed Tokens, p *Profile) {
			if renewed.Refresh == old.Refresh || renewed.Access == old.Access || p == nil ||
				p.Subject != fakeidp.Alice.Subject {
				t.Errorf("rotated %v, profile %v", renewed.Refresh != old.Refresh, p != nil)
			}
		}},
		{name: "the same again", edit: func(b *fakeidp.Behaviour) { b.StaticRefresh = true },
			check: func(t *testing.T, old, renewed Tokens, _ *Profile) {
				if renewed.Refresh != old.Refresh {
					t.Error("the refresh token was lost")
				}
			}},
		{name: "no ID token", edit: func(b *fakeidp.Behaviour) { b.NoIDTokenAtRefresh = true },
			check: func(t *testing.T, _, _ Tokens, p *Profile) {
				if p != nil {
					t.Error("a profile out of nothing")
				}
			}},
		{name: "no scope: as before", edit: func(b *fakeidp.Behaviour) { b.NoScope = true },
			check: func(t *testing.T, old, renewed Tokens, _ *Profile) {
				if !reflect.DeepEqual(renewed.Scopes, old.Scopes) || len(old.Scopes) == 0 {
					t.Errorf("got %q, had %q", renewed.Scopes, old.Scopes)
				}
			}},
		{name: "fewer scopes", before: func(u *fakeidp.Upstream, _ *Tokens) {
			u.Behave(func(b *fakeidp.Behaviour) { b.Grant = []string{"openid"} })
		}, check: func(t *testing.T, _, renewed Tokens, _ *Profile) {
			if !slices.Equal(renewed.Scopes, oauth.Scopes{"openid"}) {
				t.Errorf("got %q", renewed.Scopes)
			}
		}},
		{name: "an ID token that is not good: the new tokens are not lost",
			before: func(u *fakeidp.Upstream, _ *Tokens) {
				u.Behave(func(b *fakeidp.Behaviour) { b.Sign = fakeidp.SignWrongKey })
			}, want: ErrGarbage, check: func(t *testing.T, old, renewed Tokens, p *Profile) {
				if renewed.Refresh == "" || renewed.Refresh == old.Refresh || p != nil {
					t.Error("lost, or believed")
				}
			}},
		{name: "keys that cannot be read: the new tokens are not lost", before: func(u *fakeidp.Upstream, _ *Tokens) {
			u.RotateKeys()
			u.Fail(fakeidp.Keys, fakeidp.Down)
		}, want: ErrUnreachable, check: func(t *testing.T, old, renewed Tokens, p *Profile) {
			if renewed.Refresh == "" || renewed.Refresh == old.Refresh || p != nil {
				t.Error("lost, or believed")
			}
		}},
		{name: "tokens that do not expire", edit: func(b *fakeidp.Behaviour) { b.AccessTTL = -1 },
			check: func(t *testing.T, _, renewed Tokens, _ *Profile) {
				if !renewed.Expires.IsZero() {
					t.Errorf("expires %v", renewed.Expires)
				}
			}},
		{name: "no refresh token", edit: func(b *fakeidp.Behaviour) { b.NoRefresh = true }, want: ErrUnsupported},
		{name: "revoked", before: func(u *fakeidp.Upstream, _ *Tokens) { u.RevokeAll(fakeidp.Alice.Subject) },
			want: ErrDenied},
		{name: "the account is gone", before: func(u *fakeidp.Upstream, _ *Tokens) { u.SetPeople(fakeidp.Bob) },
			want: ErrDenied},
		{name: "a token that was used",
			before: func(_ *fakeidp.Upstream, have *Tokens) { have.Refresh = "rt-made-up" }, want: ErrDenied},
	} {
		t.Run("AS-218 AS-219 refresh: "+tt.name, func(t *testing.T) {
			u := fakeidp.Start(t)
			if tt.edit != nil {
				u.Behave(tt.edit)
			}
			c := connect(t, toFake(u))
			have, _ := signedIn(t, c, u)
			if tt.before != nil {
				tt.before(u, &have)
			}
			renewed, p, err := c.Refresh(t.Context(), have)
			wantError(t, err, tt.want)
			if tt.check != nil {
				tt.check(t, have, renewed, p)
			}
		})
	}
}

func TestInspect(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    func(u *fakeidp.Upstream) Settings
	}{
		{"user info", toFake},
		{"user info of plain OAuth 2.0", plainTo},
		{"introspection", func(u *fakeidp.Upstream) Settings {
			c := toFake(u)
			c.IntrospectionURL = u.URL + "/introspect"
			return c
		}},
		{"introspection of plain OAuth 2.0, secret in the form", func(u *fakeidp.Upstream) Settings {
			c := plainTo(u)
			c.IntrospectionURL, c.ClientAuth = u.URL+"/introspect", "post"
			return c
		}},
	} {
		t.Run("AS-218 "+tt.name, func(t *testing.T) {
			u := fakeidp.Start(t)
			configuration := tt.c(u)
			c := connect(t, configuration)
			if configuration.Type == "oauth2" {
				u.Behave(func(b *fakeidp.Behaviour) { b.NoIDToken = true })
			}
			have, p := signedIn(t, c, u)
			now, err := c.Inspect(t.Context(), have)
			wantError(t, err, nil)
			if now != nil && now.Subject != p.Subject {
				t.Errorf("got %q", now.Subject)
			}
			wantIntrospection := 0
			if configuration.IntrospectionURL != "" {
				wantIntrospection = 1
			}
			if n := u.Calls(fakeidp.Introspect); n != wantIntrospection {
				t.Errorf("introspected %d times", n)
			}
			u.RevokeSession(u.Sessions(fakeidp.Alice.Subject)[0])
			_, err = c.Inspect(t.Context(), have)
			wantError(t, err, ErrDenied)
		})
	}
	t.Run("AS-218 introspection that does not know us ends nothing", func(t *testing.T) {
		u := fakeidp.Start(t)
		configuration := toFake(u)
		configuration.IntrospectionURL = u.URL + "/introspect"
		c := connect(t, configuration)
		have, _ := signedIn(t, c, u)
		u.Fail(fakeidp.Introspect, fakeidp.OAuthError(401, "invalid_client"), fakeidp.OAuthError(400, "access_denied"))
		for range 2 {
			_, err := c.Inspect(t.Context(), have)
			wantError(t, err, ErrMisconfigured)
		}
	})
	t.Run("AS-218 403 is about a scope, not about the end", func(t *testing.T) {
		u := fakeidp.Start(t)
		c := connect(t, toFake(u))
		have, _ := signedIn(t, c, u)
		u.Fail(fakeidp.UserInfo,
			fakeidp.Fault{Status: 403, Body: `{"error":"insufficient_scope","error_description":"suspended"}`})
		_, err := c.Inspect(t.Context(), have)
		wantError(t, err, ErrMisconfigured)
	})
}

func TestRevoke(t *testing.T) {
	u := fakeidp.Start(t)
	for _, configuration := range []Settings{toFake(u), plainTo(u)} {
		c := connect(t, configuration)
		have, _ := signedIn(t, c, u)
		if err := c.Revoke(t.Context(), have); err != nil || len(u.Sessions(fakeidp.Alice.Subject)) != 0 {
			t.Errorf("AS-219 %s: %v, live %q", configuration.Type, err, u.Sessions(fakeidp.Alice.Subject))
		}
		sent := u.Requests(fakeidp.Revoke)
		if got := sent[len(sent)-1].Form; got.Get("token") != have.Refresh ||
			got.Get("token_type_hint") != "refresh_token" {
			t.Error("RFC 7009 2.1: want the refresh token to be given back")
		}
	}
	none := plainTo(u)
	none.RevocationURL = ""
	wantError(t, connect(t, none).Revoke(t.Context(), Tokens{Access: "a"}), ErrUnsupported)
}

func TestClientAuthentication(t *testing.T) {
	for _, tt := range []struct {
		name      string
		edit      func(*Settings)
		supported []string
		basic     bool
	}{
		{"by default", func(*Settings) {}, nil, true},
		{"only post is supported", func(*Settings) {}, []string{"client_secret_post", "private_key_jwt"}, false},
		{"configured", func(c *Settings) { c.ClientAuth = "post" }, nil, false},
		{"special characters", func(c *Settings) { c.ClientSecret = "a:b%c+d e/ü&=" }, nil, true},
	} {
		t.Run("RFC 6749 2.3.1: "+tt.name, func(t *testing.T) {
			u := fakeidp.Start(t)
			if tt.supported != nil {
				u.Behave(func(b *fakeidp.Behaviour) {
					b.EditMetadata = func(m map[string]any) {
						m["token_endpoint_auth_methods_supported"] = tt.supported
					}
				})
			}
			configuration := toFake(u)
			tt.edit(&configuration)
			u.ClientSecret = configuration.ClientSecret
			c := connect(t, configuration)
			have, _ := signedIn(t, c, u)
			if _, _, err := c.Refresh(t.Context(), have); err != nil {
				t.Error(err)
			}
			if err := c.Revoke(t.Context(), have); err != nil {
				t.Error(err)
			}
			for _, r := range append(u.Requests(fakeidp.Token), u.Requests(fakeidp.Revoke)...) {
				if basic := strings.HasPrefix(r.Header.Get("Authorization"), "Basic "); basic != tt.basic ||
					r.Form.Has("client_secret") == tt.basic {
					t.Errorf("%s: basic %v, in the form %v", r.Endpoint, basic, r.Form.Has("client_secret"))
				}
			}
			if v := u.Violations(); len(v) != 0 {
				t.Errorf("violations: %q", v)
			}
		})
	}
	t.Run("AS-223 a wrong secret costs one request, not the code", func(t *testing.T) {
		u := fakeidp.Start(t)
		configuration := toFake(u)
		configuration.ClientSecret = "wrong"
		_, _, err := travel(t, connect(t, configuration), u, nil)
		wantError(t, err, ErrMisconfigured)
		if n := u.Calls(fakeidp.Token); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestNothingToAsk: RFC 7662. A provider with neither user info nor introspection cannot be asked,
// which says nothing about the token.
func TestNothingToAsk(t *testing.T) {
	p := connect(t, Settings{Type: "oidc", Issuer: "https://idp.example.com", ClientID: "c"}).(*openID)
	_, err := p.inspectBy(t.Context(), &endpoints{}, Tokens{Access: "x"}, nil)
	wantError(t, err, ErrUnsupported)
}
