package account

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// many is a store of a person with that many connections, each to its own application.
type many struct {
	Store
	n, read int
}

func (m *many) Connections(
	_ context.Context, _, before string, _ time.Time, limit int,
) (out []storage.Connection, _ error) {
	for i := m.n - 1; i >= 0 && len(out) < limit; i-- {
		id := fmt.Sprintf("grt_%05d", i)
		if before == "" || id < before {
			out = append(out, storage.Connection{Grant: storage.Grant{ID: id, ClientID: fmt.Sprint("mcp_", i)}})
		}
	}
	m.read += len(out)
	return out, nil
}

func (m *many) Client(_ context.Context, id string) (storage.Client, error) {
	return storage.Client{ID: id}, nil
}

func (m *many) ApplicationKeys(_ context.Context, ids []string) (map[string]string, error) {
	out := map[string]string{}
	for _, id := range ids {
		out[id] = id
	}
	return out, nil
}

// TestPagesOfManyConnections: PE-09: each page reads a bounded number of connections, and the pages have every
// connection once.
func TestPagesOfManyConnections(t *testing.T) {
	for _, n := range []int{0, 1, PageSize, readMost - 1, readMost, readMost + 1, 2*readMost + 7} {
		store := &many{n: n}
		a := &Page{Store: store, Now: time.Now}
		var got []string
		for from := ""; ; {
			store.read = 0
			page, next, _, err := a.page(t.Context(), "usr_1", from, map[string]storage.Client{})
			if err != nil || len(page) == 0 && n > 0 || len(page) > PageSize || store.read > readMost+1 {
				t.Fatalf("PE-09: %d connections: after %q: %d, %v, after reading %d", n, from, len(page), err, store.read)
			}
			for _, c := range page {
				got = append(got, c.ID)
			}
			if from = next; from == "" {
				break
			}
		}
		if len(got) != n || !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("PE-09: the pages have %d of %d connections", len(got), n)
		}
	}
}
