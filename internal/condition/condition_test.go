package condition

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func claimsOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// maxClaims is the maximum size of stored claims, as JSON.
const maxClaims = 64 << 10

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
		// A failing or non-boolean expression is false.
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
			c, err := Compile(source)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Holds(claims); got != want {
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
			if c, err := Compile(source); err == nil {
				t.Errorf("compiled to %v", c)
			}
		})
	}
}

// TestClaimsElsewhere checks that a claim that is only referenced cannot make a condition true by
// its absence.
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
			c, err := Compile(tt.source)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Holds(claimsOf(t, tt.claims)); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestExpressionTime checks that untrusted claims cannot make an expression slow.
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
		c, err := Compile(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		done := make(chan bool, 1)
		go func() { done <- c.Holds(claims) }()
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
		if c, err := Compile(source); err == nil {
			c.Holds(claims)
		}
	})
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
		c, err := Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		slices.Sort(c.Claims)
		if !slices.Equal(c.Claims, want) {
			t.Errorf("%s: got %q, want %q", source, c.Claims, want)
		}
	}
}
