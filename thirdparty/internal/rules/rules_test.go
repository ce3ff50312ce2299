package rules

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

func claimsOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// facts describes some types of providers.
var facts = map[string]Facts{
	"oidc":   {Type: "oidc", Kinds: []string{"organizations", "teams"}},
	"github": {Type: "github", Kinds: []string{"organizations", "teams"}, VerifiedEmails: true},
	"google": {Type: "google", HostedDomain: true},
	"entra":  {Type: "entra", Kinds: []string{"tenants"}},
}

func TestRules(t *testing.T) {
	const tenant = "11111111-2222-3333-4444-555555555555"
	for _, tt := range []struct {
		name   string
		typ    string
		rules  Rules
		claims string
		want   bool
	}{
		{"no rule", "oidc", Rules{}, `{}`, true},

		{"domain of a verified address", "oidc", Rules{Domains: []string{"example.com"}},
			`{"email":"a@EXAMPLE.com","email_verified":true}`, true},
		{"verified, in words", "oidc", Rules{Domains: []string{"example.com"}},
			`{"email":"a@example.com","email_verified":"true"}`, true},
		{"domain of an address that is not verified", "oidc", Rules{Domains: []string{"example.com"}},
			`{"email":"a@example.com","email_verified":false}`, false},
		{"domain of an address of which nothing is said", "oidc", Rules{Domains: []string{"example.com"}},
			`{"email":"a@example.com"}`, false},
		{"verified is a number", "oidc", Rules{Domains: []string{"example.com"}},
			`{"email":"a@example.com","email_verified":1}`, false},
		{"subdomain", "oidc", Rules{Domains: []string{"example.com"}},
			`{"email":"a@x.example.com","email_verified":true}`, false},
		{"domain as a suffix", "oidc", Rules{Domains: []string{"example.com"}},
			`{"email":"a@evilexample.com","email_verified":true}`, false},
		{"two at signs", "oidc", Rules{Domains: []string{"example.com"}},
			`{"email":"a@example.com@evil.example","email_verified":true}`, false},
		{"hd means nothing elsewhere", "oidc", Rules{Domains: []string{"example.com"}}, `{"hd":"example.com"}`, false},
		{"every verified address of GitHub counts for a domain", "github", Rules{Domains: []string{"example.com"}},
			`{"email":"a@other.example","email_verified":true,"verified_emails":["a@other.example","a@example.com"]}`,
			true},
		{"and for an address", "github", Rules{Emails: []string{"a@example.com"}},
			`{"verified_emails":["a@other.example","a@example.com"]}`, true},
		{"verified_emails means nothing elsewhere", "oidc", Rules{Domains: []string{"example.com"}},
			`{"verified_emails":["a@example.com"]}`, false},

		{"hosted domain", "google", Rules{Domains: []string{"example.com"}}, `{"hd":"example.com"}`, true},
		{"an account with an address of the domain", "google", Rules{Domains: []string{"example.com"}},
			`{"email":"left@example.com","email_verified":true}`, false},
		{"gmail.com", "google", Rules{Domains: []string{"gmail.com"}},
			`{"email":"a@gmail.com","email_verified":true}`, true},

		{"address", "oidc", Rules{Emails: []string{"A@example.com"}},
			`{"email":"a@example.com","email_verified":true}`, true},
		{"another address that folds to it", "oidc", Rules{Emails: []string{"sk@example.com"}},
			`{"email":"\u017f\u212a@example.com","email_verified":true}`, false},
		{"domain that folds to it", "oidc", Rules{Domains: []string{"example.sk"}},
			`{"email":"a@example.\u017f\u212a","email_verified":true}`, false},
		{"address, not verified", "oidc", Rules{Emails: []string{"a@example.com"}}, `{"email":"a@example.com"}`, false},

		{"group", "oidc", Rules{Groups: []string{"staff", "admin"}}, `{"groups":["users","staff"]}`, true},
		{"group, one string", "oidc", Rules{Groups: []string{"staff"}}, `{"groups":"staff"}`, true},
		{"group, case", "oidc", Rules{Groups: []string{"staff"}}, `{"groups":["Staff"]}`, false},
		{"no groups", "oidc", Rules{Groups: []string{"staff"}}, `{}`, false},
		{"groups of another type", "oidc", Rules{Groups: []string{"staff"}}, `{"groups":{"staff":true}}`, false},

		{"tenant", "entra", Rules{Tenants: []string{strings.ToUpper(tenant)}}, `{"tid":"` + tenant + `"}`, true},
		{"another tenant", "entra", Rules{Tenants: []string{tenant}},
			`{"tid":"99999999-2222-3333-4444-555555555555"}`, false},

		{"PL2 RFC 5321 4.1.2: no @", "oidc", Rules{Domains: []string{"example.com"}},
			`{"email":"example.com","email_verified":true}`, false},
		{"PL2 RFC 5321 4.1.2: nothing before the @", "oidc", Rules{Domains: []string{"example.com"}},
			`{"email":"@example.com","email_verified":true}`, false},
		{"PL2 RFC 5321 4.1.2: two of them", "oidc", Rules{Domains: []string{"example.com"}},
			`{"email":"evil@evil.example@example.com","email_verified":true}`, false},
		{"PL2 two of them at GitHub", "github", Rules{Domains: []string{"example.com"}},
			`{"verified_emails":["evil@evil.example@example.com"]}`, false},

		{"all kinds must hold", "oidc", Rules{Domains: []string{"example.com"}, Groups: []string{"staff"}},
			`{"email":"a@example.com","email_verified":true,"groups":["x"]}`, false},
		{"all kinds hold", "oidc", Rules{Domains: []string{"example.com"}, Groups: []string{"staff"}},
			`{"email":"a@example.com","email_verified":true,"groups":["staff"]}`, true},
		{"an expression besides", "oidc", Rules{Groups: []string{"staff"}, Expression: "claims.level > 3"},
			`{"groups":["staff"],"level":3}`, false},
	} {
		t.Run(tt.typ+": "+tt.name, func(t *testing.T) {
			r, err := Compile("allow", tt.rules, facts[tt.typ])
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Check(claimsOf(t, tt.claims)); (got == "") != tt.want {
				t.Errorf("got %q, want %v", got, tt.want)
			}
		})
	}
}

