package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// giver is an authorization server whose user approves once, when give is called.
type giver struct {
	mu    sync.Mutex
	given bool
}

func (g *giver) Clear(context.Context, string, oauth.ClearanceDemand) (oauth.Clearance, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.given {
		g.given = false
		return oauth.Clearance{ID: "c1", Cleared: true}, nil
	}
	return oauth.Clearance{ID: "c1", URL: issuer + "/clearance/c1"}, nil
}

func (g *giver) give() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.given = true
}

// clearanceRig returns a rig whose tool secret requires approval.
func clearanceRig(t *testing.T) (*rig, *giver) {
	t.Helper()
	g := &giver{}
	return newRigOf(t, func(c *mcpresource.Config) {
		c.Clearances = g
		c.Policy = &mcpresource.Rules{
			Clearances: map[string]mcpresource.Clearance{"secret": {By: oauth.ClearanceByPerson}},
		}
	}, nil), g
}

// TestClearanceByClients checks how the SDK's client handles each form of the approval request, and
// that its retry is accepted.
func TestClearanceByClients(t *testing.T) {
	call := func(cs *mcp.ClientSession) (string, error) {
		result, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "secret", Arguments: map[string]any{}})
		if err != nil || result.IsError || len(result.Content) == 0 {
			return "", err
		}
		return result.Content[0].(*mcp.TextContent).Text, nil
	}
	t.Run("RS-217 RS-125 2025-11-25, a client that shows links", func(t *testing.T) {
		r, g := clearanceRig(t)
		var asked []mcp.ElicitParams
		cs := person(t, r, protocol.Rev20251125, "accept", &asked)
		for range 2 { // the second call asks again
			var rpc *jsonrpc.Error
			var data struct{ Elicitations []mcp.ElicitParams }
			if _, err := call(cs); !errors.As(err, &rpc) || rpc.Code != protocol.CodeURLElicitationNeeded ||
				json.Unmarshal(rpc.Data, &data) != nil || len(data.Elicitations) != 1 ||
				data.Elicitations[0].URL != issuer+"/clearance/c1" {
				t.Fatalf("got %v", err)
			}
			g.give()
			if text, err := call(cs); err != nil || !strings.HasPrefix(text, "alice") {
				t.Fatalf("the retry: got %q, %v", text, err)
			}
		}
	})
	t.Run("RS-217 RS-178 2026-07-28, a client that shows links", func(t *testing.T) {
		r, g := clearanceRig(t)
		asked := 0
		o := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}},
		}}
		o.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if asked++; r.Params.Mode != "url" || r.Params.URL != issuer+"/clearance/c1" {
				t.Errorf("asked %+v", r.Params)
			}
			g.give() // the user approves before the client answers
			return &mcp.ElicitResult{Action: "accept"}, nil
		}
		cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(),
			&mcp.StreamableClientTransport{
				Endpoint: r.URL + "/mcp", HTTPClient: r.client("alice"),
				DisableStandaloneSSE: true, MaxRetries: -1,
			}, &mcp.ClientSessionOptions{ProtocolVersion: protocol.Rev20260728})
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		for i := range 2 { // the second call asks again
			if text, err := call(cs); err != nil || !strings.HasPrefix(text, "alice") || asked != i+1 {
				t.Errorf("got %q, %v, asked %d times", text, err, asked)
			}
		}
	})
	t.Run("RS-217 a person who does not want to is asked once", func(t *testing.T) {
		r, _ := clearanceRig(t)
		var asked []mcp.ElicitParams
		cs := person(t, r, protocol.Rev20260728, "decline", &asked)
		if text, err := call(cs); err == nil || text != "" || len(asked) != 1 {
			t.Errorf("got %q, %v, asked %d times", text, err, len(asked))
		}
	})
	for _, version := range []string{protocol.Rev20251125, protocol.Rev20260728} {
		t.Run("RS-217 a client that shows no links is refused: "+version, func(t *testing.T) {
			r, _ := clearanceRig(t)
			var asked []mcp.ElicitParams
			cs := person(t, r, version, "", &asked)
			_, err := call(cs)
			if err == nil || !strings.Contains(err.Error(), "Open "+issuer+"/clearance/c1 to do so") {
				t.Errorf("the client says %v", err)
			}
		})
	}
	t.Run("RS-217 without the guard's request nobody is asked, and nothing passes", func(t *testing.T) {
		r, g := clearanceRig(t)
		g.give()
		ctx := mcpresource.NewContext(t.Context(), r.principal("alice"))
		err := Refusal(r.guard.Authorize(ctx, mcpresource.Operation{Method: "tools/call", Name: "secret"}))
		var rpc *jsonrpc.Error
		if !errors.As(err, &rpc) || rpc.Message != "A person has to approve this call, and cannot be asked in this way." ||
			!strings.Contains(string(rpc.Data), "clearance_required") {
			t.Errorf("got %v", err)
		}
	})
}
