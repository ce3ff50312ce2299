package assembly

import (
	"slices"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestConsoleRules checks that "Bob may only read" is one form, and that Bob's page shows his
// permissions and the reason (RU-19).
func TestConsoleRules(t *testing.T) {
	t.Parallel()
	const server = "https://notes.example.com/mcp"
	s := consoled(t, func(c *config.Loaded) {
		c.Resources = []config.Resource{{URI: server, Name: "Notes", Scopes: []storage.ScopeText{
			{Name: "notes", Default: true}, {Name: "notes:write"},
		}}}
	})
	b := browse(t, s.Handler())
	ask := b.at("/admin/rule/set", "alice")
	wantPage(t, ask, 200, "/admin/rule/set", "Set an access rule", "Fill in a user or a group")
	done := b.send(ask, "/admin/rule/set", "user", "bob", "resource", server, "scopes", "notes",
		"approve", "pay delete_*")
	wantPage(t, done, 200, "", "The access rule was set.")
	wantPage(t, b.get("/admin/rule/list"), 200, "/admin/rule/list", server, "bob", "delete_*", "/admin/rule/set")
	wantPage(t, b.get("/admin/user/show?name=bob"), 200, "/admin/user/show?name=bob", server, "user bob", "delete_*")
	wantPage(t, b.get("/admin/group/list"), 200, "/admin/group/list", "No groups yet")
	rules, err := s.parts.Store.ListAccessRules(t.Context())
	if err != nil || len(rules) != 1 || rules[0].UserName != "bob" ||
		!slices.Equal(rules[0].Scopes, []string{"notes"}) ||
		!slices.Equal(rules[0].Approve, []string{"delete_*", "pay"}) {
		t.Errorf("RU-19: got %+v, %v", rules, err)
	}
}
