package gosdk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// resultAnswering requests the result of a task, answers its questions, and returns the result.
func (tr *taskRig) resultAnswering(t *testing.T, token, session, id string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tr.URL+"/mcp",
		strings.NewReader(`{"jsonrpc":"2.0","id":"r","method":"tasks/result","params":{"taskId":"`+id+`"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Authorization": "Bearer " + token, "Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25",
	} {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Meta map[string]map[string]string `json:"_meta"`
			}
		}
		if !ok || json.Unmarshal([]byte(data), &m) != nil {
			continue
		}
		if m.Method == "" && string(m.ID) == `"r"` {
			return data
		}
		if m.Method == "elicitation/create" {
			if m.Params.Meta["io.modelcontextprotocol/related-task"]["taskId"] != id {
				t.Errorf("RS-215 the question does not name the task: %s", data)
			}
			tr.post(t, token, "2025-11-25", session,
				`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"action":"accept","content":{"name":"Bo"}}}`)
		}
	}
	t.Fatal("no result")
	return ""
}

// TestForeignTasks: for other callers, a task does not exist.
func TestForeignTasks(t *testing.T) {
	tr := newTaskRig(t, nil)
	id := tr.start(t, "alice/app/g1-mcp", "slow")
	unknown := tr.about(t, "alice/app/g1-mcp", "tasks/get", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "")
	if unknown.Error.Code != -32602 {
		t.Fatalf("got %s", unknown.text)
	}
	for name, token := range map[string]string{
		"another person":             "bob/app/g1-mcp",
		"another application":        "alice/other/g1-mcp",
		"another grant":              "alice/app/g2-mcp",
		"names that run into others": "alice/ap/pg1-mcp",
	} {
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			a := tr.about(t, token, method, id, "")
			if a.text != unknown.text || a.status != unknown.status {
				t.Errorf("RS-132 RS-186 RS-215 %s, %s: got %d %s, want %s", name, method, a.status, a.text,
					unknown.text)
			}
		}
		session := tr.initialize(t, token)
		want := tr.inSession(t, token, session, "tasks/result", `"taskId":"ABCDEFGHIJKLMNOPQRSTUVWXYZ"`)
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			a := tr.inSession(t, token, session, method, `"taskId":"`+id+`"`)
			if a.Error.Code != -32602 || a.Error.Message != want.Error.Message {
				t.Errorf("RS-132 RS-215 %s, %s: got %s", name, method, a.text)
			}
		}
		if a := tr.inSession(t, token, session, "tasks/list", ""); strings.Contains(a.text, id) {
			t.Errorf("RS-132 %s: the list has it: %s", name, a.text)
		}
	}
	for _, wrong := range []string{"", strings.Repeat("A", 300), strings.ToLower(id), id + " ", id[:25]} {
		if a := tr.extended(t, "alice/app/g1-mcp", "tasks/get", wrong, `"taskId":"`+wrong+`"`); a.Error.Code == 0 {
			t.Errorf("RS-186 %q: got %s", wrong, a.text)
		}
	}
	if a := tr.about(t, "alice/app/g1-mcp", "tasks/get", id, ""); a.Result["status"] != "working" {
		t.Errorf("RS-215 the task still runs: got %s", a.text)
	}
}

// TestTasksUnderAnyGrant checks AnyGrant, for tasks that outlive a consent.
func TestTasksUnderAnyGrant(t *testing.T) {
	tr := newTaskRig(t, &Tasks{AnyGrant: true})
	id := tr.start(t, "alice/app/g1-mcp", "slow")
	if a := tr.about(t, "alice/app/g2-mcp", "tasks/get", id, ""); a.Result["status"] != "working" {
		t.Errorf("RS-215 another grant: got %s", a.text)
	}
	for _, token := range []string{"bob/app/g1-mcp", "alice/other/g1-mcp"} {
		if a := tr.about(t, token, "tasks/get", id, ""); a.Error.Code != -32602 { // not found
			t.Errorf("RS-215 %s: got %s", token, a.text)
		}
	}
}

// TestTasksAreJudgedAgain: a task and its result end with the caller's permission.
func TestTasksAreJudgedAgain(t *testing.T) {
	tr := newTaskRig(t, &Tasks{beat: 20 * time.Millisecond})
	t.Run("RS-186 less scope: insufficient_scope", func(t *testing.T) {
		id := tr.start(t, "alice-mcp-deep", "secret")
		tr.until(t, "alice-mcp-deep", id, "completed")
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			a := tr.about(t, "alice-mcp", method, id, "")
			if a.Error.Data["error"] != "insufficient_scope" || a.Error.Data["scope"] != "mcp deep" {
				t.Errorf("%s: got %s", method, a.text)
			}
		}
		session := tr.initialize(t, "alice-mcp-deep")
		if a := tr.inSession(t, "alice-mcp", session, "tasks/result",
			`"taskId":"`+id+`"`); a.Error.Data["error"] != "insufficient_scope" {
			t.Errorf("got %s", a.text)
		}
		if a := tr.inSession(t, "alice-mcp", session, "tasks/list", ""); strings.Contains(a.text, id) {
			t.Errorf("the list has it: %s", a.text)
		}
		if a := tr.inSession(t, "alice-mcp-deep", session, "tasks/list", ""); !strings.Contains(a.text, id) {
			t.Errorf("the list of the full token lacks it: %s", a.text)
		}
	})
	t.Run("RS-215 revocation ends what runs, and results are out of reach", func(t *testing.T) {
		id, done := tr.start(t, "alice/app/gx-mcp", "slow"), tr.start(t, "alice/app/gx-mcp", "breaks")
		tr.until(t, "alice/app/gx-mcp", done, "failed")
		tr.revoked.Store("gx", true)
		tr.idle(t)
		if r := tr.rig.ask(t, "alice/app/gx-mcp", ask{
			body: strings.Replace(modern("tasks/get", `"taskId":"`+done+`"`), `Capabilities":{}`,
				`Capabilities":{"x":{}}`, 1),
			headers: hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tasks/get", "Mcp-Name",
				done)}); r.status != 401 {
			t.Errorf("got %d %s", r.status, r.text)
		}
		tr.revoked.Delete("gx") // to read its final state
		if a := tr.about(t, "alice/app/gx-mcp", "tasks/get", id, ""); a.Result["status"] != "cancelled" {
			t.Errorf("got %s", a.text)
		}
	})
	t.Run("RS-215 a check that now fails ends it", func(t *testing.T) {
		var mu sync.Mutex
		refuse := false
		tr := newTaskRig(t, &Tasks{beat: 20 * time.Millisecond}, func(c *mcpresource.Config, _ *Options) {
			c.Check = func(_ context.Context, _ *mcpresource.Principal, op mcpresource.Operation) error {
				mu.Lock()
				defer mu.Unlock()
				if refuse && op.Name == "slow" && string(op.Arguments) == `{"n":1}` {
					return errors.New("not yours any more")
				}
				return nil
			}
		})
		id := tr.start(t, "alice-mcp", "slow")
		mu.Lock()
		refuse = true
		mu.Unlock()
		tr.idle(t)
		if a := tr.about(t, "alice-mcp", "tasks/get", id, ""); a.Error.Data["error"] != "forbidden" {
			t.Errorf("got %s", a.text)
		}
	})
}

