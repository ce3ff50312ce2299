package thirdparty

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/fakeupstream"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func gitHub(t *testing.T, edit func(*Connector)) (*connector, *fakeupstream.Upstream) {
	t.Helper()
	u := fakeupstream.Start(t)
	u.Behave(func(b *fakeupstream.Behaviour) { b.AccessTTL, b.NoRefresh, b.NoResponseIssuer = -1, true, true })
	c := Connector{ID: "github", Type: "github", BaseURL: u.URL, ClientID: u.ClientID, ClientSecret: u.ClientSecret}
	if edit != nil {
		edit(&c)
	}
	return connect(t, c), u
}

func TestGitHub(t *testing.T) {
	c, u := gitHub(t, nil)
	have, p := signedIn(t, c, u)
	if p.Subject != "1001" || p.Label != "alice" || text(p.Claims, "email") != "alice@example.com" || !truth(p.Claims, "email_verified") {
		t.Errorf("AS-217: got %q %q %v", p.Subject, p.Label, p.Claims)
	}
	if got := list(p.Claims, "verified_emails"); !slices.Equal(got, []string{"alice@example.com"}) {
		t.Errorf("verified addresses: got %q", got)
	}
	if !have.Expires.IsZero() || have.Refresh != "" || !have.Scopes.Has("read:user", "user:email") {
		t.Errorf("scopes %q, expires %v", have.Scopes, have.Expires)
	}
	for _, r := range u.Requests(fakeupstream.GitHub) {
		if r.Path == "/api/v3/user/orgs" || r.Header.Get("User-Agent") == "" {
			t.Errorf("%s as %q", r.Path, r.Header.Get("User-Agent"))
		}
	}
	if v := u.Violations(); len(v) != 0 {
		t.Errorf("violations: %q", v)
	}
	_, _, err := c.refresh(t.Context(), have)
	wantError(t, err, errUnsupported)
	if err := c.revoke(t.Context(), have); err != nil {
		t.Errorf("revoke: %v", err)
	}
	u.RevokeAll(fakeupstream.Alice.Subject)
	_, err = c.inspect(t.Context(), have)
	wantError(t, err, errDenied)
	_, _, err = c.exchange(t.Context(), "no-such-code", "v", "n", c.redirectURI())
	wantError(t, err, errDenied)
}

func TestGitHubRules(t *testing.T) {
	many := make([]string, 250)
	for i := range many {
		many[i] = fmt.Sprintf("org-%03d", i)
	}
	endless := make([]string, 1500)
	for i := range endless {
		endless[i] = fmt.Sprintf("org-%04d", i)
	}
	for _, tt := range []struct {
		name   string
		allow  Rules
		person fakeupstream.Person
		want   bool
		asks   int // for organisations
	}{
		{"a member", Rules{Organizations: []string{"Acme"}}, fakeupstream.Person{Organizations: []string{"other", "acme"}}, true, 1},
		{"no member", Rules{Organizations: []string{"acme"}}, fakeupstream.Person{Organizations: []string{"other"}}, false, 1},
		{"no organisation", Rules{Organizations: []string{"acme"}}, fakeupstream.Person{}, false, 1},
		{"of a team", Rules{Teams: []string{"acme/core"}}, fakeupstream.Person{Teams: []string{"acme/core"}}, true, 1},
		{"of the team of that name elsewhere", Rules{Teams: []string{"acme/core"}}, fakeupstream.Person{Teams: []string{"evil/core"}}, false, 1},
		{"a team as a group", Rules{Groups: []string{"acme/core"}}, fakeupstream.Person{Teams: []string{"acme/core"}}, true, 1},
		{"on the third page", Rules{Organizations: []string{"org-249"}}, fakeupstream.Person{Organizations: many}, true, 3},
		{"beyond the pages that are read", Rules{Organizations: []string{"org-1400"}}, fakeupstream.Person{Organizations: endless}, false, 10},
		{"by expression", Rules{Expression: `"acme" in claims.organizations`}, fakeupstream.Person{Organizations: []string{"acme"}}, true, 1},
		{"a verified address", Rules{Domains: []string{"acme.example"}}, fakeupstream.Person{Email: "x@acme.example"}, true, 0},
		{"an address that is not verified", Rules{Domains: []string{"acme.example"}}, fakeupstream.Person{Email: "x@acme.example", Unverified: true}, false, 0},
	} {
		t.Run("GitHub: "+tt.name, func(t *testing.T) {
			c, u := gitHub(t, func(c *Connector) { c.Allow = tt.allow })
			tt.person.Subject, tt.person.ID, tt.person.Login = "s", 7, "seven"
			u.SetPeople(tt.person)
			_, p := signedIn(t, c, u)
			if got := c.admit(p) == nil; got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			asks := len(slices.DeleteFunc(u.Requests(fakeupstream.GitHub), func(r fakeupstream.Request) bool { return r.Path != "/api/v3/user/orgs" }))
			if asks != tt.asks {
				t.Errorf("asked %d times, want %d", asks, tt.asks)
			}
		})
	}
}

