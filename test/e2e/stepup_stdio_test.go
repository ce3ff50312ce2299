//lint:file-ignore SA1019 sampling, roots and logging are part of the revisions before 2026-07-28 (SEP-2577)

package e2e

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// TestStepUpInSessionOfProgram: issue 11, 3.2, with a program on standard input and output. The Go
// SDK's client registers again when it needs more scope, and continues with or without its session.
// The program's request during the call reaches it, and its response reaches the program.
func TestStepUpInSessionOfProgram(t *testing.T) {
	program := stdioServer(t)
	for _, c := range []struct {
		name, version string // "": the latest, without sessions
		tool          string // requires more scope
		flags         []string
	}{
		{"a process of its own", "2025-11-25", "test_sampling", nil},
		{"a process of its own, an older revision", "2025-06-18", "test_elicitation", nil},
		{"one process for all", "2025-11-25", "test_image_content", []string{"--shared"}},
		{"no session", "", "test_image_content", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{
				"--tool", c.tool + "=danger", "--scope", "mcp=use it", "--scope", "danger=delete things"}, c.flags...)
			p := protect(t, append(args, "--", program)...)
			cl := &client{}
			handler, err := cl.handler(demotest.NewPerson(p.Username, p.Password))
			if err != nil {
				t.Fatal(err)
			}
			m := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
				CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult,
					error) {
					return &mcp.CreateMessageResult{
						Content: &mcp.TextContent{Text: "sampled"}, Role: "assistant", Model: "m"}, nil
				},
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "decline"}, nil
				},
			})
			cl.ClientSession, err = m.Connect(t.Context(),
				&mcp.StreamableClientTransport{Endpoint: p.MCPURL, OAuthHandler: handler},
				&mcp.ClientSessionOptions{ProtocolVersion: c.version})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cl.Close() })
			before := cl.ID()
			arguments := map[string]map[string]any{
				"test_sampling": {"prompt": "say"}, "test_elicitation": {"message": "say"},
			}
			for _, tool := range []string{"test_simple_text", c.tool, "test_simple_text", c.tool} {
				r, err := cl.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments[tool]})
				if err != nil || r.IsError {
					out, _ := json.Marshal(r) // for the message
					t.Fatalf("RS-112 CL-20: %s: %v %s", tool, err, out)
				}
			}
			if cl.ID() != before || (before == "") != (c.version == "") || cl.logins.Load() != 2 {
				t.Errorf("it went from session %q to %q with %d sign-ins", before, cl.ID(), cl.logins.Load())
			}
		})
	}
}
