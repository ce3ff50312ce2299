package clients

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
)

// firstHour returns the resource of docs/first-hour.md without its addresses.
func firstHour(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/first-hour.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s)<!-- as: mcp-authd.yaml -->.*?\n( +name: Notes\n.*?) +upstream:`).FindSubmatch(page)
	if m == nil {
		t.Fatal("docs/first-hour.md has no resource named Notes")
	}
	return regexp.MustCompile(`(?m)^    `).ReplaceAllString(string(m[1]), "")
}

// startFirstHour runs the configuration of docs/first-hour.md in front of an MCP server with notes.
func startFirstHour(t *testing.T) *demotest.Demo {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	type note struct {
		Text string `json:"text"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "list_notes"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, note, error) {
			return nil, note{"a first note"}, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "add_note"},
		func(_ context.Context, _ *mcp.CallToolRequest, n note) (*mcp.CallToolResult, note, error) {
			return nil, n, nil
		})
	inner := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(inner.Close)
	return demotest.StartGateway(t, inner.URL+"/mcp", "", firstHour(t), demotest.Options{})
}

// consented matches the log of an approval.
var consented = regexp.MustCompile(`.*consent\.approved.*`)

// TestFirstHour: RU-17 each client lists the tool of docs/first-hour.md that requires an additional
// scope. It requests that scope at the first sign-in and calls the tool, with one sign-in.
func TestFirstHour(t *testing.T) {
	lane.Long(t, "internal/assembly holds challenge, metadata and lists")
	npmtest.Dir(t) // skips if the packages are missing
	for _, c := range []struct {
		name string
		call func(t *testing.T, l *life, p *person) (listed, called string)
	}{
		{"TypeScript SDK v1", firstHourSDK("1")},
		{"TypeScript SDK v2", firstHourSDK("2")},
		{"mcp-remote", firstHourRemote},
		{"Inspector CLI", firstHourInspector},
		{"go-sdk", firstHourGo},
	} {
		t.Run("RU-17 "+c.name, func(t *testing.T) {
			t.Parallel()
			l := &life{client: &client{name: c.name}, Demo: startFirstHour(t)}
			p := newPerson(t, l.Demo)
			listed, called := c.call(t, l, p)
			if !strings.Contains(listed, "add_note") || !strings.Contains(called, "from a test") {
				t.Errorf("listed %s, called %s\n%s", listed, called, p.output())
			}
			if asked := consented.FindAllString(l.Log(), -1); len(asked) != 1 ||
				!strings.Contains(asked[0], "add and change notes") {
				t.Errorf("the person was asked another number of times than once, or not for the scope: %q", asked)
			}
		})
	}
}

// TestFirstHourLeftOut: RU-17 if a user removes every optional scope, the client still connects,
// lists and reads. Version 2 of the SDK asks again for the scope of the tool, and version 1 cannot.
func TestFirstHourLeftOut(t *testing.T) {
	lane.Long(t, "internal/assembly holds challenge, metadata and lists")
	npmtest.Dir(t) // skips if the packages are missing
	for version, stepsUp := range map[string]bool{"1": false, "2": true} {
		t.Run("RU-17 TypeScript SDK v"+version, func(t *testing.T) {
			t.Parallel()
			l := &life{client: &client{name: "v" + version}, Demo: startFirstHour(t)}
			p := newPerson(t, l.Demo)
			p.Scopes = []string{"notes"}
			out, err := tryRun(t, p, firstHourScript(t, l, version, "list_notes", "add_note"))
			if err == nil || !strings.Contains(out, "listed add_note list_notes") ||
				!strings.Contains(out, "a first note") || strings.Contains(out, "from a test") {
				t.Fatalf("got %v and\n%s", err, p.output())
			}
			if asked := p.signIns(); stepsUp && asked < 2 || !stepsUp && (asked != 1 ||
				!strings.Contains(p.output(), "403 after trying upscoping")) {
				t.Errorf("the person was asked %d times\n%s", asked, p.output())
			}
		})
	}
}

func firstHourScript(t *testing.T, l *life, version string, steps ...string) *exec.Cmd {
	cmd := npmtest.Command(t, "node", append([]string{"clients/scopes.mjs", l.MCPURL, ""}, steps...)...)
	cmd.Env = append(cmd.Env, "V="+version)
	return cmd
}

func firstHourSDK(version string) func(*testing.T, *life, *person) (listed, called string) {
	return func(t *testing.T, l *life, p *person) (listed, called string) {
		out := run(t, p, firstHourScript(t, l, version, "add_note"))
		return out, out
	}
}

func firstHourRemote(t *testing.T, l *life, p *person) (listed, called string) {
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &mcp.CommandTransport{Command: remoteCommand(t, p, l.MCPURL)}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.output())
	}
	return firstHourSession(t, session)
}

func firstHourInspector(t *testing.T, l *life, p *person) (listed, called string) {
	command := inspectorAt(t, l)
	called, at, err := command(t, "add_note", "--tool-arg", "text=from a test")
	p.Person = at.Person
	if err != nil {
		t.Fatalf("%v\n%s", err, at.output())
	}
	listed, at, err = command(t, "", "--method", "tools/list")
	if err != nil || at.signIns() != 0 {
		t.Fatalf("%v\n%s", err, at.output())
	}
	return listed, called
}

func firstHourGo(t *testing.T, l *life, p *person) (listed, called string) {
	var signIns atomic.Int32
	handler := goHandler(t, l.Demo, auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: goMetadata("first hour")},
	}, &signIns)
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	session, err := c.Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: l.MCPURL, OAuthHandler: handler}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return firstHourSession(t, session)
}

// firstHourSession lists the tools and calls the tool that requires an additional scope.
func firstHourSession(t *testing.T, session *mcp.ClientSession) (listed, called string) {
	t.Cleanup(func() { session.Close() })
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	result, err := session.CallTool(t.Context(),
		&mcp.CallToolParams{Name: "add_note", Arguments: map[string]any{"text": "from a test"}})
	if err != nil || result.IsError {
		t.Fatalf("%+v, %v", result, err)
	}
	text, _ := result.Content[0].(*mcp.TextContent)
	return strings.Join(names, " "), text.Text
}
