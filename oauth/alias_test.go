package oauth

import (
	"strings"
	"testing"
)

func TestCanonicalAlias(t *testing.T) {
	const mcp = "https://mcp.example.com/mcp"
	for _, tt := range []struct{ name, resource, alias, want, err string }{
		{"a sign behind the path", mcp, mcp + "@work", mcp + "@work", ""},
		{"another path", mcp, "https://mcp.example.com/home/mcp", "https://mcp.example.com/home/mcp", ""},
		{"below the resource", mcp, mcp + "/work", mcp + "/work", ""},
		{"of a resource without a path", "https://mcp.example.com", "https://mcp.example.com/@work",
			"https://mcp.example.com/@work", ""},
		{"of a resource with a query", mcp + "?team=1", mcp + "@work", mcp + "@work", ""},
		{"upper case, the default port and a slash are the same", mcp, "HTTPS://MCP.example.com:443/mcp@work/",
			mcp + "@work", ""},
		{"another host", mcp, "https://evil.example.com/mcp", "", "on the origin of its resource"},
		{"another port", mcp, "https://mcp.example.com:8443/mcp@work", "", "on the origin of its resource"},
		{"another scheme", mcp, "http://mcp.example.com/mcp@work", "", "on the origin of its resource"},
		{"the resource itself", mcp, mcp + "/", "", "the resource itself"},
		{"the origin", mcp, "https://mcp.example.com/", "", "must have a path"},
		{"a fragment", mcp, mcp + "#work", "", "fragment"},
		{"a query", mcp, mcp + "?work", "", "no query"},
		{"the same path without the query of the resource", mcp + "?team=1", mcp, "", "another path than its resource"},
		{"an escaped sign, which clients write in two ways", mcp, mcp + "%40work", "", "letters, digits"},
		{"a dot segment", mcp, mcp + "/../mcp2", "", "no empty segment"},
		{"an empty segment", mcp, mcp + "//work", "", "no empty segment"},
		{"a pattern of the mux", mcp, mcp + "/{x}", "", "letters, digits"},
		{"a document of ours", mcp, "https://mcp.example.com/.well-known/oauth-protected-resource/x", "",
			"must not be below /.well-known"},
		{"too long", mcp, mcp + strings.Repeat("a", MaxResourceLength), "", "too long"},
		{"no URL", mcp, "work", "", "absolute"},
	} {
		t.Run("AS-239 "+tt.name, func(t *testing.T) {
			got, err := CanonicalAlias(tt.resource, tt.alias)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestCanonicalAliases(t *testing.T) {
	const mcp = "https://mcp.example.com/mcp"
	many := make([]string, MaxAliases+1)
	for i := range many {
		many[i] = mcp + strings.Repeat("a", i+1)
	}
	if got, err := CanonicalAliases(mcp, many[1:]); err != nil || len(got) != MaxAliases {
		t.Errorf("%d aliases: got %q, %v", MaxAliases, got, err)
	}
	if _, err := CanonicalAliases(mcp, many); err == nil || !strings.Contains(err.Error(), "16 aliases at most") {
		t.Errorf("%d aliases: got %v", len(many), err)
	}
	_, err := CanonicalAliases(mcp, []string{mcp + "@work", mcp + "@work/"})
	if err == nil || !strings.Contains(err.Error(), "listed twice") {
		t.Errorf("one alias twice: got %v", err)
	}
}

func TestAliasName(t *testing.T) {
	for _, tt := range []struct{ name, resource, alias, want string }{
		{"Notes", "https://h/mcp", "https://h/mcp@work", "Notes (work)"},
		{"Notes", "https://h/mcp", "https://h/mcp/work", "Notes (work)"},
		{"Notes", "https://h/mcp", "https://h/home/mcp", "Notes (home/mcp)"},
		{"Notes", "https://h/mcp", "https://h/mcp2", "Notes (mcp2)"},
		{"Notes", "https://h", "https://h/@work", "Notes (work)"},
		{"", "https://h/mcp", "https://h/mcp@work", "https://h/mcp@work"},
		{"https://h/mcp", "https://h/mcp", "https://h/mcp@work", "https://h/mcp@work"},
	} {
		if got := AliasName(tt.name, tt.resource, tt.alias); got != tt.want {
			t.Errorf("AliasName(%q, %q, %q): got %q, want %q", tt.name, tt.resource, tt.alias, got, tt.want)
		}
	}
}
