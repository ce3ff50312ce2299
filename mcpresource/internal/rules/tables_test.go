package rules

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestCompiledRules compares the compiled tables with the plain ones, for random tables and names.
func TestCompiledRules(t *testing.T) {
	t.Run("RS-43: tables that were put in order answer as they did", func(t *testing.T) {
		for seed := range uint64(3000) {
			compareRules(t, seed)
		}
	})
}

func FuzzCompiledRules(f *testing.F) {
	f.Add(uint64(7))
	f.Fuzz(func(t *testing.T, seed uint64) { compareRules(t, seed) })
}

func compareRules(t *testing.T, seed uint64) {
	t.Helper()
	at := rand.New(rand.NewPCG(seed, 1))
	word := func(letters string) string {
		var b strings.Builder
		for range at.IntN(5) {
			b.WriteByte(letters[at.IntN(len(letters))])
		}
		return b.String()
	}
	uri := func(tail string) string {
		return []string{"x://H/", "X://h/", "x:", "", "x://h/%61"}[at.IntN(5)] + word("aAb%2F ") + tail
	}
	list := func(of func() string) (out []string) {
		for range at.IntN(3) {
			out = append(out, of())
		}
		return out
	}
	pattern := func() string { return word("aAb*") }
	uris := func() string { return uri([]string{"", "*"}[at.IntN(2)]) }
	scopes := func() []string { return list(func() string { return word("stu") }) }
	table := func(of func() string) map[string][]string {
		out := map[string][]string{}
		for range at.IntN(6) {
			out[of()] = scopes()
		}
		return out
	}
	methods := []string{"tools/call", "prompts/get", "resources/read", "resources/subscribe", "tools/list", "", "ping"}
	rules := &Rules{
		Base: scopes(), Default: scopes(), Tools: table(pattern), Prompts: table(pattern), Resources: table(uris),
		Methods: table(func() string { return append(methods, "tools/*", "*", "*l*")[at.IntN(len(methods)+3)] }),
		Deny:    list(pattern), DenyPrompts: list(pattern), DenyResources: list(uris),
		DenyMethods: list(func() string { return "pi*" }), Direct: list(pattern), Public: []string{"ping"},
	}
	if at.IntN(2) == 0 {
		rules.Public = append(rules.Public, "tools/call")
		rules.Clearances = map[string]Clearance{pattern(): {By: oauth.ClearanceByPerson}}
	}
	compiled := Compile(rules)
	for range 40 {
		op := Operation{Method: methods[at.IntN(len(methods))], Name: word("aAb*")}
		if at.IntN(3) == 0 {
			op.Name = uris()
		}
		want, got := rules.Require(op), compiled.Require(op)
		if !slices.Equal(want.Scopes, got.Scopes) || want.Deny != got.Deny || want.Public != got.Public ||
			want.Direct != got.Direct || !reflect.DeepEqual(want.Clearance, got.Clearance) {
			t.Fatalf("seed %d, %+v: got %+v, want %+v by %+v", seed, op, got, want, rules)
		}
	}
}