func TestScopeRules(t *testing.T) {
	const here, there = "https://mcp.example.com", "https://other.example.com"
	list, err := CompileScopes([]ScopeRule{
		{Resource: here, Scopes: oauth.Scopes{"admin"}, Groups: []string{"staff"}},
		{Resource: here, Scopes: oauth.Scopes{"admin", "write"}, Expression: "claims.level > 3"},
		{Scopes: oauth.Scopes{"delete"}, Groups: []string{"staff"}, Expression: "claims.level > 3"},
	}, facts["oidc"])
	if err != nil {
		t.Fatal(err)
	}
	all := oauth.Scopes{"read", "write", "admin", "delete"}
	for _, tt := range []struct {
		name, claims, resource string
		want                   oauth.Scopes
	}{
		{"no person in particular", `{}`, here, oauth.Scopes{"read"}},
		{"by one of two rules", `{"groups":["staff"],"level":1}`, here, oauth.Scopes{"read", "admin"}},
		{"by the other", `{"level":5}`, here, oauth.Scopes{"read", "write", "admin"}},
		{"by all", `{"groups":["staff"],"level":5}`, here, all},
		{"elsewhere", `{}`, there, oauth.Scopes{"read", "write", "admin"}},
	} {
		t.Run("RS-202 scopes by policy: "+tt.name, func(t *testing.T) {
			if got, _ := list.Permitted(claimsOf(t, tt.claims), tt.resource, all); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if !slices.Equal(all, oauth.Scopes{"read", "write", "admin", "delete"}) {
		t.Error("the scopes that were asked about have changed")
	}
}
