package rules

import (
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	rules := &Rules{
		Base: []string{"mcp"},
		Tools: map[string][]string{
			"*": {"any"}, "*_delete": {"delete"}, "files_*": {"files"}, "files_*_delete": {"files:delete"},
			"a*c": {"2"}, "ab*": {"1"},
		},
		Deny: []string{"*_secret", "danger*"}, DenyMethods: []string{"logging/*"}, DenyPrompts: []string{"root_*"},
		DenyResources: []string{"HTTPS://Private.example/*"},
		Prompts:       map[string][]string{"*": {}}, Resources: map[string][]string{"https://*": {}},
		Public: []string{"ping", "logging/setLevel"},
	}
	for _, tt := range []struct {
		method, name string
		want         string // "deny", "public" or the scopes
	}{
		{"tools/call", "other", "mcp any"},
		{"tools/call", "notes_delete", "mcp delete"},
		{"tools/call", "files_read", "mcp files"},
		{"tools/call", "files_x_delete", "mcp files:delete"},
		{"tools/call", "files_delete", "mcp delete"}, // "files_*_delete" has one more underscore
		{"tools/call", "abc", "mcp 1 2"},             // two patterns are equally specific
		{"tools/call", "files_secret", "deny"},
		{"tools/call", "dangerous", "deny"},
		{"prompts/get", "root_x", "deny"},
		{"prompts/get", "x", "mcp"},
		{"resources/read", "https://private.example/x", "deny"},
		{"resources/subscribe", "https://private.example/x", "deny"},
		{"resources/read", "https://open.example/x", "mcp"},
		{"logging/setLevel", "", "deny"},
		{"ping", "", "public"},
	} {
		t.Run("RS-43 "+tt.method+" "+tt.name, func(t *testing.T) {
			for range 20 { // map order must not matter
				need := rules.Require(Operation{Method: tt.method, Name: tt.name})
				got := strings.Join(need.Scopes, " ")
				if need.Deny {
					got = "deny"
				} else if need.Public {
					got = "public"
				}
				if got != tt.want {
					t.Fatalf("got %q, want %q", got, tt.want)
				}
			}
		})
	}
}

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"a*", "a", true}, {"a*", "ba", false},
		{"*a", "ba", true}, {"*a", "ab", false},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "a-b-c", true}, {"a*b*c", "a-c-b", false},
		{"a**b", "ab", true}, {"*b*", "abc", true}, {"", "a", false},
	} {
		t.Run("RS-43 "+tt.pattern+" "+tt.name, func(t *testing.T) {
			if got := Matches(tt.pattern, tt.name); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
