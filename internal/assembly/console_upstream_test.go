package assembly

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestConsolePutsAServerBehindTheGateway checks that the form of the console adds an MCP server with
// its upstream, scopes and tool rules, shows and changes them, and accepts no program (OB-10). An
// MCP server of the configuration file is shown as such, and is not changed there.
func TestConsolePutsAServerBehindTheGateway(t *testing.T) {
	t.Parallel()
	const uri, fixed = "http://localhost:8414/notes", "http://localhost:8414/fixed"
	at, _ := echo(t, "notes")
	s, clock, browsers := twoReplicas(t, func(c *config.Loaded) {
		c.Resources = []config.Resource{{
			URI: fixed, Name: "Fixed", Scopes: []storage.ScopeText{{Name: "mcp", Default: true}},
			Upstream: config.Upstream{URL: at},
		}}
	})
	b := browsers[1]
	form := b.at("/admin/resource/add", "alice")
	wantPage(t, form, 200, "/admin/resource/add", `name="upstream"`, `name="tool_rules.0.name"`,
		`name="tool_rules.0.deny"`, "never a command")
	fill := func(upstream string) []string {
		return []string{
			"uri", uri, "upstream", upstream, "scopes.0.name", "read", "scopes.0.every_call", "true",
			"scopes.1.name", "write", "tool_rules.0.name", "add_*", "tool_rules.0.scopes", "write",
			"tool_rules.1.name", "drop", "tool_rules.1.deny", "true",
		}
	}
	for upstream, says := range map[string]string{
		"npx -y server": "programs and other", "http://169.254.169.254/": "metadata service",
		"http://a:b@127.0.0.1/": "password",
	} {
		refused := b.send(form, "/admin/resource/add", fill(upstream)...)
		wantPage(t, refused, 400, "/admin/resource/add", says, `value="add_*"`)
		form = b.get("/admin/resource/add")
	}
	added := b.send(form, "/admin/resource/add", fill(at)...)
	wantPage(t, added, 200, "/admin/resource", at)
	shown := b.get("/admin/resource/show?" + url.Values{"uri": {uri}}.Encode())
	wantPage(t, shown, 200, "/admin/resource/show", at, "add_*", "drop", "/admin/resource/set?", ">store<")

	clock.by.Add(int64(3 * time.Second)) // resources are read again
	reader := robot(t, s, uri, "read")
	for tool, want := range map[string]int{"get": 200, "add_note": 403, "drop": 403} {
		if w := local(t, s.Handler(), reader, "POST", "/notes", calling(tool)); w.Code != want {
			t.Errorf("OB-10: %s: got %d %s, want %d", tool, w.Code, w.Body, want)
		}
	}

	set := "/admin/resource/set?" + url.Values{"uri": {uri}}.Encode()
	form = b.get(set)
	wantPage(t, form, 200, "/admin/resource/set", `value="`+at+`"`, `value="add_*"`, `value="write"`)
	wantPage(t, b.send(form, "/admin/resource/set", "upstream", at, "tool_rules.0.name", "", "tool_rules.0.scopes", ""),
		200, "/admin/resource/show")
	clock.by.Add(int64(3 * time.Second))
	if w := local(t, s.Handler(), reader, "POST", "/notes", calling("drop")); w.Code != 200 {
		t.Errorf("OB-10: its rules were removed: %d %s", w.Code, w.Body)
	}

	file := b.get("/admin/resource/show?" + url.Values{"uri": {fixed}}.Encode())
	wantPage(t, file, 200, "/admin/resource/show", "configuration")
	if strings.Contains(file.body, "/admin/resource/set?") {
		t.Error("OB-10: an MCP server of the configuration file is offered to be changed")
	}
}
