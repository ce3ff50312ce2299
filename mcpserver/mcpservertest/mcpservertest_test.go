package mcpservertest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk/gosdktest"
	"github.com/mcp-authd/mcp-authd/mcpserver"
	"github.com/mcp-authd/mcp-authd/mcpserver/mcpservertest"
)

func newTools() *gosdk.Tools {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	tools := gosdk.NewTools(server, gosdk.Scope{Name: "notes:read", Description: "read your notes"})
	who := func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		p, _ := gosdk.Principal(req)
		return nil, map[string]any{"subject": p.Subject, "scopes": p.Scopes}, nil
	}
	gosdk.AddTool(tools, &mcp.Tool{Name: "whoami"}, who)
	gosdk.AddTool(tools, &mcp.Tool{Name: "add_note"}, who,
		gosdk.Scope{Name: "notes:write", Description: "add notes in your name"})
	return tools
}

// AU-03: a user signs in to the real server and approves, without a browser.
func TestServe(t *testing.T) {
	srv := mcpservertest.Serve(t, newTools(), func(o *mcpserver.Options) { o.Name = "Paper" })
	call := func(c *http.Client, tool string) (subject string, scopes int, err error) {
		t.Helper()
		res, err := gosdktest.Connect(t, srv.URL, c).CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
		if err != nil {
			return "", 0, err
		}
		out, _ := res.StructuredContent.(map[string]any)
		subject, _ = out["subject"].(string)
		all, _ := out["scopes"].([]any)
		return subject, len(all), nil
	}
	alice, bob := srv.Person("alice"), srv.Person("bob")
	reads := alice.Approve("notes:read")
	first, scopes, err := call(reads, "whoami")
	if err != nil || !strings.HasPrefix(first, "usr_") || scopes != 1 {
		t.Errorf("got %q with %d scopes, %v", first, scopes, err)
	}
	if _, _, err := call(reads, "add_note"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("without the scope: got %v", err)
	}
	if again, scopes, err := call(alice.Approve("notes:read", "notes:write"), "add_note"); err != nil ||
		again != first || scopes != 2 {
		t.Errorf("got %q with %d scopes, %v; want %q with 2", again, scopes, err, first)
	}
	if other, _, err := call(bob.Approve(), "whoami"); err != nil || other == first {
		t.Errorf("bob: got %q, %v", other, err)
	}
	if pages := alice.Pages(); !strings.Contains(pages, "add notes in your name") || !strings.Contains(pages, "Paper") {
		t.Errorf("alice saw\n%s", pages)
	}
	resp, err := http.Get(srv.Issuer + "/.well-known/oauth-authorization-server")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(b), `"issuer":"`+srv.Issuer+`"`) {
		t.Errorf("got %s, %v", b, err)
	}
}
