package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// taskRig serves tools that can be called as tasks. A token is "user/client/grant-scope-scope".
type taskRig struct {
	*rig
	release chan struct{} // lets slow tools continue
	runs    atomic.Int64  // running tools
	revoked sync.Map      // ended grants
	life    atomic.Int64  // of tokens, in nanoseconds; 0: one hour
	events  sync.Map      // outcome of tools/call -> true
}

func newTaskRig(t *testing.T, o *Tasks, more ...func(*mcpresource.Config, *Options)) *taskRig {
	t.Helper()
	tr := &taskRig{release: make(chan struct{})}
	if o == nil {
		o = &Tasks{}
	}
	if o.Tools == nil {
		o.Tools = map[string]TaskTool{
			"slow": {}, "secret": {}, "fails": {Required: true}, "breaks": {}, "panics": {}, "asks": {},
			"late": {Required: true, Late: true}, "elicits": {}, "once": {}, "large": {},
			"deaf": {}, "huge": {}, "reports": {},
		}
	}
	if o.PollInterval == 0 {
		o.PollInterval = 20 * time.Millisecond
	}
	opts := &Options{Tasks: o}
	tr.rig = newRigOf(t, func(c *mcpresource.Config) {
		c.Validator = mcpresource.ValidatorFunc(tr.validate)
		c.Calls = func(_ context.Context, e mcpresource.CallEvent) {
			if e.Method == "tools/call" {
				tr.events.Store(string(e.Outcome), true)
			}
		}
		for _, m := range more {
			m(c, opts)
		}
	}, opts, tr.tools)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		tr.adapter.tasks.end(ctx)
	})
	return tr
}

func (tr *taskRig) validate(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
	parts := strings.Split(c.Token, "-")
	who := append(strings.Split(parts[0], "/"), "app", "g")
	p := tr.principal(who[0], parts[1:]...)
	p.ClientID = who[1]
	p.Claims = json.RawMessage(`{"gid":"` + who[2] + `"}`)
	if _, ended := tr.revoked.Load(who[2]); ended {
		return nil, mcpresource.ErrInvalidToken
	}
	if life := tr.life.Load(); life != 0 {
		p.ExpiresAt = time.Now().Add(time.Duration(life))
	}
	return p, nil
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func nameForm() *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: "name?", RequestedSchema: json.RawMessage(anyObject)}
}

func nameIn(answers mcp.InputResponseMap, key string) string {
	a, _ := answers[key].(*mcp.ElicitResult)
	if a == nil {
		return ""
	}
	return fmt.Sprint(a.Content["name"])
}

func (tr *taskRig) tools(s *mcp.Server) {
	for name, h := range map[string]mcp.ToolHandler{
		"slow": func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			tr.runs.Add(1)
			defer tr.runs.Add(-1)
			select {
			case <-tr.release:
				return say("done " + string(r.Params.Arguments)), nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		},
		"deaf": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-tr.release
			return say("deaf"), nil
		},
		"fails": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			r := &mcp.CallToolResult{}
			r.SetError(errors.New("no such file"))
			return r, nil
		},
		"breaks": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, &jsonrpc.Error{Code: -32050, Message: "broken", Data: json.RawMessage(`{"a":1}`)}
		},
		"panics": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("boom") },
		"reports": func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			p := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1}
			return say(fmt.Sprintf("reported to %v", p.ProgressToken)), r.Session.NotifyProgress(ctx, p)
		},
		"huge": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return say(strings.Repeat("x", 3_000_000)), nil
		},
		"large": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return say(strings.Repeat("x", 2<<20)), nil
		},
		"asks": func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			switch r.Params.RequestState {
			case "":
				return &mcp.CallToolResult{
					InputRequests: mcp.InputRequestMap{"a": nameForm(), "b": nameForm()}, RequestState: "one"}, nil
			case "one":
				return &mcp.CallToolResult{
					InputRequests: mcp.InputRequestMap{"a": nameForm()},
					RequestState:  nameIn(r.Params.InputResponses, "a") + nameIn(r.Params.InputResponses, "b")}, nil
			}
			for _, want := range []bool{true, false} {
				if first, err := Once(ctx); err != nil || first != want {
					return nil, fmt.Errorf("RS-183 got %t, %v", first, err)
				}
			}
			return say("hello " + r.Params.RequestState + nameIn(r.Params.InputResponses, "a")), nil
		},
		"once": func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if r.Params.InputResponses == nil {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"a": nameForm()}}, nil
			}
			return say("hello " + nameIn(r.Params.InputResponses, "a")), nil
		},
		"late": func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if r.Params.RequestState == "" {
				return &mcp.CallToolResult{
					InputRequests: mcp.InputRequestMap{"a": nameForm()}, RequestState: "one"}, nil
			}
			if err := Detach(ctx); err != nil {
				return nil, err
			}
			<-tr.release
			return say("hello " + nameIn(r.Params.InputResponses, "a")), ctx.Err()
		},
		"elicits": func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			a, err := r.Session.Elicit(ctx, nameForm())
			if err != nil {
				return nil, err
			}
			r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: "p", Progress: 1})
			return say("hello " + fmt.Sprint(a.Content["name"])), nil
		},
		"plain": okTool,
	} {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: anyObject}, h)
	}
}

