package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/gateway/lists"
	"github.com/mcp-authd/mcp-authd/internal/gateway/toolwatch"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	listCall  = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	toolsList = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","x":[1]},{"name":"drop","x":2}],` +
		`"nextCursor":"c=="}}`
	shownList = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","x":[1]}],"nextCursor":"c=="}}`
)

// rulesOf returns the Shows function of a guard with rules.
func rulesOf(t testing.TB, rules *mcpresource.Rules) Shows {
	t.Helper()
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: publicURL, AuthorizationServers: []string{"https://auth.example.com"}, Policy: rules,
		Validator: noValidator{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, k lists.Kind, name string, _ []byte) bool {
		return name != "" && guard.Covers(ctx, mcpresource.Operation{Method: k.Use(), Name: name})
	}
}

type noValidator struct{}

func (noValidator) Validate(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
	return nil, mcpresource.ErrInvalidToken
}

func TestLists(t *testing.T) {
	shows := rulesOf(t, &mcpresource.Rules{
		Base: []string{"mcp"}, Deny: []string{"drop"}, Resources: map[string][]string{"x://private/*": {"owner"}},
		Prompts: map[string][]string{"p": {"owner"}},
	})
	for _, c := range []struct{ name, ask, kind, in, want string }{
		{"JSON", listCall, "application/json", toolsList, shownList},
		{"JSON of another name", listCall, "text/plain; charset=utf-8", toolsList, shownList},
		{"no type", listCall, "", toolsList, shownList},
		{
			"a stream",
			listCall,
			"text/event-stream",
			": hi\n\nid: 4\ndata: " + toolsList + "\n\n",
			":\n\nid: 4\ndata: " + shownList + "\n\n",
		},
		{
			"a batch",
			"[" + ping + "," + listCall + "]",
			"application/json",
			"[" + toolsList + "]",
			"[" + shownList + "]",
		},
		{
			"an escaped method",
			`{"jsonrpc":"2.0","id":1,"method":"tools\/\u006cist"}`,
			"application/json",
			toolsList,
			shownList,
		},
		{
			"prompts",
			strings.Replace(listCall,
				"tools",
				"prompts",
				1),
			"application/json",
			`{"result":{"prompts":[{"name":"p"}]}}`,
			`{"result":{"prompts":[]}}`,
		},
		{
			"resources", strings.Replace(listCall, "tools", "resources", 1), "application/json",
			`{"result":{"resources":[{"uri":"x://private/a"},{"uri":"x://public/../private"},{"uri":"x://b"}]}}`,
			`{"result":{"resources":[{"uri":"x://b"}]}}`,
		},
		{
			"templates", strings.Replace(listCall, "tools", "resources/templates", 1), "application/json",
			`{"result":{"resourceTemplates":[{"uriTemplate":"x://private/{id}"},{"uriTemplate":"x://b/{id}"}]}}`,
			`{"result":{"resourceTemplates":[{"uriTemplate":"x://b/{id}"}]}}`,
		},
		{"what is no list", ping, "application/json", toolsList, toolsList},
	} {
		t.Run("RS-218 "+c.name, func(t *testing.T) {
			var got http.Header
			g := front(t, Config{Shows: shows}, func(w http.ResponseWriter, r *http.Request) {
				got = r.Header
				w.Header()["Content-Type"] = []string{c.kind}
				w.Header().Set("Etag", `"1"`)
				io.WriteString(w, c.in)
			})
			resp, body := post(t, g.URL, c.ask, map[string]string{"Accept-Encoding": "gzip"})
			if body != c.want {
				t.Errorf("got %s, want %s", body, c.want)
			}
			encoding, tag := got.Get("Accept-Encoding"), resp.Header.Get("Etag")
			if listed := c.want != c.in; listed && (encoding != "identity" || tag != "") {
				t.Errorf("the MCP server was asked for %q, and the answer has the tag %q", encoding, tag)
			}
		})
	}
}

