package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestAskingAnAssistant: OB-11: real clients sign in a user at the admin MCP server. They find out
// why another user could not connect, and make a change that the user has approved.
func TestAskingAnAssistant(t *testing.T) {
	d := demotest.StartServer(t, "", "administrator", demotest.Options{})
	bob := d.AddUser(t, "bob")
	if _, _, err := assistant(t, d, bob); err == nil || !strings.Contains(err.Error(), "403 Forbidden") { // no role
		t.Fatalf("Bob connects: %v", err)
	}
	wait.Until(t, "his attempt is stored", func() bool {
		out, err := exec.Command(program.Authd(t), "attempt", "list", "--json", "--config", d.Config).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Contains(string(out), "person_not_permitted")
	})
	t.Run("Inspector CLI", func(t *testing.T) { inspectorAdmin(t, d) })
	t.Run("go-sdk", func(t *testing.T) { goSDKAdmin(t, d) })
}

func inspectorAdmin(t *testing.T, d *demotest.Demo) {
	home, callback := t.TempDir(), "http://"+nettest.For(t)+"/oauth/callback"
	p := newPerson(t, d)
	p.Scopes = []string{"admin:read", "admin:write"}
	out, err := tryRun(t, p, inspectorCommand(t, home, callback, "why", d.MCPURL, "--transport", "http",
		"--tool-arg", "person=bob"))
	if err != nil || p.signIns() != 1 || !strings.Contains(out, "person_not_permitted") ||
		!strings.Contains(out, "DATA") {
		t.Fatalf("OB-11: got %v, %d sign-ins and\n%s\n%s\n%s", err, p.signIns(), out, p.output(), d.Log())
	}
	out, err = tryRun(t, p, inspectorCommand(t, home, callback, "user_list", d.MCPURL, "--transport", "http"))
	if err != nil || p.signIns() != 1 || !strings.Contains(out, "bob") {
		t.Fatalf("OB-11: got %v, %d sign-ins and\n%s\n%s\n%s", err, p.signIns(), out, p.output(), d.Log())
	}
}

// assistant connects the SDK's client for a user, and counts the sign-ins.
func assistant(t *testing.T, d *demotest.Demo, p *demotest.Person) (*mcp.ClientSession, *atomic.Int32, error) {
	const redirect = "http://localhost:3142/callback"
	signIns := &atomic.Int32{}
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect,
		AuthorizationCodeFetcher: func(
			_ context.Context, args *auth.AuthorizationArgs,
		) (*auth.AuthorizationResult, error) {
			signIns.Add(1)
			back, err := p.Visit(args.URL)
			if err != nil {
				return nil, err
			}
			q := back.Query()
			if q.Get("error") != "" {
				return nil, fmt.Errorf("authorization: %s", q.Get("error"))
			}
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName: "Assistant", RedirectURIs: []string{redirect},
				GrantTypes:    []string{"authorization_code", "refresh_token"},
				ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
			}},
	})
	if err != nil {
		return nil, nil, err
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: d.MCPURL, OAuthHandler: handler}, nil)
	if err == nil {
		t.Cleanup(func() { session.Close() })
	}
	return session, signIns, err
}

func goSDKAdmin(t *testing.T, d *demotest.Demo) {
	p := d.Person()
	p.Scopes = []string{"admin:read", "admin:write"}
	session, signIns, err := assistant(t, d, p)
	if err != nil {
		t.Fatal(err)
	}
	tools := func() (names []string) {
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		return names
	}
	call := func(tool string, args map[string]any) string {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil || result.IsError {
			t.Fatalf("OB-11: %s: %+v, %v", tool, result, err)
		}
		b, err := json.Marshal(result.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := tools(); slices.Contains(got, "user_disable") || !slices.Contains(got, "allow_changes") {
		t.Errorf("OB-11: at first the tools are %v", got)
	}
	if got := call("why", map[string]any{"person": "bob"}); !strings.Contains(got, "person_not_permitted") {
		t.Errorf("OB-11: why: %s", got)
	}
	if call("allow_changes", nil); signIns.Load() != 2 {
		t.Errorf("OB-11: got %d sign-ins, want 2", signIns.Load())
	}
	if got := tools(); !slices.Contains(got, "user_disable") || slices.Contains(got, "allow_changes") {
		t.Errorf("OB-11: then the tools are %v", got)
	}
	if got := call("user_disable", map[string]any{"name": "bob"}); !strings.Contains(got, `"disabled":true`) ||
		signIns.Load() != 2 {
		t.Errorf("OB-11: got %d sign-ins and %s", signIns.Load(), got)
	}
	wait.Until(t, "OB-11: the call is in the log", func() bool { return strings.Contains(d.Log(), "user_disable") })
}
