//lint:file-ignore SA1019 sampling, roots and logging are part of the revisions before 2026-07-28 (SEP-2577)

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// everything returns the command of the MCP reference server.
func everything(t *testing.T, transport string) []string {
	t.Helper()
	modules := filepath.Join(npmtest.Dir(t), "node_modules")
	return []string{
		filepath.Join(modules, ".bin", "node"),
		filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js"), transport,
	}
}

// listening runs it as an HTTP server.
func listening(t *testing.T) string {
	t.Helper()
	address := nettest.For(t)
	_, port, _ := net.SplitHostPort(address) // the address is valid
	command := everything(t, "streamableHttp")
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(cmd.Environ(), "PORT="+port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	wait.Success(t, "server-everything listens", func() error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err
	})
	return "http://" + address + "/mcp"
}

// TestProbes checks that a client sees the same through the gateway as without it. It tests HTTP
// and standard input and output, and every revision that a client may begin with.
func TestProbes(t *testing.T) {
	npmtest.Dir(t)
	direct := listening(t)
	http, stdio := protect(t, direct), protect(t, append([]string{"--"}, everything(t, "stdio")...)...)
	for _, mode := range []struct{ name, version string }{
		{"a client that begins with server/discover", ""}, {"a client that begins with initialize", "2025-11-25"},
	} {
		want := probe(t, direct, mode.version, nil)
		if len(want) < 38 {
			t.Fatalf("%d probes", len(want))
		}
		for _, p := range []struct {
			name string
			*protected
		}{{"HTTP", http}, {"stdio", stdio}} {
			t.Run(mode.name+", over "+p.name, func(t *testing.T) {
				got := probe(t, p.MCPURL, mode.version, browser(t, p.protected))
				for _, name := range slices.Sorted(maps.Keys(want)) {
					if got[name] != want[name] {
						t.Errorf("%s:\n got  %.600s\n want %.600s", name, got[name], want[name])
					}
				}
			})
		}
	}
}

// browser returns the SDK's own OAuth handler with the test's browser.
func browser(t *testing.T, p *protected) auth.OAuthHandler {
	t.Helper()
	c := &client{}
	handler, err := c.handler(demotest.NewPerson(p.Username, p.Password))
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// heard records notifications and requests to a client.
type heard struct {
	mu   sync.Mutex // guards said
	said map[string]int
}

func (h *heard) hear(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said[what]++
}

// soon waits until a message is recorded.
func (h *heard) soon(what string) string {
	if wait.Poll(wait.Bound, func() bool { return h.has(what) }) {
		return what
	}
	return "nothing"
}

func (h *heard) has(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said[what] > 0
}

// listRoots is the tool of the reference server that returns the client's roots.
const listRoots = "get-roots-list"

// variable matches text that differs between runs.
var variable = regexp.MustCompile(
	`\d{1,2}:\d\d:\d\d [AP]M|\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}|"blob":"[^"]+"`,
)

// probe uses everything that the server offers and returns the results.
func probe(t *testing.T, endpoint, version string, oauth auth.OAuthHandler) map[string]string {
	t.Helper()
	h := &heard{said: map[string]int{}}
	c := mcp.NewClient(&mcp.Implementation{Name: "probe", Version: "1"}, h.options())
	c.AddRoots(&mcp.Root{URI: "file:///probe", Name: "probe"})
	var options *mcp.ClientSessionOptions
	if version != "" {
		options = &mcp.ClientSessionOptions{ProtocolVersion: version}
	}
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: endpoint, OAuthHandler: oauth}, options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := map[string]string{}
	keep := func(name string, result any, err error) {
		b, _ := json.Marshal(result) // cannot fail: it was parsed from JSON
		if out[name] = variable.ReplaceAllString(string(b), "*"); err != nil {
			out[name] = "error " + err.Error()[strings.LastIndex(err.Error(), ": ")+1:]
		}
	}
	keep("connect", s.InitializeResult(), nil)
	// The server adds the tool for roots after it has checked the client's capabilities.
	wait.Poll(wait.Bound, func() bool {
		tools, err := s.ListTools(t.Context(), nil)
		return err == nil && slices.ContainsFunc(tools.Tools, func(t *mcp.Tool) bool { return t.Name == listRoots })
	})
	probeTools(t.Context(), s, h, keep)
	probeResources(t.Context(), s, h, keep)
	probePrompts(t.Context(), s, keep)
	keep("ping", nil, s.Ping(t.Context(), nil))
	c.AddRoots(&mcp.Root{URI: "file:///more", Name: "more"})
	var result *mcp.CallToolResult
	wait.Poll(wait.Bound, func() bool { // the server requests the roots again
		result, err = s.CallTool(t.Context(), &mcp.CallToolParams{Name: listRoots})
		text, _ := json.Marshal(result) // cannot fail: it was parsed from JSON
		return strings.Contains(string(text), "file:///more")
	})
	keep("roots, changed", result, err)
	probeTasks(t, endpoint, oauth, keep)
	return out
}

