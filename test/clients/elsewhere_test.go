package clients

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
)

// TestClientsOnAnotherComputer: PE-14. The user states that the client runs on another computer.
// The page then shows the response instead of redirecting, and the user opens it on that computer,
// for example with curl.
func TestClientsOnAnotherComputer(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	elsewhere := func(t *testing.T) *person {
		p := newPerson(t, d)
		p.Elsewhere = true
		return p
	}
	shown := func(t *testing.T, p *person, before int) {
		t.Helper()
		if p.signIns() != 1 || strings.Count(d.Log(), "answer.shown") <= before {
			t.Errorf("got %d sign-ins and\n%s", p.signIns(), p.output())
		}
	}
	t.Run("PE-14 the TypeScript SDK", func(t *testing.T) {
		p, before := elsewhere(t), strings.Count(d.Log(), "answer.shown")
		out := run(t, p, npmtest.Command(t, "node", "clients/sdk-v1.mjs", d.MCPURL, "", "whoami"))
		if !strings.Contains(out, `"structuredContent"`) {
			t.Errorf("got %s", out)
		}
		shown(t, p, before)
	})
	t.Run("PE-14 Inspector CLI", func(t *testing.T) {
		p, before := elsewhere(t), strings.Count(d.Log(), "answer.shown")
		callback := "http://" + nettest.For(t) + "/oauth/callback"
		out := run(t, p, inspectorCommand(t, t.TempDir(), callback, "whoami", d.MCPURL, "--transport", "http"))
		if !strings.Contains(out, "usr_") {
			t.Errorf("got %s", out)
		}
		shown(t, p, before)
	})
	t.Run("PE-14 mcp-remote", func(t *testing.T) {
		p, before := elsewhere(t), strings.Count(d.Log(), "answer.shown")
		cmd := remoteCommand(t, p, d.MCPURL)
		c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
		session, err := c.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, p.output())
		}
		defer session.Close()
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"})
		if err != nil || result.IsError {
			t.Fatalf("%+v, %v\n%s", result, err, p.output())
		}
		shown(t, p, before)
	})
}
