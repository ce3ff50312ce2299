package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/taskstore"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
)

// TestTasksAtTwoGateways checks that two gateways share the owners of tasks through their database.
func TestTasksAtTwoGateways(t *testing.T) {
	url := pgtest.Start(t).Database(t)
	replica := func() *tasksRig {
		s, err := postgres.Open(t.Context(), url, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		ring, err := secrets.NewRing(make([]byte, secrets.KeySize))
		if err != nil {
			t.Fatal(err)
		}
		tasks, err := taskstore.New(s, publicURL, ring, nil)
		if err != nil {
			t.Fatal(err)
		}
		return newTasksRig(t, tasks, nil)
	}
	one, two := replica(), replica()
	one.ask(t, owner, beginCall, begunTask)
	two.ask(t, owner, beginCall, begunModern)
	for name, tr := range map[string]*tasksRig{"one": one, "the other": two} {
		for _, id := range []string{"t1", "t2"} {
			if got := tr.ask(t, owner, about("tasks/get", id), `{"mine":1}`); got != `{"mine":1}` {
				t.Errorf("RS-215 %s at %s: got %s", id, name, got)
			}
			for _, who := range []string{"bob/app/g1", "alice/other/g1", "alice/app/g2"} {
				if got := tr.ask(t, who, about("tasks/result", id), "leaked"); got != noSuchTask {
					t.Errorf("RS-132 %s at %s by %s: got %s", id, name, who, got)
				}
			}
		}
		list := strings.Replace(taskList, `{"x":1}`, `{"taskId":"t2"}`, 1)
		got := tr.ask(t, "bob/app/g1", `{"jsonrpc":"2.0","id":1,"method":"tasks/list"}`, list)
		if strings.Contains(got, "t1") || strings.Contains(got, "t2") {
			t.Errorf("RS-132 a list at %s: got %s", name, got)
		}
	}
}

// taskServer starts an MCP server with tasks that sees the gateway as one caller.
func taskServer(t *testing.T) *httptest.Server {
	t.Helper()
	form := &mcp.ElicitParams{Message: "name?", RequestedSchema: json.RawMessage(`{"type":"object"}`)}
	s := mcp.NewServer(&mcp.Implementation{Name: "tasks", Version: "1"}, nil)
	hello := func(a *mcp.ElicitResult) *mcp.CallToolResult {
		text := "nobody"
		if name, ok := a.Content["name"].(string); ok {
			text = "hello " + name
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	}
	asks := func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if a, ok := r.Params.InputResponses["name"].(*mcp.ElicitResult); ok {
			return hello(a), nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"name": form}}, nil
	}
	tells := func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		token := r.Params.GetProgressToken()
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 0.5})
		if err != nil {
			return nil, err
		}
		a, err := r.Session.Elicit(ctx, form)
		if err != nil {
			return nil, err
		}
		return hello(a), nil
	}
	for name, h := range map[string]mcp.ToolHandler{"asks": asks, "tells": tells} {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
	}
	mux := http.NewServeMux()
	inner := httptest.NewServer(mux)
	t.Cleanup(inner.Close)
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: inner.URL + "/mcp", AuthorizationServers: []string{alice.Issuer},
		Validator: mcpresource.ValidatorFunc(
			func(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
				return &mcpresource.Principal{
					Issuer: alice.Issuer, Subject: "gateway", ClientID: "gateway",
					Audience: []string{inner.URL + "/mcp"}, ExpiresAt: time.Now().Add(time.Hour),
				}, nil
			}),
	})
	if err != nil {
		t.Fatal(err)
	}
	adapter := gosdk.New(guard, s, &gosdk.Options{Tasks: &gosdk.Tasks{
		Tools: map[string]gosdk.TaskTool{"asks": {}, "tells": {}}, PollInterval: 10 * time.Millisecond,
	}})
	mux.Handle("/", adapter.Handler())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		adapter.Close(ctx)
	})
	return inner
}

