package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/mcptest"
)

// The guard knows the caller, and refuses calls beyond the caller's scopes.
func TestGuarded(t *testing.T) {
	srv := mcptest.Serve(t, mcpresource.Config{Policy: policy}, func(g *mcpresource.Guard) http.Handler {
		return g.Handler(http.HandlerFunc(serveMCP))
	})
	for tool, want := range map[string]int{"whoami": http.StatusOK, "delete_all": http.StatusForbidden} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `"}}`
		resp, err := srv.Client("alice", "mcp").Post(srv.URL, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != want || (tool == "whoami") != strings.Contains(string(answer), "alice") {
			t.Errorf("%s: got %s %s, %v; want %d", tool, resp.Status, answer, err, want)
		}
	}
}

// The handler by itself.
func TestServeMCP(t *testing.T) {
	w := httptest.NewRecorder()
	serveMCP(w, mcptest.Request(mcptest.Principal("alice", "mcp"), "whoami", nil))
	if got := w.Body.String(); !strings.Contains(got, `"text":"alice"`) {
		t.Errorf("got %s", got)
	}
}
