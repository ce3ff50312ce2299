package idptest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// relyingParty is a correct client that uses common libraries. It shows how the providers behave
// without our code.
type relyingParty struct {
	*Provider
	oauth2.Config
	oidc    *oidc.Provider
	logouts chan string
}

func newParty(t *testing.T, start func(testing.TB, Options) *Provider, o Options) *relyingParty {
	t.Helper()
	rp := &relyingParty{logouts: make(chan string, 10)}
	s := httptest.NewServer(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { rp.logouts <- r.FormValue("logout_token") }),
	)
	t.Cleanup(s.Close)
	o.RedirectURIs, o.BackChannelLogout = []string{s.URL + "/callback"}, s.URL+"/logout"
	rp.Provider = start(t, o)
	var err error
	if rp.oidc, err = oidc.NewProvider(t.Context(), rp.Issuer); err != nil {
		t.Fatalf("%v\n%s", err, rp.Log())
	}
	rp.Config = oauth2.Config{
		ClientID: rp.Provider.ClientID, ClientSecret: rp.Provider.ClientSecret, Endpoint: rp.oidc.Endpoint(),
		RedirectURL: s.URL + "/callback",
		Scopes:      append([]string{"openid", "email"}, o.Scopes...)}
	if rp.Kind == "Dex" || o.Offline {
		rp.Scopes = append(rp.Scopes, "offline_access")
	}
	return rp
}

// signIn returns a user's tokens and the claims of the ID token.
func (rp *relyingParty) signIn(t *testing.T, p *Person, more ...oauth2.AuthCodeOption) (*oauth2.Token, map[string]any) {
	t.Helper()
	verifier := oauth2.GenerateVerifier()
	back, err := p.Visit(rp.AuthCodeURL("s", append(more, oauth2.S256ChallengeOption(verifier), oidc.Nonce("n"))...),
		rp.RedirectURL)
	if err != nil {
		t.Fatalf("%v\n%s", err, rp.Log())
	}
	token, err := rp.Exchange(t.Context(), back.Query().Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatalf("%v (%s)\n%s", err, back, rp.Log())
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := rp.oidc.Verifier(&oidc.Config{ClientID: rp.Config.ClientID}).Verify(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil || id.Nonce != "n" {
		t.Fatalf("got %v, %v", claims, err)
	}
	return token, claims
}

func (rp *relyingParty) refresh(refresh string) (*oauth2.Token, error) {
	return rp.TokenSource(context.Background(), &oauth2.Token{RefreshToken: refresh}).Token()
}

// refused reports whether err is the error for an invalid refresh token. Dex returns
// invalid_request, against RFC 6749 §5.2.
func (rp *relyingParty) refused(err error) bool {
	var e *oauth2.RetrieveError
	want := map[string]string{"Dex": "invalid_request"}[rp.Kind]
	return errors.As(err, &e) && e.ErrorCode == cmp.Or(want, "invalid_grant")
}

// active introspects a token and reports whether it is active.
func (rp *relyingParty) active(t *testing.T, token string) bool {
	t.Helper()
	var m struct {
		Introspection string `json:"introspection_endpoint"`
	}
	if err := rp.oidc.Claims(&m); err != nil || m.Introspection == "" {
		t.Fatalf("no introspection: %v", err)
	}
	req, _ := http.NewRequest(http.MethodPost, m.Introspection,
		strings.NewReader(url.Values{"token": {token}}.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(url.QueryEscape(rp.Config.ClientID), url.QueryEscape(rp.Config.ClientSecret))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return strings.Contains(string(b), `"active":true`)
}

// TestProviders checks that both providers behave as the tests of delegation assume.
func TestProviders(t *testing.T) {
	for name, start := range map[string]func(testing.TB, Options) *Provider{"Dex": Dex, "node-oidc-provider": Node} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rp := newParty(t, start, Options{})
			token, claims := rp.signIn(t, NewPerson(Alice))
			if token.RefreshToken == "" || claims["sub"] == "" {
				t.Fatalf("got %v", claims)
			}
			next, err := rp.refresh(token.RefreshToken)
			if err != nil || next.RefreshToken == token.RefreshToken || next.RefreshToken == "" {
				t.Fatalf("refresh tokens do not rotate: %v", err)
			}
			if got := rp.TokenCalls("refresh_token"); got != 1 {
				t.Errorf("counted %d refreshes, want 1", got)
			}
			if got := rp.Tokens(); len(got) != 2 || got[0]["refresh_token"] != token.RefreshToken ||
				got[1]["access_token"] != next.AccessToken {
				t.Errorf("recorded %d answers with tokens", len(got))
			}
			if !rp.active(t, next.RefreshToken) || !rp.active(t, next.AccessToken) {
				t.Error("a live token is not active")
			}
			rp.Revoke(t, Alice)
			if _, err := rp.refresh(next.RefreshToken); !rp.refused(err) {
				t.Errorf("after revocation: %v", err)
			}
			if rp.active(t, next.RefreshToken) {
				t.Error("a revoked refresh token is active")
			}
			if got := rp.active(t, next.AccessToken); got == rp.RevokesAccess {
				t.Errorf("after revocation the access token being active is %t", got)
			}
		})
	}
}

func TestASpentRefreshTokenIsRefused(t *testing.T) {
	for name, start := range map[string]func(testing.TB, Options) *Provider{"Dex": Dex, "node-oidc-provider": Node} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rp := newParty(t, start, Options{})
			token, _ := rp.signIn(t, NewPerson(Alice))
			next, err := rp.refresh(token.RefreshToken)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := rp.refresh(token.RefreshToken); err == nil {
				t.Error("a spent refresh token works")
			}
			if _, err := rp.refresh(next.RefreshToken); name != "Dex" && !rp.refused(err) {
				t.Errorf("after a replay its successor: %v", err)
			}
		})
	}
}