func (h *heard) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			RootsV2: &mcp.RootCapabilities{ListChanged: true},
			Elicitation: &mcp.ElicitationCapabilities{
				Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
			},
		},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			h.hear("asked to sample")
			return &mcp.CreateMessageResult{
				Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "sampled"}}, nil
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			h.hear("asked by " + cmp.Or(r.Params.Mode, "form")) // the default mode
			if r.Params.Mode == "url" {
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "probe", "check": true}}, nil
		},
		LoggingMessageHandler: func(context.Context, *mcp.LoggingMessageRequest) { h.hear("log") },
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			h.hear("progress")
		},
		ResourceUpdatedHandler: func(context.Context, *mcp.ResourceUpdatedNotificationRequest) {
			h.hear("updated")
		},
	}
}

type keeper func(name string, result any, err error)

func probeTools(ctx context.Context, s *mcp.ClientSession, h *heard, keep keeper) {
	tools, err := s.ListTools(ctx, nil)
	keep("tools/list", tools, err)
	for _, call := range []struct {
		name, tool string
		arguments  map[string]any
	}{
		{"echo", "echo", map[string]any{"message": "hello"}},
		{"echo without arguments", "echo", nil},
		{"sum", "get-sum", map[string]any{"a": 1, "b": 2}},
		{"sum of words", "get-sum", map[string]any{"a": "x", "b": 2}},
		{"annotated", "get-annotated-message", map[string]any{"messageType": "error", "includeImage": true}},
		{"links", "get-resource-links", map[string]any{"count": 3}},
		{"reference", "get-resource-reference", map[string]any{"resourceType": "Text", "resourceId": 1}},
		{"structured", "get-structured-content", map[string]any{"location": "Chicago"}},
		{"image", "get-tiny-image", nil},
		{"sampling", "trigger-sampling-request", map[string]any{"prompt": "p", "maxTokens": 10}},
		{"elicitation", "trigger-elicitation-request", nil},
		{"elicitation by URL", "trigger-url-elicitation",
			map[string]any{"url": "https://example.com/", "elicitationId": "e"}},
		{"list of roots", listRoots, nil},
		{"a tool that needs a task", "simulate-research-query", map[string]any{"topic": "t"}},
		{"unknown tool", "no-such-tool", nil},
	} {
		result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: call.tool, Arguments: call.arguments})
		keep(call.name, result, err)
	}
	// The responses to these calls arrived after the client's own.
	keep("sampling, asked", h.has("asked to sample"), nil)
	keep("elicitation, asked", h.has("asked by form"), nil)
	long := &mcp.CallToolParams{
		Name: "trigger-long-running-operation", Arguments: map[string]any{"duration": 1, "steps": 2},
	}
	long.SetProgressToken("p")
	result, err := s.CallTool(ctx, long)
	keep("long", result, err)
	keep("long, progress", h.soon("progress"), nil)
	result, err = s.CallTool(ctx, &mcp.CallToolParams{Name: "get-env"})
	keep("environment", result != nil && !result.IsError, err)
	keep("log level", nil, s.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "debug"}))
	_, err = s.CallTool(ctx, &mcp.CallToolParams{Name: "toggle-simulated-logging"})
	keep("logs", h.soon("log"), err)
	_, err = s.CallTool(ctx, &mcp.CallToolParams{Name: "toggle-simulated-logging"})
	keep("logs, off", nil, err)
}