type answer struct {
	Result map[string]any
	Error  struct {
		Code    int64
		Message string
		Data    map[string]any
	}
	status int
	text   string
}

func (a answer) id() string {
	id, _ := a.Result["taskId"].(string)
	if task, ok := a.Result["task"].(map[string]any); ok {
		id, _ = task["taskId"].(string)
	}
	return id
}

func decodeAnswer(t *testing.T, r reply) answer {
	t.Helper()
	a := answer{status: r.status, text: r.text}
	raw := r.text
	if i := strings.LastIndex(raw, "data: {"); i >= 0 {
		raw = raw[i+len("data: "):]
	}
	if err := json.NewDecoder(strings.NewReader(raw)).Decode(&a); err != nil {
		t.Fatalf("%d %s: %v", r.status, r.text, err)
	}
	return a
}

const declaring = `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},` +
	`"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// extended sends a 2026-07-28 request of a client that supports tasks.
func (tr *taskRig) extended(t *testing.T, token, method, name, params string) answer {
	t.Helper()
	body := strings.Replace(modern(method, params), `"io.modelcontextprotocol/clientCapabilities":{}`, declaring, 1)
	return decodeAnswer(t, tr.rig.ask(t, token, ask{
		body: body, headers: hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name)}))
}

func (tr *taskRig) start(t *testing.T, token, tool string) string {
	t.Helper()
	a := tr.extended(t, token, "tools/call", tool, `"name":"`+tool+`","arguments":`+argumentsOf(tool))
	if a.Result["resultType"] != "task" || len(a.id()) < 22 {
		t.Fatalf("%s: got %s", tool, a.text)
	}
	return a.id()
}

func argumentsOf(tool string) string {
	if tool == "secret" { // its schema allows no arguments
		return `{}`
	}
	return `{"n":1}`
}

func (tr *taskRig) about(t *testing.T, token, method, id, more string) answer {
	t.Helper()
	return tr.extended(t, token, method, id, `"taskId":"`+id+`"`+more)
}

// until polls a task until it has one of statuses.
func (tr *taskRig) until(t *testing.T, token, id string, statuses ...string) (a answer) {
	t.Helper()
	wait.Success(t, "the task is "+strings.Join(statuses, " or "), func() error {
		a = tr.about(t, token, "tasks/get", id, "")
		if got, _ := a.Result["status"].(string); !slices.Contains(statuses, got) {
			return fmt.Errorf("got %s", a.text)
		}
		return nil
	})
	return a
}

// inSession sends a request in a session of 2025-11-25.
func (tr *taskRig) inSession(t *testing.T, token, session, method, params string) answer {
	t.Helper()
	return decodeAnswer(t, tr.rig.ask(t, token, ask{
		body:    `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params + `}}`,
		headers: hdr("Mcp-Protocol-Version", "2025-11-25", "Mcp-Session-Id", session)}))
}

