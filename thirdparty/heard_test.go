package thirdparty

import (
	"errors"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// Security M3 of the providers' report: claims that rules use are updated at every check.
func TestRulesHoldAtChecks(t *testing.T) {
	silent := func(b *fakeidp.Behaviour) { // only the ID token contains groups
		b.EditUserInfo = func(claims map[string]any) { delete(claims, "groups") }
	}
	putOut := func(r *rig) {
		r.up.EditPerson(fakeidp.Alice.Subject,
			func(p *fakeidp.Person) { p.Claims = map[string]any{"groups": []string{"guests"}} })
	}
	for name, rule := range map[string]func(*Connector){
		"PM3: groups":        func(c *Connector) { c.Allow.Groups = []string{"staff"} },
		"PM3: an expression": func(c *Connector) { c.Allow.Expression = `"staff" in claims.groups` },
		"PM3: by introspection": func(c *Connector) {
			c.Allow.Groups, c.IntrospectionURL = []string{"staff"}, c.Issuer+"/introspect"
		},
	} {
		t.Run(name+" that the ID token alone tells", func(t *testing.T) {
			r := newRig(t, func(c *Config) { rule(&c.Connectors[0]) })
			r.up.SetPeople(withGroups(fakeidp.Alice, "staff"))
			r.up.Behave(silent)
			a, g := r.signIn("")
			r.Advance(6 * time.Minute)
			if err := r.Check(t.Context(), a.Upstream, 0); err != nil || !r.active(g) {
				t.Fatalf("in the group: %v", err)
			}
			putOut(r)
			r.Advance(6 * time.Minute)
			if err := r.Check(t.Context(), a.Upstream, 0); !errors.Is(err, storage.ErrRevoked) || r.active(g) {
				t.Errorf("put out of the group: %v", err)
			}
			if reason := r.upstream(a.Upstream).EndReason; reason != reasonNotAllowed {
				t.Errorf("ended for %q", reason)
			}
		})
	}
	t.Run("PM3: a scope rule", func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Connectors[0].ScopeRules = []ScopeRule{
				{Resource: resource, Scopes: oauth.Scopes{"admin"}, Groups: []string{"staff"}},
			}
		})
		r.up.SetPeople(withGroups(fakeidp.Alice, "staff"))
		r.up.Behave(silent)
		a, _ := r.signIn("")
		putOut(r)
		r.Advance(6 * time.Minute)
		if err := r.Check(t.Context(), a.Upstream, 0); err != nil {
			t.Fatal(err)
		}
		got, _, err := r.Permit(t.Context(), a.Upstream, resource, oauth.Scopes{"admin"})
		if err != nil || len(got) != 0 {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("PM3: claims of user info, which introspection does not tell", func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Connectors[0].Allow.Groups, c.Connectors[0].IntrospectionURL = []string{"staff"},
				c.Connectors[0].Issuer+"/introspect"
		})
		only := func(groups ...string) fakeidp.Person {
			p := fakeidp.Alice
			p.UserInfoOnly = map[string]any{"groups": groups}
			return p
		}
		r.up.SetPeople(only("staff"))
		a, g := r.signIn("")
		r.up.SetPeople(only("guests"))
		r.Advance(6 * time.Minute)
		if err := r.Check(t.Context(), a.Upstream, 0); !errors.Is(err, storage.ErrRevoked) || r.active(g) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("what user info tells is asked there, and spends no refresh token", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Connectors[0].Allow.Groups = []string{"staff"} })
		r.up.SetPeople(withGroups(fakeidp.Alice, "staff"))
		a, _ := r.signIn("")
		r.up.Forget()
		r.Advance(6 * time.Minute)
		if err := r.Check(t.Context(), a.Upstream, 0); err != nil || r.up.Calls(fakeidp.Token) != 0 ||
			r.up.Calls(fakeidp.UserInfo) != 1 {
			t.Errorf("got %v, %d renewals", err, r.up.Calls(fakeidp.Token))
		}
	})
}

