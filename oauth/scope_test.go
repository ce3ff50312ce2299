package oauth_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestParseScopes(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"RFC 6749 3.3: space-delimited, order kept", "b a c", []string{"b", "a", "c"}},
		{"RFC 6749 3.3: case-sensitive", "Read read", []string{"Read", "read"}},
		{"CL-47: absent", "", nil},
		{"CL-50: stray white space", "  a \t b\n", []string{"a", "b"}},
		{"AS-113: duplicates collapse", "a b a", []string{"a", "b"}},
		{"AS-112 RFC 6749 3.3: a token outside the grammar is dropped", `a "b" c\d é e`, []string{"a", "e"}},
		{"AS-112: a control character is dropped with its token", "a b\x00c", []string{"a"}},
		{"RFC 6749 3.3: the whole alphabet", "!#[]~ files:read https://x/y",
			[]string{"!#[]~", "files:read", "https://x/y"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := oauth.ParseScopes(tt.in); !slices.Equal(got, tt.want) {
				t.Errorf("ParseScopes(%q): got %q, want %q", tt.in, got, tt.want)
			}
		})
	}
	t.Run("a hostile number of scopes is cut", func(t *testing.T) {
		var b strings.Builder
		for i := range 10_000 {
			fmt.Fprintf(&b, "s%d ", i)
		}
		if got := len(oauth.ParseScopes(b.String())); got != oauth.MaxScopes {
			t.Errorf("got %d scopes, want %d", got, oauth.MaxScopes)
		}
	})
}

func TestValidScope(t *testing.T) {
	for in, want := range map[string]bool{
		"a": true, "!": true, "~": true, "files:read": true,
		"": false, " ": false, "a b": false, "a\t": false, "\x7f": false, `"`: false, `\`: false, "é": false,
	} {
		if got := oauth.ValidScope(in); got != want {
			t.Errorf("AS-112 RFC 6749 3.3: ValidScope(%q): got %v, want %v", in, got, want)
		}
	}
}

func TestScopeSets(t *testing.T) {
	s := oauth.Scopes{"a", "b", "c"}
	t.Run("AS-111 intersection keeps the order of what was asked", func(t *testing.T) {
		if got := s.Intersect(oauth.Scopes{"c", "x", "a"}).String(); got != "a c" {
			t.Errorf("got %q, want %q", got, "a c")
		}
	})
	t.Run("AS-114 step-up: the union appends what is new", func(t *testing.T) {
		if got := s.Union(oauth.Scopes{"d", "a"}).String(); got != "a b c d" {
			t.Errorf("got %q, want %q", got, "a b c d")
		}
		if s.String() != "a b c" {
			t.Errorf("Union changed its receiver: %q", s)
		}
	})
	t.Run("Union does not write into spare capacity of its receiver", func(t *testing.T) {
		base := make(oauth.Scopes, 1, 4)
		base[0] = "a"
		x, y := base.Union(oauth.Scopes{"x"}), base.Union(oauth.Scopes{"y"})
		if x.String() != "a x" || y.String() != "a y" {
			t.Errorf("got %q and %q", x, y)
		}
	})
	t.Run("Without", func(t *testing.T) {
		if got := s.Without(oauth.Scopes{"b", "x"}).String(); got != "a c" {
			t.Errorf("got %q, want %q", got, "a c")
		}
	})
	t.Run("Has", func(t *testing.T) {
		if !s.Has() || !s.Has("c", "a") || s.Has("a", "x") || s.Has("A") {
			t.Error("Has is wrong")
		}
	})
}

func FuzzScopes(f *testing.F) {
	for _, s := range []string{
		"", "a", "a b a", " \t\n", `a"b c\d`, "é \xff a", strings.Repeat("a b ", 500),
		"openid profile email offline_access", "files:read files:write",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got := oauth.ParseScopes(raw)
		if len(got) > oauth.MaxScopes {
			t.Errorf("%d scopes", len(got))
		}
		for i, s := range got {
			if !oauth.ValidScope(s) || slices.Contains(got[:i], s) || !strings.Contains(raw, s) {
				t.Errorf("scope %q of %q", s, raw)
			}
		}
		if again := oauth.ParseScopes(got.String()); !slices.Equal(again, got) {
			t.Errorf("not stable: %q then %q", got, again)
		}
	})
}