// TestListsInDoubt: RS-218. A response that cannot be checked does not pass.
func TestListsInDoubt(t *testing.T) {
	log := &logtest.Buffer{}
	c := Config{
		Shows:  rulesOf(t, &mcpresource.Rules{Deny: []string{"drop"}}),
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
	for header, value := range map[string]string{
		"Content-Encoding": "gzip", "Content-Type": "application/json; charset=utf-16",
	} {
		g := front(t, c, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(header, value)
			io.WriteString(w, toolsList)
		})
		if resp, body := post(t, g.URL, listCall, nil); resp.StatusCode != 502 || strings.Contains(body, "drop") {
			t.Errorf("%s %s: got %d %s, want 502", header, value, resp.StatusCode, body)
		}
	}
	g := front(t, c, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"result":{"tools":[{"name":"drop"]}}`)
	})
	resp, err := http.Post(g.URL, "application/json", strings.NewReader(listCall))
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil || !strings.Contains(log.String(), lists.ErrMalformed.Error()) {
		t.Errorf("malformed JSON ends like JSON: %v, log %s", err, log)
	}
}

// TestListsByToken: RS-218. Each token gets its own entries, also on a stream by GET, where answers
// are sent again.
func TestListsByToken(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"method\":\"notifications/message\"}\n\n")
		w.(http.Flusher).Flush()
		if r.Method == http.MethodGet {
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, "data: %s\n\n", toolsList)
	}))
	defer inner.Close()
	u, err := New(Config{URL: inner.URL, Resource: publicURL, Shows: rulesOf(t, &mcpresource.Rules{
		Base: []string{"mcp"}, Tools: map[string][]string{"drop": {"admin"}},
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	less := *alice
	less.Scopes = oauth.Scopes{"mcp"}
	for range 2 { // results must not be cached across callers
		for want, p := range map[string]*mcpresource.Principal{"drop": alice, "read": &less} {
			w := httptest.NewRecorder()
			as(p, u).ServeHTTP(w, httptest.NewRequest(http.MethodPost, publicURL, strings.NewReader(listCall)))
			got := w.Body.String()
			if strings.Contains(got, "drop") != (want == "drop") || !strings.Contains(got, "read") {
				t.Errorf("scopes %s: got %s", p.Scopes, got)
			}
		}
	}
	outer := httptest.NewServer(as(&less, u))
	defer outer.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, outer.URL, nil)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 20)
	if _, err := io.ReadFull(resp.Body, first); err != nil { // the server sends no more until the client leaves
		t.Errorf("an event of a stream is held up: %v", err)
	}
}

// toolStore names the embedded field of noTools, a store without tools.
type toolStore = storage.Tools

type noTools struct{ toolStore }

func (noTools) Tools(context.Context, string) ([]storage.Tool, error) { return nil, nil }

// BenchmarkLists measures filtering a list of 500 tools for a caller who may use half of them.
func BenchmarkLists(b *testing.B) {
	rules := &mcpresource.Rules{Base: []string{"mcp"}, Tools: map[string][]string{
		"tool_1*": {"owner"}, "tool_2*": {"owner"},
	}}
	for i := range 20 {
		rules.Tools[fmt.Sprintf("delete_%d", i)] = []string{"admin"}
	}
	shows, ctx := rulesOf(b, rules), mcpresource.NewContext(b.Context(), alice)
	view := func(k lists.Kind, name string, entry []byte) bool { return shows(ctx, k, name, entry) }
	var tools []any
	for i := range 500 {
		tools = append(tools, map[string]any{
			"name": fmt.Sprintf("tool_%d", i), "description": strings.Repeat("Searches the issues. ", 6),
			"inputSchema": map[string]any{"type": "object", "properties": map[string]any{
				"query": map[string]string{"type": "string", "description": "what to look for"},
				"limit": map[string]any{"type": "integer", "maximum": 100},
			}, "required": []string{"query"}},
		})
	}
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "result": map[string]any{"tools": tools}})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("filter", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := lists.Message(text, view); err != nil {
				b.Fatal(err)
			}
		}
	})
	watch, err := toolwatch.New(b.Context(), toolwatch.Config{
		Resource: publicURL, Mode: toolwatch.Hold, Store: noTools{}, Logger: slog.New(slog.DiscardHandler),
		Changed: func(context.Context, storage.Tool) {}, Now: time.Now,
	})
	if err != nil {
		b.Fatal(err)
	}
	rules.Held = watch.Held
	guarded := rulesOf(b, rules)
	watched := func(k lists.Kind, name string, entry []byte) bool {
		return watch.See(ctx, name, entry) && guarded(ctx, k, name, entry)
	}
	b.Run("watched", func(b *testing.B) { // like a gateway with tools_accept: hold
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := lists.Message(text, watched); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("scan", func(b *testing.B) { // the cost of checking that it is JSON
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if !json.Valid(text) {
				b.Fatal("no JSON")
			}
		}
	})
}
