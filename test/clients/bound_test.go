package clients

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// startBound runs the gateway in front of an MCP server that returns the identity from the gateway.
// It accepts only tokens that are bound to a key, and requires nonces in proofs.
func startBound(t *testing.T, o demotest.Options) *demotest.Demo {
	t.Helper()
	issuer := "" // set before the first call
	s := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "whoami"},
		func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, map[string]string, error) {
			h := r.Extra.Header
			return nil, map[string]string{
				"issuer": issuer, "user": h.Get("X-MCP-Subject"), "client": h.Get("X-MCP-Client"),
				"authorization": h.Get("Authorization"), "proof": h.Get("DPoP"),
			}, nil
		})
	type note struct {
		Text string `json:"text"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "add_note"},
		func(_ context.Context, _ *mcp.CallToolRequest, n note) (*mcp.CallToolResult, note, error) {
			return nil, n, nil
		})
	inner := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(inner.Close)
	o.Args = nil // the configuration has the data directory
	d := demotest.StartGateway(t, inner.URL+"/mcp", "dpop: {nonce: required}", `
name: Notes
dpop: required
scopes: [{name: mcp, description: use it, default: true}, {name: "notes:write", description: add notes}]
tools: [{name: add_note, scopes: ["notes:write"]}]
`, o)
	issuer = d.Issuer
	return d
}

// boundSDK tests the TypeScript SDK v2 with a key, and then without one.
func boundSDK(t *testing.T, l *life) {
	sdkV2(t, l)
	t.Run("AS-213 without a key it gets no token", func(t *testing.T) {
		without := *l.client
		without.bound = false
		other := *l
		other.client = &without
		p := newPerson(t, l.Demo)
		_, err := tryRun(t, p, other.script(t, "sdk-v2.mjs", "whoami"))
		if err == nil || !strings.Contains(p.output(), "invalid_dpop_proof") {
			t.Errorf("got %v and\n%s", err, p.output())
		}
	})
}

// TestBoundLogin: CL-30 the command signs in where tokens must be bound to a key.
func TestBoundLogin(t *testing.T) {
	d := startBound(t, demotest.Options{})
	login := func(t *testing.T, args ...string) (string, *person, error) {
		t.Helper()
		args = append([]string{"login", "--no-browser", "--call", "whoami"}, args...)
		cmd := exec.Command(program.Authd(t), append(args, d.MCPURL)...)
		cmd.Env = os.Environ()
		p := newPerson(t, d)
		out, err := tryRun(t, p, cmd)
		return out, p, err
	}
	t.Run("CL-30 with --dpop", func(t *testing.T) {
		out, p, err := login(t, "--dpop")
		if err != nil || !strings.Contains(out, "DPoP, expires in") || !strings.Contains(out, "usr_") {
			t.Fatalf("got %v and\n%s", err, p.output())
		}
		if !strings.Contains(out, "&dpop_jkt=") {
			t.Errorf("AS-215: the code is not bound to the key:\n%s", out)
		}
		if !strings.Contains(out, `"authorization": ""`) || !strings.Contains(out, `"proof": ""`) {
			t.Errorf("RS-49: the MCP server got the token or the proof:\n%s", out)
		}
	})
	t.Run("AS-213 without it there is no token", func(t *testing.T) {
		_, p, err := login(t)
		if err == nil || !strings.Contains(p.output(), "invalid_dpop_proof") {
			t.Errorf("got %v and\n%s", err, p.output())
		}
	})
}