// TestTasksWithoutTheirCaller: a task may outlive its token.
func TestTasksWithoutTheirCaller(t *testing.T) {
	for _, tt := range []struct {
		name       string
		unattended time.Duration
		fresh      bool
		want       string
	}{
		{"RS-215 it ends when no good token comes in time", 10 * time.Second, false, "cancelled"},
		{"RS-215 it goes on when one comes", 10 * time.Second, true, "working"},
		{"RS-215 or when it may go on alone", -1, false, "working"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var ahead, judged atomic.Int64 // of the clock; number of reads
			tr := newTaskRig(t, &Tasks{beat: 10 * time.Millisecond, Unattended: tt.unattended, now: func() time.Time {
				judged.Add(1)
				return time.Now().Add(time.Duration(ahead.Load()))
			}})
			tr.life.Store(int64(30 * time.Second))
			id := tr.start(t, "alice-mcp", "slow")
			wait.Until(t, "the tool runs", func() bool { return tr.runs.Load() == 1 })
			tr.life.Store(0)
			if tt.fresh {
				tr.about(t, "alice-mcp", "tasks/get", id, "")
			}
			ahead.Store(int64(45 * time.Second)) // after the first token and the time without one
			enough := judged.Load() + 10         // after some beats
			wait.Until(t, "the task is judged again", func() bool {
				if tt.want == "cancelled" {
					return tr.runs.Load() == 0
				}
				return judged.Load() >= enough
			})
			wait.Until(t, "the task is "+tt.want, func() bool {
				return tr.about(t, "alice-mcp", "tasks/get", id, "").Result["status"] == tt.want
			})
		})
	}
}