// Security L10 of the providers' report.
func TestIntrospectionOfAnotherToken(t *testing.T) {
	for name, edit := range map[string]func(map[string]any){
		"PL10 RFC 7662 4: of another person": func(a map[string]any) { a["sub"] = fakeidp.Bob.Subject },
		"PL10 RFC 7662 4: of another client": func(a map[string]any) { a["client_id"] = "another" },
	} {
		t.Run(name+" is no yes", func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				c.Connectors[0].IntrospectionURL, c.Connectors[0].Outage = c.Connectors[0].Issuer+"/introspect",
					10*time.Minute
			})
			a, g := r.signIn("")
			r.Advance(6 * time.Minute)
			if err := r.Check(t.Context(), a.Upstream, 0); err != nil {
				t.Fatalf("of this one: %v", err)
			}
			r.up.Behave(func(b *fakeidp.Behaviour) { b.EditIntrospection = edit })
			r.Advance(11 * time.Minute)
			if err := r.Check(t.Context(), a.Upstream, 0); err == nil {
				t.Errorf("got a yes; the grant is active: %v", r.active(g))
			}
		})
	}
}

// Security L3 of the providers' report: only a source that names an address can verify it.
func TestWhoVouchesForAnAddress(t *testing.T) {
	for _, tt := range []struct {
		name              string
		idToken, userInfo map[string]any
		want              bool
	}{
		{"PL3: verified, of no address, beside an address that is not", map[string]any{"email_verified": true},
			map[string]any{"email": "boss@example.com", "email_verified": false}, false},
		{"PL3: verified, of no address, beside an address", map[string]any{"email_verified": true},
			map[string]any{"email": "boss@example.com"}, false},
		{"PL3: the other way round", map[string]any{"email": "boss@example.com"},
			map[string]any{"email_verified": true}, false},
		{"PL3: of another address", map[string]any{"email": "boss@example.com"},
			map[string]any{"email": "me@example.com", "email_verified": true}, false},
		{"of the same address", map[string]any{"email": "boss@example.com"},
			map[string]any{"email": "boss@example.com", "email_verified": true}, true},
		{"by one source", map[string]any{"email": "boss@example.com", "email_verified": true}, map[string]any{}, true},
		{"by the other", map[string]any{}, map[string]any{"email": "boss@example.com", "email_verified": true}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			claims := func(source string, c map[string]any) provider.Profile {
				return provider.Profile{Subject: "s", Claims: c, Parts: map[string]map[string]any{source: c}}
			}
			first := claims("id_token", tt.idToken).Over(claims("userinfo", tt.userInfo))
			c := ready(t,
				Connector{ID: "up", Type: "oidc", Issuer: "https://idp.example.com", ClientID: "c",
					Allow: Rules{Emails: []string{"boss@example.com"}}})
			for _, p := range []provider.Profile{first, claims("userinfo", tt.userInfo).Over(first)} {
				if got := c.admit(p) == nil; got != tt.want {
					t.Errorf("got %v of %v", got, p.Claims)
				}
			}
		})
	}
}

// Security L4 of the providers' report.
func TestOpenConditions(t *testing.T) {
	for source, want := range map[string]int{
		`!("suspended" in claims.groups)`:                                                 1,
		`"suspended" not in claims.groups && claims.email_verified`:                       1,
		`claims.status != "blocked"`:                                                      1,
		`!(claims.status == "blocked")`:                                                   1,
		`claims.groups != nil && !("suspended" in claims.groups)`:                         0,
		`claims.groups != nil && claims.status != "x" && !("suspended" in claims.groups)`: 1,
		`"staff" in claims.groups`:                                                        0,
		`!claims.suspended`:                                                               0, // fails without the claim
	} {
		c := Connector{ID: "corp", Allow: Rules{Expression: source}}
		if got := c.Warnings(); len(got) != want {
			t.Errorf("PL4: %s: got %q, want %d", source, got, want)
		}
		c = Connector{ID: "corp", ScopeRules: []ScopeRule{{Expression: source}}}
		if got := c.Warnings(); len(got) != want {
			t.Errorf("PL4: in a scope rule: %s: got %q, want %d", source, got, want)
		}
	}
}
