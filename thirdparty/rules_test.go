package thirdparty

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

func ready(t *testing.T, c Connector) *connector {
	t.Helper()
	out, err := newConnector(c, issuer, provider.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// comesBack returns the profile of the account that a provider returns.
func comesBack(t *testing.T, c *connector, u *fakeidp.Upstream) provider.Profile {
	t.Helper()
	q := provider.AuthorizationRequest{State: "s", Verifier: strings.Repeat("v", 43), RedirectURI: c.redirectURI()}
	at, err := c.AuthorizeURL(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	back, err := u.Visit(at)
	if err != nil {
		t.Fatal(err)
	}
	_, p, err := c.Exchange(t.Context(), back.Query().Get("code"), q.Verifier, "", q.RedirectURI)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAdmit(t *testing.T) {
	c := ready(t,
		Connector{ID: "up", Type: "oidc", Issuer: "https://idp.example.com", ClientID: "c",
			Allow: Rules{Groups: []string{"secret-project"}}})
	err := c.admit(provider.Profile{Claims: map[string]any{}})
	var kept *notAllowedError
	if !errors.As(err, &kept) || kept.rule != "groups" || strings.Contains(err.Error(), "secret-project") ||
		!strings.Contains(err.Error(), "groups") {
		t.Errorf("got %v", err)
	}
	if err := c.admit(provider.Profile{Claims: map[string]any{"groups": []any{"secret-project"}}}); err != nil {
		t.Error(err)
	}
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
		person fakeidp.Person
		want   bool
		asks   int // number of requests for organisations
	}{
		{"a member", Rules{Organizations: []string{"Acme"}}, fakeidp.Person{Organizations: []string{"other", "acme"}},
			true, 1},
		{"no member", Rules{Organizations: []string{"acme"}}, fakeidp.Person{Organizations: []string{"other"}}, false,
			1},
		{"no organisation", Rules{Organizations: []string{"acme"}}, fakeidp.Person{}, false, 1},
		{"of a team", Rules{Teams: []string{"acme/core"}}, fakeidp.Person{Teams: []string{"acme/core"}}, true, 1},
		{"of the team of that name elsewhere", Rules{Teams: []string{"acme/core"}},
			fakeidp.Person{Teams: []string{"evil/core"}}, false, 1},
		{"a team as a group", Rules{Groups: []string{"acme/core"}}, fakeidp.Person{Teams: []string{"acme/core"}},
			true, 1},
		{"on the third page", Rules{Organizations: []string{"org-249"}}, fakeidp.Person{Organizations: many}, true, 3},
		{"beyond the pages that are read", Rules{Organizations: []string{"org-1400"}},
			fakeidp.Person{Organizations: endless}, false, 10},
		{"by expression", Rules{Expression: `"acme" in claims.organizations`},
			fakeidp.Person{Organizations: []string{"acme"}}, true, 1},
		{"a verified address", Rules{Domains: []string{"acme.example"}}, fakeidp.Person{Email: "x@acme.example"},
			true, 0},
		{"an address that is not verified", Rules{Domains: []string{"acme.example"}},
			fakeidp.Person{Email: "x@acme.example", Unverified: true}, false, 0},
	} {
		t.Run("GitHub: "+tt.name, func(t *testing.T) {
			u := fakeidp.Start(t)
			u.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL, b.NoRefresh, b.NoResponseIssuer = -1, true, true })
			c := ready(t,
				Connector{ID: "github", Type: "github", BaseURL: u.URL, ClientID: u.ClientID,
					ClientSecret: u.ClientSecret, Allow: tt.allow})
			tt.person.Subject, tt.person.ID, tt.person.Login = "s", 7, "seven"
			u.SetPeople(tt.person)
			p := comesBack(t, c, u)
			if got := c.admit(p) == nil; got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			asks := len(
				slices.DeleteFunc(u.Requests(fakeidp.GitHub),
					func(r fakeidp.Request) bool { return r.Path != "/api/v3/user/orgs" }),
			)
			if asks != tt.asks {
				t.Errorf("asked %d times, want %d", asks, tt.asks)
			}
		})
	}
}