// TestManyTasks: the number of tasks is limited.
func TestManyTasks(t *testing.T) {
	tr := newTaskRig(t, &Tasks{MaxTasks: 60}, func(_ *mcpresource.Config, o *Options) { o.MaxCalls = 5 })
	session := tr.initialize(t, "alice-mcp")
	for i := range 5 {
		tr.start(t, fmt.Sprintf("alice/app%d/g-mcp", i), "slow")
	}
	if a := tr.extended(t, "alice/more/g-mcp", "tools/call", "slow",
		`"name":"slow"`); a.Error.Data["error"] != "limited" {
		t.Errorf("RS-132 a sixth that runs: got %s", a.text)
	}
	if a := tr.inSession(t, "alice-mcp", session, "tasks/result",
		`"taskId":"x"`); a.Error.Code != -32602 { // not found
		t.Errorf("got %s", a.text)
	}
	close(tr.release)
	tr.idle(t)
	ids := map[string]bool{}
	for range 55 {
		wait.Success(t, "the task before has ended, and there is room for another", func() error {
			a := tr.extended(t, "alice-mcp", "tools/call", "breaks", `"name":"breaks"`)
			if a.id() == "" {
				return fmt.Errorf("got %s", a.text)
			}
			ids[a.id()] = true
			return nil
		})
	}
	for id := range ids {
		tr.until(t, "alice-mcp", id, "failed")
	}
	if a := tr.extended(t, "alice/yet/another-mcp", "tools/call", "breaks",
		`"name":"breaks"`); !strings.Contains(a.Error.Message, "Too many tasks are kept") {
		t.Errorf("RS-132 a task too many, by another application of the person: got %s", a.text)
	}
	if a := tr.extended(t, "bob-mcp", "tools/call", "breaks", `"name":"breaks"`); a.id() == "" {
		t.Errorf("RS-132 another person has room: got %s", a.text)
	}
	t.Run("RS-215 lists have pages", func(t *testing.T) {
		seen, cursor := map[string]bool{}, ""
		for pages := 0; pages == 0 || cursor != ""; pages++ {
			a := tr.inSession(t, "alice-mcp", session, "tasks/list", cursor)
			list := a.Result["tasks"].([]any)
			if len(list) > 50 || pages > 3 {
				t.Fatalf("page %d has %d", pages, len(list))
			}
			for _, one := range list {
				seen[one.(map[string]any)["taskId"].(string)] = true
			}
			cursor = ""
			if next, ok := a.Result["nextCursor"].(string); ok {
				cursor = `"cursor":"` + next + `"`
				if a := tr.inSession(t, "bob-mcp", tr.initialize(t, "bob-mcp"), "tasks/list",
					cursor); a.Error.Code != -32602 {
					t.Errorf("another person's cursor: got %s", a.text)
				}
			}
		}
		if len(seen) != len(ids) {
			t.Errorf("got %d tasks, want %d", len(seen), len(ids))
		}
		if a := tr.inSession(t, "alice-mcp", session, "tasks/list", `"cursor":"x"`); a.Error.Code != -32602 {
			t.Errorf("a foreign cursor: got %s", a.text)
		}
	})
	t.Run("RS-132 results have a size", func(t *testing.T) {
		id := tr.start(t, "carol-mcp", "large")
		if a := tr.until(t, "carol-mcp", id, "completed"); len(a.text) > 2000 ||
			!strings.Contains(a.text, "ask for less") {
			t.Errorf("got %.300s", a.text)
		}
	})
}

// TestTasksEnd: tasks end after their time to live, and with the server.
func TestTasksEnd(t *testing.T) {
	t.Run("RS-215 the time to live", func(t *testing.T) {
		tr := newTaskRig(t, &Tasks{TTL: 50 * time.Millisecond})
		id := tr.start(t, "alice-mcp", "slow")
		wait.Success(t, "the task is not found", func() error {
			if a := tr.about(t, "alice-mcp", "tasks/get", id, ""); a.Error.Code != -32602 {
				return fmt.Errorf("got %s", a.text)
			}
			return nil
		})
		tr.idle(t)
	})
	t.Run("RS-215 a limit of the tool's own", func(t *testing.T) {
		tr := newTaskRig(t, nil, func(_ *mcpresource.Config, o *Options) {
			o.ToolTimeouts = map[string]time.Duration{"deaf": 30 * time.Millisecond}
		})
		a := tr.until(t, "alice-mcp", tr.start(t, "alice-mcp", "deaf"), "completed", "failed")
		if !strings.Contains(a.text, "took longer than 30ms") {
			t.Errorf("got %s", a.text)
		}
		close(tr.release)
	})
}

// failingTasks is an unavailable store.
type failingTasks struct{ mcpresource.TaskStore }

func (failingTasks) CreateTask(context.Context, mcpresource.Task, int) error {
	return errors.New("connection refused")
}

func (failingTasks) Task(context.Context, string, string) (mcpresource.Task, error) {
	return mcpresource.Task{}, errors.New("connection refused")
}

func TestTasksWithoutStore(t *testing.T) {
	tr := newTaskRig(t, &Tasks{Store: failingTasks{mcpresource.NewMemoryTasks(0, nil)}})
	for name, a := range map[string]answer{
		"a call":  tr.extended(t, "alice-mcp", "tools/call", "slow", `"name":"slow"`),
		"a look":  tr.about(t, "alice-mcp", "tasks/get", "X", ""),
		"a wish":  tr.about(t, "alice-mcp", "tasks/cancel", "X", ""),
		"answers": tr.about(t, "alice-mcp", "tasks/update", "X", ""),
	} {
		if a.Error.Data["error"] != "temporarily_unavailable" || strings.Contains(a.text, "refused") {
			t.Errorf("RS-188 %s: got %s", name, a.text)
		}
	}
	if tr.runs.Load() != 0 {
		t.Error("RS-188 the tool ran without a task")
	}
}