func probeResources(ctx context.Context, s *mcp.ClientSession, h *heard, keep keeper) {
	resources, err := s.ListResources(ctx, nil)
	keep("resources/list", resources, err)
	templates, err := s.ListResourceTemplates(ctx, nil)
	keep("resources/templates/list", templates, err)
	for name, uri := range map[string]string{
		"text": "demo://resource/dynamic/text/1", "blob": "demo://resource/dynamic/blob/1",
		"unknown resource": "demo://no/such",
	} {
		read, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		keep(name, read, err)
	}
	keep("subscribe", nil, s.Subscribe(ctx, &mcp.SubscribeParams{URI: "demo://resource/dynamic/text/1"}))
	result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "toggle-subscriber-updates"})
	keep("updates", result != nil && !result.IsError, err)
	keep("updated", h.soon("updated"), nil)
	keep("unsubscribe", nil, s.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: "demo://resource/dynamic/text/1"}))
}

func probePrompts(ctx context.Context, s *mcp.ClientSession, keep keeper) {
	prompts, err := s.ListPrompts(ctx, nil)
	keep("prompts/list", prompts, err)
	for name, arguments := range map[string]map[string]string{
		"simple-prompt": nil, "args-prompt": {"city": "Rome"},
		"completable-prompt": {"department": "Sales", "name": "Alice"},
		"resource-prompt":    {"resourceType": "Text", "resourceId": "1"}, "no-such-prompt": nil,
	} {
		got, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
		keep(name, got, err)
	}
	_, err = s.GetPrompt(ctx, &mcp.GetPromptParams{Name: "args-prompt"})
	keep("a prompt without its argument", nil, err)
	for _, ref := range []*mcp.CompleteReference{
		{Type: "ref/prompt", Name: "completable-prompt"},
		{Type: "ref/resource", URI: "demo://resource/dynamic/text/{resourceId}"},
	} {
		argument := map[string]string{"ref/prompt": "department", "ref/resource": "resourceId"}[ref.Type]
		got, err := s.Complete(ctx,
			&mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: argument, Value: ""}})
		keep("completion of "+ref.Type, got, err)
	}
}

// probeTasks speaks JSON-RPC itself, because the Go SDK does not support tasks.
func probeTasks(t *testing.T, endpoint string, oauth auth.OAuthHandler, keep keeper) {
	t.Helper()
	session := ""
	post := func(method, params string) string {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
		if strings.HasPrefix(method, "notifications/") {
			body = strings.Replace(body, `"id":1,`, "", 1)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		if oauth != nil {
			source, err := oauth.TokenSource(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			token, err := source.Token()
			if err != nil {
				t.Fatal(err)
			}
			token.SetAuthHeader(req)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if method == "initialize" {
			session = resp.Header.Get("Mcp-Session-Id")
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	post("initialize",
		`{"protocolVersion":"2025-11-25","capabilities":{"tasks":{}},"clientInfo":{"name":"probe","version":"1"}}`)
	post("notifications/initialized", `{}`)
	made := post("tools/call", `{"name":"simulate-research-query","arguments":{"topic":"t"},"task":{"ttl":60000}}`)
	m := regexp.MustCompile(`"taskId":"([^"]+)"`).FindStringSubmatch(made)
	if m == nil {
		keep("task", "none: "+made, nil)
		return
	}
	keep("task", strings.Contains(made, `"working"`), nil)
	keep("tasks/list", strings.Contains(post("tasks/list", `{}`), m[1]), nil)
	keep("tasks/get", strings.Contains(post("tasks/get", fmt.Sprintf(`{"taskId":%q}`, m[1])), `"status"`), nil)
	keep("tasks/result",
		strings.Contains(post("tasks/result", fmt.Sprintf(`{"taskId":%q}`, m[1])), "Research Report"), nil)
}
