package account

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestPagesOfApplications: RU-18: the connections of an application are together, and a page ends between two
// applications where it can.
func TestPagesOfApplications(t *testing.T) {
	for _, c := range []struct{ rows, pages string }{
		{"a b a c", "aab c"},
		{"a b c d e f", "abc def"},
		{"a b c c", "ab cc"},
		{"a a a a b", "aaa ab"},
		{"a b b b b c", "abb bbc"},
		{"a b b b c", "a bbb c"},
	} {
		var all []Connection
		keys := map[string]string{}
		for _, name := range strings.Fields(c.rows) {
			keys[name] = "app_" + name
			grant := storage.Grant{ID: name + string(rune('0'+len(all))), ClientID: name}
			all = append(all, Connection{Connection: storage.Connection{Grant: grant}, Grants: []string{grant.ID}})
		}
		rest, pages := together(all, keys), []string{}
		for next := "begin"; next != ""; {
			var page []Connection
			if page, next = whole(rest, 3); next != "" {
				rest = after(rest, next)
			}
			names := ""
			for _, c := range page {
				names += c.ClientID
			}
			pages = append(pages, names)
		}
		if got := strings.Join(pages, " "); got != c.pages {
			t.Errorf("RU-18: %s: got %q, want %q", c.rows, got, c.pages)
		}
	}
	of := func(client string, grants ...string) Connection {
		return Connection{Connection: storage.Connection{Grant: storage.Grant{ClientID: client}}, Grants: grants}
	}
	same := []Connection{of("one", "a", "b"), of("two", "c")}
	got := together(same, map[string]string{"one": "app", "two": "app"})
	if !slices.ContainsFunc(got, func(c Connection) bool { return c.Whole.Connections == 3 && c.Whole.Key == "app" }) {
		t.Errorf("RU-18: got %+v", got)
	}
}