func TestGitHubFailures(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault fakeupstream.Fault
		want  error
	}{
		{"suspended", fakeupstream.Fault{Status: 403, Body: `{"message":"Sorry. Your account was suspended."}`}, errDenied},
		{"asked too often", fakeupstream.Fault{Status: 403, Header: http.Header{"X-Ratelimit-Remaining": {"0"}}, Body: "{}"}, errUnreachable},
		{"not for this app", fakeupstream.Fault{Status: 403, Body: `{"message":"Resource not accessible by integration"}`}, errMisconfigured},
		{"bad credentials", fakeupstream.Fault{Status: 401, Body: "{}"}, errDenied},
		{"an endless page", fakeupstream.Huge, errGarbage},
		{"a page of something else", fakeupstream.Fault{Body: `[1,2,3]`}, errGarbage},
		{"down", fakeupstream.Down, errUnreachable},
	} {
		t.Run("AS-218 AS-223 GitHub: "+tt.name, func(t *testing.T) {
			c, u := gitHub(t, func(c *Connector) { c.Allow.Organizations = []string{"acme"} })
			have, _ := signedIn(t, c, u)
			u.Fail(fakeupstream.GitHub, tt.fault)
			_, err := c.inspect(t.Context(), have)
			wantError(t, err, tt.want)
		})
	}
}

func TestGitHubAddresses(t *testing.T) {
	for base, want := range map[string]string{
		"https://github.com": "https://api.github.com", "https://acme.ghe.com": "https://api.acme.ghe.com", "https://git.example.com": "https://git.example.com/api/v3",
	} {
		if got := gitHubAPI(&Connector{BaseURL: base}); got != want {
			t.Errorf("%s: got %s", base, got)
		}
	}
}

// TestGitHubSaysItself: what an account says of itself is no rule's business.
func TestGitHubSaysItself(t *testing.T) {
	world := web{
		"https://api.github.com/user": says(map[string]any{
			"id": 7, "login": "mallory", "email": "boss@example.com", "email_verified": true, "verified_emails": []string{"boss@example.com"},
			"organizations": []string{"acme"}, "teams": []string{"acme/core"}, "groups": []string{"acme"},
		}),
		"https://api.github.com/user/emails": says([]any{map[string]any{"email": "boss@example.com", "verified": false, "primary": true}}),
	}
	c := connectIn(t, Connector{ID: "github", Type: "github", ClientID: "c", ClientSecret: "s"}, surroundings{transport: world})
	for _, scopes := range []oauth.Scopes{{"read:user", "user:email"}, {"read:user"}} {
		p, err := c.inspect(t.Context(), tokens{Access: "a", Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"email", "email_verified", "organizations", "teams", "groups"} {
			if _, ok := p.Claims[name]; ok {
				t.Errorf("AS-224 with %q: %s is %v", scopes, name, p.Claims[name])
			}
		}
		if len(c.preset.addresses(p.Claims)) != 0 {
			t.Errorf("AS-224: verified addresses %q", c.preset.addresses(p.Claims))
		}
	}
}
