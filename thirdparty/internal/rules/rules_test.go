package rules

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

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

// facts are those of some types of providers.
var facts = map[string]Facts{
	"oidc":   {Type: "oidc", Kinds: []string{"organizations", "teams"}},
	"github": {Type: "github", Kinds: []string{"organizations", "teams"}, VerifiedEmails: true},
	"google": {Type: "google", HostedDomain: true},
	"entra":  {Type: "entra", Kinds: []string{"tenants"}},
}

// maxClaims is what is kept of a person at most, as JSON.
const maxClaims = 64 << 10

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

func TestExpression(t *testing.T) {
	claims := claimsOf(t,
		`{"email":"a@example.com","email_verified":true,"groups":["staff","dev"],"level":5,"org":{"unit":"x"},"hd":"example.com","nothing":null}`)
	for source, want := range map[string]bool{
		`true`:                  true,
		`claims.email_verified`: true,
		`claims.email_verified && "staff" in claims.groups`: true,
		`"boss" in claims.groups`:                           false,
		`claims.level >= 5 and claims.org.unit == "x"`:      true,
		`claims.level == 5`:                                 true,
		`claims["org"]["unit"] == "x"`:                      true,
		`claims.email endsWith "@example.com"`:              true,
		`claims.email matches "^[^@]+@example\\.com$"`:      true,
		`let g = claims.groups; len(g) == 2`:                true,
		`any(claims.groups, # in ["x", "dev"])`:             true,
		`any(claims.groups, # startsWith "st")`:             true,
		`all(claims.groups, len(#) > 10)`:                   false,
		`claims?.missing?.deeper == nil`:                    true,
		// What fails or is not boolean is not true.
		`claims.missing`:               false,
		`claims.missing.deeper == "x"`: false,
		`claims.level`:                 false,
		`claims.level + 1`:             false,
		`claims.email`:                 false,
		`claims.nothing > 3`:           false,
		`any(claims.level, true)`:      false,
		`claims.level > "x"`:           false,
		`"x" in claims.missing`:        false,
	} {
		t.Run(source, func(t *testing.T) {
			c, err := compile(source)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.holds(claims); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
	for _, source := range []string{
		"", " ", "1 + 1", `"yes"`, "claims.a &&", "other", "claim.email", "env", "$env", "len(claims.groups)",
		"claims.email matches claims.pattern", "let x = claims.groups; any(x, 'b' in x)",
		"1..1000000000 == nil", "any(1..10, # > 3)", "len([1..3]) > 0", `repeat("x", 1000000) == ""`, "now() == nil",
		`fromJSON("{}") == nil`, "toJSON(claims) == ''",
		"all(claims.a, all(#, # == 1))", "all(claims.groups, # in claims.other)",
		"any(claims.groups, any(filter(claims.groups, # != ''), true))", `date("2024-01-01") == nil`,
		"let x = 1; y", strings.Repeat("true && ", 1000) + "true", strings.Repeat("!", 4000) + "true",
		strings.Repeat("x", maxExpression+1),
	} {
		t.Run("refused: "+source[:min(len(source), 40)], func(t *testing.T) {
			if c, err := compile(source); err == nil {
				t.Errorf("compiled to %v", c)
			}
		})
	}
}

// TestClaimsElsewhere: what is kept from a condition must not make it true by its absence.
func TestClaimsElsewhere(t *testing.T) {
	const elsewhere = `"_claim_names":{"groups":"src1"},"_claim_sources":{"src1":{"endpoint":"https://graph.example.com"}}`
	for _, tt := range []struct {
		name, source, claims string
		want                 bool
	}{
		{"not in a group, of which there are too many", `!("contractors" in claims.groups)`, `{` + elsewhere + `}`,
			false},
		{"the same in Entra's short form", `"contractors" not in claims.groups`, `{"hasgroups":true}`, false},
		{"the same in words", `"contractors" not in claims.groups`, `{"hasgroups":"true"}`, false},
		{"of which there are none", `"contractors" not in claims.groups`, `{}`, true},
		{"PL4 nor does an empty list beside the reference tell", `!("contractors" in claims.groups)`,
			`{"groups":[],` + elsewhere + `}`, false},
		{"which are there after all", `"contractors" not in claims.groups`, `{"groups":["staff"],` + elsewhere + `}`,
			true},
		{"another claim", `claims.level == 5`, `{"level":5,` + elsewhere + `}`, true},
	} {
		t.Run("OIDC 5.6.2 "+tt.name, func(t *testing.T) {
			c, err := compile(tt.source)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.holds(claimsOf(t, tt.claims)); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestExpressionTime: the claims are not the operator's.
func TestExpressionTime(t *testing.T) {
	many := make([]any, maxClaims/4)
	for i := range many {
		many[i] = "a"
	}
	claims := map[string]any{"groups": many, "text": strings.Repeat("a", maxClaims)}
	for _, source := range []string{
		`any(claims.groups, # == "b")`, `count(claims.groups, # == "a") > 3`, `claims.text matches "(a+)+$b"`,
		`len(filter(claims.groups, # == "a")) > 3`,
		`len(split(claims.text, "")) > 3`, `any(split(claims.text, ""), # == "b")`,
		`all(claims.groups, upper(#) matches "^A+$")`,
	} {
		c, err := compile(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		done := make(chan bool, 1)
		go func() { done <- c.holds(claims) }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Errorf("%s takes longer than a minute", source)
		}
	}
}

func FuzzExpression(f *testing.F) {
	for _, s := range []string{
		"true", `claims.a == "b"`, `any(claims.groups, # in ["a"])`, "claims.a.b[0] ?? 1 > 2",
		"let x = claims.a; x == 1", "!claims.a",
	} {
		f.Add(s)
	}
	claims := map[string]any{"a": "b", "groups": []any{"a", 1.5, nil, map[string]any{"x": "y"}}}
	f.Fuzz(func(_ *testing.T, source string) {
		if c, err := compile(source); err == nil {
			c.holds(claims)
		}
	})
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
			if got := list.Permitted(claimsOf(t, tt.claims), tt.resource, all); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if !slices.Equal(all, oauth.Scopes{"read", "write", "admin", "delete"}) {
		t.Error("the scopes that were asked about have changed")
	}
}

func TestMentions(t *testing.T) {
	for source, want := range map[string][]string{
		`"a" in claims.groups && claims.email_verified`: {"email_verified", "groups"},
		`claims["groups"] == nil`:                       {"groups"},
		`claims?.realm?.roles == nil`:                   {"realm"},
		`get(claims, "hd") == "x"`:                      {"hd"},
		`len(keys(claims)) > 3`:                         {EveryClaim},
		`claims[claims.name] == 1`:                      {EveryClaim, "name"},
		`true`:                                          nil,
	} {
		c, err := compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		slices.Sort(c.claims)
		if !slices.Equal(c.claims, want) {
			t.Errorf("%s: got %q, want %q", source, c.claims, want)
		}
	}
}
