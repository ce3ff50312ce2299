package provider

import (
	"net/http"
	"slices"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func gitHub(t *testing.T, edit func(*Settings)) (Provider, *fakeidp.Upstream) {
	t.Helper()
	u := fakeidp.Start(t)
	u.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL, b.NoRefresh, b.NoResponseIssuer = -1, true, true })
	c := Settings{Type: "github", BaseURL: u.URL, ClientID: u.ClientID, ClientSecret: u.ClientSecret}
	if edit != nil {
		edit(&c)
	}
	return connect(t, c), u
}

func TestGitHub(t *testing.T) {
	c, u := gitHub(t, nil)
	have, p := signedIn(t, c, u)
	if p.Subject != "1001" || p.Label != "alice" || claim.Text(p.Claims, "email") != "alice@example.com" ||
		!claim.True(p.Claims, "email_verified") {
		t.Errorf("AS-217: got %q %q %v", p.Subject, p.Label, p.Claims)
	}
	if got := claim.List(p.Claims, "verified_emails"); !slices.Equal(got, []string{"alice@example.com"}) {
		t.Errorf("verified addresses: got %q", got)
	}
	if !have.Expires.IsZero() || have.Refresh != "" || !have.Scopes.Has("read:user", "user:email") {
		t.Errorf("scopes %q, expires %v", have.Scopes, have.Expires)
	}
	for _, r := range u.Requests(fakeidp.GitHub) {
		if r.Path == "/api/v3/user/orgs" || r.Header.Get("User-Agent") == "" {
			t.Errorf("%s as %q", r.Path, r.Header.Get("User-Agent"))
		}
	}
	if v := u.Violations(); len(v) != 0 {
		t.Errorf("violations: %q", v)
	}
	_, _, err := c.Refresh(t.Context(), have)
	wantError(t, err, ErrUnsupported)
	if err := c.Revoke(t.Context(), have); err != nil {
		t.Errorf("revoke: %v", err)
	}
	u.RevokeAll(fakeidp.Alice.Subject)
	_, err = c.Inspect(t.Context(), have)
	wantError(t, err, ErrDenied)
	_, _, err = c.Exchange(t.Context(), "no-such-code", "v", "n", callback)
	wantError(t, err, ErrDenied)
}

func TestGitHubFailures(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault fakeidp.Fault
		want  error
	}{
		{"suspended", fakeidp.Fault{Status: 403, Body: `{"message":"Sorry. Your account was suspended."}`}, ErrDenied},
		{"asked too often",
			fakeidp.Fault{Status: 403, Header: http.Header{"X-Ratelimit-Remaining": {"0"}}, Body: "{}"},
			ErrUnreachable},
		{"not for this app", fakeidp.Fault{Status: 403, Body: `{"message":"Resource not accessible by integration"}`},
			ErrMisconfigured},
		{"bad credentials", fakeidp.Fault{Status: 401, Body: "{}"}, ErrDenied},
		{"an endless page", fakeidp.Huge, ErrGarbage},
		{"a page of something else", fakeidp.Fault{Body: `[1,2,3]`}, ErrGarbage},
		{"down", fakeidp.Down, ErrUnreachable},
	} {
		t.Run("AS-218 AS-223 GitHub: "+tt.name, func(t *testing.T) {
			c, u := gitHub(t, func(s *Settings) { s.Memberships = true })
			have, _ := signedIn(t, c, u)
			u.Fail(fakeidp.GitHub, tt.fault)
			_, err := c.Inspect(t.Context(), have)
			wantError(t, err, tt.want)
		})
	}
}

func TestGitHubAddresses(t *testing.T) {
	for base, want := range map[string]string{
		"https://github.com": "https://api.github.com", "https://acme.ghe.com": "https://api.acme.ghe.com",
		"https://git.example.com": "https://git.example.com/api/v3",
	} {
		if got := gitHubAPI(&Settings{BaseURL: base}); got != want {
			t.Errorf("%s: got %s", base, got)
		}
	}
}

// TestGitHubSaysItself: rules ignore the values that an account sets for itself.
func TestGitHubSaysItself(t *testing.T) {
	world := web{
		"https://api.github.com/user": says(map[string]any{
			"id": 7, "login": "mallory", "email": "boss@example.com", "email_verified": true,
			"verified_emails": []string{"boss@example.com"},
			"organizations":   []string{"acme"}, "teams": []string{"acme/core"}, "groups": []string{"acme"},
		}),
		"https://api.github.com/user/emails": says([]any{
			map[string]any{"email": "boss@example.com", "verified": false, "primary": true},
		}),
	}
	c := connectIn(t, Settings{Type: "github", ClientID: "c", ClientSecret: "s"}, Options{Transport: world})
	for _, scopes := range []oauth.Scopes{{"read:user", "user:email"}, {"read:user"}} {
		p, err := c.Inspect(t.Context(), Tokens{Access: "a", Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"email", "email_verified", "organizations", "teams", "groups"} {
			if _, ok := p.Claims[name]; ok {
				t.Errorf("with %q: %s is %v", scopes, name, p.Claims[name])
			}
		}
		if got := claim.List(p.Claims, "verified_emails"); len(got) != 0 {
			t.Errorf("verified addresses %q", got)
		}
	}
}
