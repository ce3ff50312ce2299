package mcpguard_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-authd/mcp-authd/examples/mcp-go/mcpguard"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// newServer returns a server with a tool, a prompt and a resource of each kind: for all callers,
// and for admins.
func newServer(t *testing.T, guarded bool) *server.MCPServer {
	t.Helper()
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: "https://mcp.example.com/mcp", AuthorizationServers: []string{"https://auth.example.com"},
		Validator: mcpresource.ValidatorFunc(func(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
			return nil, mcpresource.ErrInvalidToken
		}),
		Policy: &mcpresource.Rules{
			Base: []string{"mcp"}, Tools: map[string][]string{"delete": {"admin"}}, Prompts: map[string][]string{"delete": {"admin"}},
			Resources: map[string][]string{"notes://delete*": {"admin"}},
			Refine: func(op mcpresource.Operation, need mcpresource.Requirement) mcpresource.Requirement {
				if args, err := op.Args("path"); err != nil || args["path"] == "/etc/passwd" {
					need.Scopes = append(need.Scopes, "admin")
				}
				return need
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	hooks := &server.Hooks{}
	options := []server.ServerOption{server.WithResourceCapabilities(false, false), server.WithHooks(hooks)}
	if guarded {
		options = append(options, mcpguard.With(guard, hooks))
	}
	s := server.NewMCPServer("test", "1", options...)
	for _, name := range []string{"read", "delete"} {
		s.AddTool(mcp.NewTool(name), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("ran " + name), nil
		})
		s.AddPrompt(mcp.NewPrompt(name), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return mcp.NewGetPromptResult("ran "+name, nil), nil
		})
		s.AddResource(mcp.NewResource("notes://"+name, name), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: "notes://" + name, Text: "ran " + name}}, nil
		})
		s.AddResourceTemplate(mcp.NewResourceTemplate("notes://"+name+"/{id}", name+"s"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: "notes://" + name, Text: "ran " + name}}, nil
		})
	}
	return s
}

// say passes a message to the server as its transport does after the guard.
func say(t *testing.T, s *server.MCPServer, scopes, message string) string {
	t.Helper()
	ctx := t.Context()
	if scopes != "" {
		ctx = mcpresource.NewContext(ctx, &mcpresource.Principal{Issuer: "https://auth.example.com", Subject: "alice", Scopes: strings.Fields(scopes)})
	}
	b, err := json.Marshal(s.HandleMessage(ctx, json.RawMessage(message)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLists(t *testing.T) {
	s := newServer(t, true)
	for _, kind := range []string{"tools", "prompts", "resources", "resources/templates"} {
		message := `{"jsonrpc":"2.0","id":1,"method":"` + kind + `/list"}`
		t.Run("RS-53 RS-54 "+kind+" are those that the caller may use", func(t *testing.T) {
			for scopes, want := range map[string]bool{"mcp": false, "mcp admin": true} {
				got := say(t, s, scopes, message)
				if !strings.Contains(got, `"read`) || strings.Contains(got, `"delete`) != want {
					t.Errorf("%q: got %s", scopes, got)
				}
			}
			if got := say(t, s, "", message); strings.Contains(got, `"read`) {
				t.Errorf("nobody: got %s", got)
			}
		})
	}
}

func TestSecondCheck(t *testing.T) {
	bare, guarded := newServer(t, false), newServer(t, true)
	for name, message := range map[string]string{
		"a tool":             `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete"}}`,
		"two parsers":        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","Name":"delete"}}`,
		"the method, twice":  `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"delete"}}`,
		"arguments":          `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"/etc/passwd"}}}`,
		"a prompt":           `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"read","Name":"delete"}}`,
		"a resource":         `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"notes://read","URI":"notes://delete"}}`,
		"a template's child": `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"notes://delete/7"}}`,
	} {
		t.Run("RS-43 RS-56 "+name+" is judged as mcp-go has decoded it", func(t *testing.T) {
			if got := say(t, bare, "mcp", message); !strings.Contains(got, "ran ") {
				t.Fatalf("mcp-go alone does not run it any more: %s", got)
			}
			if got := say(t, guarded, "mcp", message); strings.Contains(got, "ran ") || !strings.Contains(got, `"error"`) {
				t.Errorf("got %s", got)
			}
			if got := say(t, guarded, "mcp admin", message); !strings.Contains(got, "ran ") {
				t.Errorf("with the scope: got %s", got)
			}
		})
	}
}
