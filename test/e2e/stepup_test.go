package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// TestStepUpInSession checks that the Go SDK's client, which registers again when it needs more
// scope, continues in its session as another application of the same user.
func TestStepUpInSession(t *testing.T) {
	var mu sync.Mutex // guards applications
	applications := map[string]bool{}
	s := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "1"}, nil)
	for _, name := range []string{"look", "delete"} {
		mcp.AddTool(s, &mcp.Tool{Name: name},
			func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				mu.Lock()
				defer mu.Unlock()
				applications[r.Extra.Header.Get("X-Mcp-Client")] = true
				return nil, map[string]string{"session": r.Session.ID(), "scope": r.Extra.Header.Get("X-Mcp-Scope")},
					nil
			})
	}
	inner := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(inner.Close)
	p := protect(t, "--tool", "delete=danger", "--scope", "mcp=use it", "--scope", "danger=delete things",
		inner.URL+"/mcp")
	c := &client{}
	handler, err := c.handler(demotest.NewPerson(p.Username, p.Password))
	if err != nil {
		t.Fatal(err)
	}
	m := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	c.ClientSession, err = m.Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: p.MCPURL, OAuthHandler: handler},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	var first, second map[string]string
	c.call(t, "look", nil, &first)
	c.call(t, "delete", nil, &second)
	scope := strings.Fields(second["scope"]) // a set: RFC 6749 §3.3
	slices.Sort(scope)
	if first["session"] == "" || second["session"] != first["session"] ||
		!slices.Equal(scope, []string{"danger", "mcp"}) {
		t.Errorf("RS-112 CL-20: it went from %v to %v", first, second)
	}
	if len(applications) != 2 || c.logins.Load() != 2 {
		t.Errorf("got %d applications and %d sign-ins: the client does not register again any more",
			len(applications), c.logins.Load())
	}
	c.call(t, "look", nil, &second)
}