// TestTasksExtension checks the extension of 2026-07-28.
func TestTasksExtension(t *testing.T) {
	tr := newTaskRig(t, nil)
	t.Run("RS-216 it is offered, and the capability of 2025-11-25 is not", func(t *testing.T) {
		a := tr.extended(t, "alice-mcp", "server/discover", "", "")
		c := a.Result["capabilities"].(map[string]any)
		if e, _ := c["extensions"].(map[string]any); e["io.modelcontextprotocol/tasks"] == nil || c["tasks"] != nil {
			t.Errorf("got %s", a.text)
		}
	})
	t.Run("RS-188 RS-216 a task is there before it is spoken of, and has its result", func(t *testing.T) {
		a := tr.extended(t, "alice-mcp", "tools/call", "slow", `"name":"slow","arguments":{"n":1}`)
		for _, member := range []string{"result", "error", "inputRequests", "requestState", "ttl", "pollInterval",
			"task"} {
			if _, has := a.Result[member]; has {
				t.Errorf("the answer has %s: %s", member, a.text)
			}
		}
		if a.Result["ttlMs"] != 3.6e6 || a.Result["pollIntervalMs"] != 20.0 || a.Result["status"] != "working" {
			t.Errorf("got %s", a.text)
		}
		if got := tr.about(t, "alice-mcp", "tasks/get", a.id(), ""); got.Result["status"] != "working" ||
			got.Result["resultType"] != "complete" {
			t.Errorf("got %s", got.text)
		}
		tr.release <- struct{}{}
		got := tr.until(t, "alice-mcp", a.id(), "completed")
		if !strings.Contains(got.text, `done {\"n\":1}`) || strings.Contains(got.text, "related-task") {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("RS-216 failures of tools are results, others are errors", func(t *testing.T) {
		got := tr.until(t, "alice-mcp", tr.start(t, "alice-mcp", "fails"), "completed", "failed")
		if r, _ := got.Result["result"].(map[string]any); r["isError"] != true {
			t.Errorf("got %s", got.text)
		}
		for tool, code := range map[string]float64{"breaks": -32050, "panics": -32603} {
			got := tr.until(t, "alice-mcp", tr.start(t, "alice-mcp", tool), "completed", "failed")
			if e, _ := got.Result["error"].(map[string]any); e["code"] != code || got.Result["result"] != nil {
				t.Errorf("%s: got %s", tool, got.text)
			}
		}
	})
	t.Run("RS-216 questions of a task are answered in parts, once, and each key is new", func(t *testing.T) {
		id := tr.start(t, "alice-mcp", "asks")
		got := tr.until(t, "alice-mcp", id, "input_required")
		if asks := got.Result["inputRequests"].(map[string]any); asks["a"] == nil || asks["b"] == nil {
			t.Fatalf("got %s", got.text)
		}
		update := func(responses string) answer {
			return tr.about(t, "alice-mcp", "tasks/update", id, `,"inputResponses":{`+responses+`}`)
		}
		if a := update(`"a":{"what":1}`); a.Error.Code != -32602 {
			t.Errorf("an answer of no kind: got %s", a.text)
		}
		first := update(`"x":{"what":1},"a":{"action":"accept","content":{"name":"A"}}`)
		if a := first; a.Result["resultType"] != "complete" ||
			a.Result["status"] != nil {
			t.Errorf("got %s", a.text)
		}
		got = tr.about(t, "alice-mcp", "tasks/get", id, "")
		if asks := got.Result["inputRequests"].(map[string]any); asks["a"] != nil || asks["b"] == nil {
			t.Errorf("got %s", got.text)
		}
		update(`"a":{"action":"accept","content":{"name":"Z"}},"b":{"action":"accept","content":{"name":"B"}}`)
		for end := time.Now().Add(time.Minute); time.Now().Before(end) && !strings.Contains(got.text, `"a-2"`); {
			got = tr.about(t, "alice-mcp", "tasks/get", id, "")
		}
		update(`"a-2":{"action":"accept","content":{"name":"C"}}`)
		if got = tr.until(t, "alice-mcp", id, "completed"); !strings.Contains(got.text, "hello ABC") {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("RS-216 what is asked before there is a task is asked by the result of the call", func(t *testing.T) {
		a := tr.extended(t, "alice-mcp", "tools/call", "late", `"name":"late"`)
		state, _ := a.Result["requestState"].(string)
		if a.Result["resultType"] != "input_required" || a.id() != "" || state == "" {
			t.Fatalf("got %s", a.text)
		}
		a = tr.extended(t, "alice-mcp", "tools/call", "late", `"name":"late","requestState":"`+state+
			`","inputResponses":{"a":{"action":"accept","content":{"name":"Alice"}}}`)
		if a.Result["resultType"] != "task" || a.Result["requestState"] != nil {
			t.Fatalf("got %s", a.text)
		}
		tr.release <- struct{}{}
		if got := tr.until(t, "alice-mcp", a.id(), "completed"); !strings.Contains(got.text, "hello Alice") {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("RS-216 a task has no progress, and no notifications but for those that are acknowledged", func(t *testing.T) {
		r := tr.rig.ask(t, "alice-mcp", ask{
			body: strings.NewReplacer(`"io.modelcontextprotocol/clientCapabilities":{}`, declaring,
				`"_meta":{`, `"_meta":{"progressToken":"p-7",`).Replace(modern("tools/call", `"name":"reports"`)),
			headers: hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "reports")})
		id := decodeAnswer(t, r).id()
		if id == "" || strings.Contains(r.text, "notifications/") {
			t.Errorf("got %s", r.text)
		}
		if got := tr.until(t, "alice-mcp", id, "completed"); !strings.Contains(got.text, "reported to p-7") {
			t.Errorf("got %s", got.text)
		}
		a := tr.extended(t, "alice-mcp", "subscriptions/listen", "", `"notifications":{"taskIds":["`+id+`"]}`)
		if strings.Count(a.text, `"notifications/`) != 1 || strings.Contains(a.text, "taskIds") ||
			!strings.Contains(a.text, "notifications/subscriptions/acknowledged") {
			t.Errorf("got %s", a.text)
		}
	})
	t.Run("RS-216 cancelling is acknowledged, twice too, and stops the tool", func(t *testing.T) {
		id := tr.start(t, "alice-mcp", "slow")
		for range 2 {
			if a := tr.about(t, "alice-mcp", "tasks/cancel", id, ""); a.Result["resultType"] != "complete" ||
				a.Result["status"] != nil {
				t.Errorf("got %s", a.text)
			}
		}
		tr.until(t, "alice-mcp", id, "cancelled")
		tr.idle(t)
	})
	t.Run("RS-174 RS-188 a client that has not declared the extension", func(t *testing.T) {
		id := tr.start(t, "alice-mcp", "breaks")
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			a := decodeAnswer(t, tr.modern(t, "alice-mcp", method, id, `"taskId":"`+id+`"`))
			c, _ := a.Error.Data["requiredCapabilities"].(map[string]any)
			e, _ := c["extensions"].(map[string]any)
			if a.status != 400 || a.Error.Code != -32021 || e["io.modelcontextprotocol/tasks"] == nil {
				t.Errorf("%s: got %d %s", method, a.status, a.text)
			}
		}
		if a := decodeAnswer(t, tr.modern(t, "alice-mcp", "tools/call", "fails",
			`"name":"fails"`)); a.Error.Code != -32021 {
			t.Errorf("a tool that is a task alone: got %s", a.text)
		}
		if a := decodeAnswer(t, tr.modern(t, "alice-mcp", "tools/call", "large",
			`"name":"large"`)); a.Result["resultType"] != "complete" {
			t.Errorf("one that is not: got %.200s", a.text)
		}
		if a := decodeAnswer(t, tr.modern(t, "alice-mcp", "subscriptions/listen", "",
			`"notifications":{"taskIds":["x"]}`)); a.Error.Code != -32021 {
			t.Errorf("listening: got %s", a.text)
		}
	})
	t.Run("RS-176 the member task of a call says nothing", func(t *testing.T) {
		a := tr.extended(t, "alice-mcp", "tools/call", "plain", `"name":"plain","task":{"ttl":60000}`)
		if a.Result["resultType"] != "complete" || a.id() != "" {
			t.Errorf("got %s", a.text)
		}
	})
	t.Run("RS-188 methods of 2025-11-25 are unknown", func(t *testing.T) {
		for _, method := range []string{"tasks/result", "tasks/list"} {
			if a := tr.extended(t, "alice-mcp", method, "x", `"taskId":"x"`); a.status != 404 ||
				a.Error.Code != -32601 {
				t.Errorf("%s: got %d %s", method, a.status, a.text)
			}
		}
	})
	t.Run("RS-187 Mcp-Name is the task", func(t *testing.T) {
		id := tr.start(t, "alice-mcp", "breaks")
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			for _, name := range []string{"another", ""} {
				if a := tr.extended(t, "alice-mcp", method, name, `"taskId":"`+id+`"`); a.status != 400 ||
					a.Error.Code != -32020 {
					t.Errorf("%s as %q: got %d %s", method, name, a.status, a.text)
				}
			}
		}
	})
	t.Run("the audit has the beginning and the end", func(t *testing.T) {
		for _, outcome := range []string{"task", "ok", "tool_error", "error", "panic", "ended"} {
			if _, ok := tr.events.Load(outcome); !ok {
				t.Errorf("no event with the outcome %s", outcome)
			}
		}
	})
}

// idle waits until no tool runs.
func (tr *taskRig) idle(t *testing.T) {
	t.Helper()
	wait.Until(t, "no tool runs", func() bool { return tr.runs.Load() == 0 })
}