// gatewayTo starts a gateway in front of inner. The header X-As names the caller.
func gatewayTo(t *testing.T, inner *httptest.Server) *httptest.Server {
	t.Helper()
	u, err := New(Config{
		URL: inner.URL + "/mcp", Resource: publicURL, Headers: http.Header{"Authorization": {"Bearer of-the-gateway"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := *alice
		p.Subject = r.Header.Get("X-As")
		as(&p, u).ServeHTTP(w, r)
	}))
	t.Cleanup(outer.Close)
	return outer
}

// dataOf returns the last message of a response, which is JSON or an event stream.
func dataOf(t *testing.T, text string) (m struct{ Result map[string]any }) {
	t.Helper()
	if i := strings.LastIndex(text, "data: {"); i >= 0 {
		text = text[i+len("data: "):]
	}
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// TestModernTasksBehindTheGateway checks a task that asks its owner for input in the result of
// tasks/get and gets it through tasks/update.
func TestModernTasksBehindTheGateway(t *testing.T) {
	g := gatewayTo(t, taskServer(t))
	ask := func(who, method, name, params string) string {
		_, got := post(t, g.URL, `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{`+params+`,"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},`+
			`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},`+
			`"extensions":{"io.modelcontextprotocol/tasks":{}}},"progressToken":"p"}}}`, map[string]string{
			"X-As": who, "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28",
			"Mcp-Method": method, "Mcp-Name": name,
		})
		return strings.TrimSpace(got)
	}
	id, _ := dataOf(t, ask("alice", "tools/call", "asks", `"name":"asks","arguments":{}`)).Result["taskId"].(string)
	status := func(want string) (got string) {
		wait.Until(t, "RS-216: the task is "+want, func() bool {
			got = ask("alice", "tasks/get", id, `"taskId":"`+id+`"`)
			return strings.Contains(got, `"status":"`+want+`"`)
		})
		return got
	}
	if got := status("input_required"); !strings.Contains(got, `"inputRequests":{"name"`) {
		t.Errorf("RS-216 got %s", got)
	}
	given := `"taskId":"` + id + `","inputResponses":{"name":{"action":"accept","content":{"name":"WHO"}}}`
	for _, method := range []string{"tasks/update", "tasks/get", "tasks/cancel"} {
		if got := ask("bob", method, id, strings.Replace(given, "WHO", "Bob", 1)); got != noSuchTask {
			t.Errorf("RS-186 %s by another person: got %s", method, got)
		}
	}
	ask("alice", "tasks/update", id, strings.Replace(given, "WHO", "Alice", 1))
	if got := status("completed"); !strings.Contains(got, "hello Alice") {
		t.Errorf("RS-216 got %s", got)
	}
	listen := ask("alice", "subscriptions/listen", "", `"notifications":{"taskIds":["`+id+`"]}`)
	if !strings.Contains(listen, "notifications/subscriptions/acknowledged") || strings.Contains(listen, "taskIds") ||
		strings.Contains(listen, "notifications/progress") || strings.Contains(listen, `"notifications/tasks"`) {
		t.Errorf("RS-216 an unsent message must not be acknowledged: got %s", listen)
	}
}

// TestSessionTasksBehindTheGateway checks progress with the token of the call, and a question on
// the stream that waits for the result.
func TestSessionTasksBehindTheGateway(t *testing.T) {
	g := gatewayTo(t, taskServer(t))
	header := map[string]string{"X-As": "alice", "Accept": "application/json, text/event-stream"}
	resp, _ := post(t, g.URL, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`, header)
	header["Mcp-Session-Id"], header["Mcp-Protocol-Version"] = resp.Header.Get("Mcp-Session-Id"), "2025-11-25"
	post(t, g.URL, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header)

	open := func(method, body string) <-chan string {
		req, err := http.NewRequestWithContext(t.Context(), method, g.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for name, value := range header {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		events := make(chan string, 100)
		go func() {
			defer close(events)
			lines := bufio.NewScanner(resp.Body)
			for lines.Scan() {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "" {
					events <- data
				}
			}
		}()
		return events
	}
	next := func(events <-chan string) string {
		select {
		case e := <-events:
			return e
		case <-time.After(time.Minute):
			t.Fatal("no event")
			return ""
		}
	}
	own := open(http.MethodGet, "")
	_, got := post(t, g.URL, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"tells","arguments":{},`+
		`"task":{},"_meta":{"progressToken":"p-7"}}}`, header)
	task, _ := dataOf(t, got).Result["task"].(map[string]any)
	id, _ := task["taskId"].(string)
	related := `"io.modelcontextprotocol/related-task":{"taskId":"` + id + `"}`
	if e := next(own); id == "" || !strings.Contains(e, `"notifications/progress"`) ||
		!strings.Contains(e, `"progressToken":"p-7"`) || !strings.Contains(e, related) {
		t.Errorf("RS-215 got %s", e)
	}
	wait.Until(t, "RS-215: the task asks for input", func() bool {
		_, got = post(t, g.URL, about("tasks/get", id), header)
		return strings.Contains(got, "input_required")
	})
	result := open(http.MethodPost, about("tasks/result", id))
	question := next(result)
	var asked struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal([]byte(question), &asked) != nil || asked.Method != "elicitation/create" ||
		!strings.Contains(question, related) {
		t.Fatalf("RS-215 got %s", question)
	}
	post(t, g.URL, `{"jsonrpc":"2.0","id":`+string(asked.ID)+
		`,"result":{"action":"accept","content":{"name":"Alice"}}}`, header)
	if e := next(result); !strings.Contains(e, "hello Alice") {
		t.Errorf("RS-215 got %s", e)
	}
}
