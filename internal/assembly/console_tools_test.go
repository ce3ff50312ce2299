package assembly

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestConsoleAcceptsATool checks that links lead from the overview to the difference of a changed
// tool and to its acceptance, without typing a digest (RS-219, OB-10). Exactly the definition on
// the page is accepted, even if the MCP server changes it in between.
func TestConsoleAcceptsATool(t *testing.T) {
	s := consoled(t, nil)
	const uri = "https://tools.example.com/mcp"
	service, err := s.parts.Admin(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.ResourceAdd.Do(t.Context(), service.Operator(), admin.NewResource{URI: uri}); err != nil {
		t.Fatal(err)
	}
	see := func(text string) string {
		t.Helper()
		digest := storage.Hash(sha256.Sum256([]byte(text)))
		if _, err := s.parts.Store.SeeTools(t.Context(), uri, map[string]storage.ToolDefinition{
			"echo": {Digest: digest, Text: `{"description":"` + text + `","name":"echo"}`, At: time.Now()},
		}, true); err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(digest[:])
	}
	accepted := func() string {
		t.Helper()
		d, err := admin.ResourceTool.Do(t.Context(), service.Operator(), admin.ToolOf{URI: uri, Name: "echo"})
		if err != nil {
			t.Fatal(err)
		}
		return d.Accepted
	}
	first := see("echoes")
	second := see("echoes, and more")

	b := browse(t, s.Handler())
	of := "?" + url.Values{"uri": {uri}}.Encode()
	tool := "?" + url.Values{"uri": {uri}, "name": {"echo"}}.Encode()
	escaped := func(link string) string { return `href="` + strings.ReplaceAll(link, "&", "&amp;") + `"` }
	wantPage(t, b.at("/admin", "root"), http.StatusOK, "/admin", escaped("/admin/resource/tools"+of))
	wantPage(t, b.get("/admin/resource/tools"+of), http.StatusOK, "/admin/resource/tools",
		escaped("/admin/resource/tool"+sorted(tool)), escaped("/admin/resource/accept"+sorted(tool)), "changed")
	wantPage(t, b.get("/admin/resource/tool"+tool), http.StatusOK, "/admin/resource/tool",
		escaped("/admin/resource/accept"+sorted(tool)), "echoes, and more")

	seen := b.get("/admin/resource/accept" + tool)
	wantPage(t, seen, http.StatusOK, "/admin/resource/accept", "echoes, and more", second, first)
	if strings.Contains(seen.body, `name="digest"`) {
		t.Error("RS-219: a person is asked for a digest")
	}
	third := see("echoes, and obeys")
	again := b.send(seen, "/admin/resource/accept", "digest", third)
	wantPage(t, again, http.StatusConflict, "/admin/resource/accept", "otherwise meanwhile", "echoes, and obeys", third)
	if got := accepted(); got != first {
		t.Errorf("RS-219: %s is accepted, which the person has not seen", got)
	}
	wantPage(t, b.send(again, "/admin/resource/accept"), http.StatusOK, "/admin/resource/tools",
		"The definition was accepted.")
	if got := accepted(); got != third {
		t.Errorf("RS-219: %s is accepted, want %s, which the page has shown", got, third)
	}
	if body := b.get("/admin/resource/accept" + tool).body; strings.Contains(body, `name="step" value`) &&
		strings.Contains(body, "Accept the new definition") {
		t.Error("RS-219: unchanged tools offer a change to accept")
	}
	auditor := browse(t, s.Handler())
	carol, err := s.Auth.Users().Find(t.Context(), "carol")
	if err == nil {
		err = s.parts.Store.SetRole(t.Context(), carol.ID, storage.Auditor)
	}
	if err != nil {
		t.Fatal(err)
	}
	see("echoes again")
	auditor.at("/admin", "carol")
	page := auditor.get("/admin/resource/tool" + tool)
	if wantPage(t, page, http.StatusOK, "/admin/resource/tool"); strings.Contains(page.body, "/admin/resource/accept") {
		t.Error("OB-10: an auditor is offered to accept a tool")
	}
}

// sorted returns a query in the order of the console.
func sorted(query string) string {
	q, _ := url.ParseQuery(strings.TrimPrefix(query, "?"))
	return "?" + q.Encode()
}