func TestNode(t *testing.T) {
	rp := newParty(t, Node, Options{Scopes: []string{"calendar"}, TokenTTL: 90 * time.Second})
	alice := NewPerson(Alice)
	token, claims := rp.signIn(t, alice)
	if sid, _ := claims["sid"].(string); sid == "" {
		t.Errorf("the ID token names no session: %v", claims)
	}
	if pages := strings.Join(alice.Pages, ""); !strings.Contains(pages, "calendar") ||
		strings.Contains(pages, "email</b>") {
		t.Errorf("the pages were %s", pages)
	}
	t.Run("a session needs no form", func(t *testing.T) {
		before := len(alice.Pages)
		if _, again := rp.signIn(t, alice); again["sid"] != claims["sid"] || len(alice.Pages) != before {
			t.Errorf("got %v after %d pages", again, len(alice.Pages)-before)
		}
	})
	t.Run("it demands PKCE", func(t *testing.T) {
		back, err := alice.Visit(rp.AuthCodeURL("s"), rp.RedirectURL)
		if err != nil || back.Query().Get("error") != "invalid_request" || back.Query().Get("iss") != rp.Issuer {
			t.Errorf("got %v, %v", back, err)
		}
	})
	t.Run("it wants no resource", func(t *testing.T) {
		back, err := alice.Visit(
			rp.AuthCodeURL("s", oauth2.S256ChallengeOption("v"),
				oauth2.SetAuthURLParam("resource", "https://x.example/mcp")), rp.RedirectURL,
		)
		if err != nil || back.Query().Get("error") == "" {
			t.Errorf("got %v, %v", back, err)
		}
	})
	t.Run("the end of a session is told, and its tokens end", func(t *testing.T) {
		if _, err := alice.Visit(rp.SessionEnd, rp.Issuer+"/session/end/success"); err != nil {
			t.Fatal(err)
		}
		select {
		case logout := <-rp.logouts:
			if strings.Count(logout, ".") != 2 {
				t.Errorf("got %q", logout)
			}
		case <-time.After(time.Minute):
			t.Errorf("no message was sent\n%s", rp.Log())
		}
		if _, err := rp.refresh(token.RefreshToken); !rp.refused(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a closed account", func(t *testing.T) {
		bob := NewPerson(Bob)
		token, _ := rp.signIn(t, bob)
		rp.Disable(t, Bob)
		if _, err := rp.refresh(token.RefreshToken); !rp.refused(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestOfflineAccess(t *testing.T) {
	rp := newParty(t, Node, Options{Offline: true})
	alice := NewPerson(Alice)
	if token, _ := rp.signIn(t, alice); token.RefreshToken != "" {
		t.Error("a refresh token without consent")
	}
	if token, _ := rp.signIn(t, alice, oauth2.SetAuthURLParam("prompt", "consent")); token.RefreshToken == "" {
		t.Error("no refresh token with consent")
	}
}

func TestDownAndUp(t *testing.T) {
	p := Node(t, Options{RedirectURIs: []string{"http://127.0.0.1:1/callback"}, Host: "127.0.0.1"})
	get := func() string {
		resp, err := http.Get(p.Issuer + "/.well-known/openid-configuration")
		if err != nil {
			return "down"
		}
		defer resp.Body.Close()
		return resp.Status
	}
	var got []string
	for _, step := range []func(){func() {}, p.Down, func() { p.Up(t) }} {
		step()
		got = append(got, get())
	}
	if want := "[200 OK down 200 OK]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	p.Slow(300 * time.Millisecond)
	if begin := time.Now(); get() != "200 OK" || time.Since(begin) < 300*time.Millisecond {
		t.Error("it is not slow")
	}
}
