package gosdk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestTasksOfSessions checks the tasks of 2025-11-25.
func TestTasksOfSessions(t *testing.T) {
	tr := newTaskRig(t, nil)
	session := tr.initialize(t, "alice-mcp")
	call := func(tool, more string) answer {
		return tr.inSession(t, "alice-mcp", session, "tools/call", `"name":"`+tool+`","arguments":{"n":1}`+more)
	}
	about := func(method, id string) answer {
		return tr.inSession(t, "alice-mcp", session, method, `"taskId":"`+id+`"`)
	}
	t.Run("RS-215 it is offered, to sessions of that revision alone", func(t *testing.T) {
		for version, want := range map[string]bool{"2025-11-25": true, "2025-06-18": false} {
			_, text, _ := tr.post(t, "alice-mcp", "", "", opening(version, "c"))
			if got := strings.Contains(text,
				`"tasks":{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`); got != want {
				t.Errorf("%s: got %s", version, text)
			}
			s := tr.initializeAt(t, "alice-mcp", version)
			list := tr.rig.ask(t, "alice-mcp", ask{body: listTools, headers: hdr("Mcp-Session-Id", s)}).text
			if strings.Contains(list, `"execution":{"taskSupport":"required"}`) != want ||
				strings.Contains(list, `"execution":{"taskSupport":"optional"}`) != want {
				t.Errorf("%s: got %s", version, list)
			}
		}
	})
	t.Run("RS-215 get, list and result", func(t *testing.T) {
		a := call("slow", `,"task":{"ttl":60000}`)
		task, _ := a.Result["task"].(map[string]any)
		if task["status"] != "working" || task["ttl"] != 60000.0 || task["pollInterval"] != 20.0 ||
			a.Result["resultType"] != nil {
			t.Fatalf("got %s", a.text)
		}
		if got := about("tasks/get", a.id()); got.Result["status"] != "working" || got.Result["_meta"] != nil {
			t.Errorf("got %s", got.text)
		}
		if got := tr.inSession(t, "alice-mcp", session, "tasks/list", ""); !strings.Contains(got.text, a.id()) {
			t.Errorf("got %s", got.text)
		}
		go func() { tr.release <- struct{}{} }()
		got := about("tasks/result", a.id())
		meta, _ := got.Result["_meta"].(map[string]any)
		related, _ := meta["io.modelcontextprotocol/related-task"].(map[string]any)
		if related["taskId"] != a.id() || !strings.Contains(got.text, "done") || got.Result["resultType"] != nil {
			t.Errorf("got %s", got.text)
		}
		if got := about("tasks/get", a.id()); got.Result["status"] != "completed" {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("RS-215 failures", func(t *testing.T) {
		id := call("fails", `,"task":{}`).id()
		if got := about("tasks/result", id); got.Result["isError"] != true {
			t.Errorf("got %s", got.text)
		}
		if got := about("tasks/get", id); got.Result["status"] != "failed" {
			t.Errorf("got %s", got.text)
		}
		if got := about("tasks/cancel", id); got.Error.Code != -32602 ||
			!strings.Contains(got.Error.Message, "failed") {
			t.Errorf("got %s", got.text)
		}
		if got := about("tasks/result", call("breaks", `,"task":{}`).id()); got.Error.Code != -32050 ||
			got.Error.Message != "broken" || got.Error.Data["a"] != 1.0 {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("RS-215 a task that is cancelled stays so", func(t *testing.T) {
		id := call("deaf", `,"task":{}`).id()
		if got := about("tasks/cancel", id); got.Result["status"] != "cancelled" {
			t.Errorf("got %s", got.text)
		}
		tr.release <- struct{}{}
		if got := about("tasks/get", id); got.Result["status"] != "cancelled" {
			t.Errorf("got %s", got.text)
		}
		if got := about("tasks/result", id); got.Error.Code != -32000 {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("RS-215 what a tool asks goes to the request for the result", func(t *testing.T) {
		status, _, s := tr.post(t, "alice-mcp", "", "", strings.Replace(opening("2025-11-25", "c"),
			`"capabilities":{}`,
			`"capabilities":{"elicitation":{}}`, 1))
		if status != 200 {
			t.Fatal(status)
		}
		tr.post(t, "alice-mcp", "2025-11-25", s, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		for _, tool := range []string{"elicits", "once"} {
			a := tr.inSession(t, "alice-mcp", s, "tools/call", `"name":"`+tool+`","task":{}`)
			tr.untilOld(t, "alice-mcp", s, a.id(), "input_required")
			if got := tr.resultAnswering(t, "alice-mcp", s, a.id()); !strings.Contains(got, "hello ") {
				t.Errorf("%s: got %s", tool, got)
			}
		}
	})
	t.Run("RS-215 calls that are no tasks", func(t *testing.T) {
		if a := call("plain", `,"task":{}`); a.Error.Code != -32601 {
			t.Errorf("a tool that cannot: got %s", a.text)
		}
		if a := call("fails", ""); a.Error.Code != -32601 {
			t.Errorf("a tool that has to: got %s", a.text)
		}
		if a := call("breaks", ""); a.Error.Code != -32050 {
			t.Errorf("a tool that need not: got %s", a.text)
		}
		for _, task := range []string{`[]`, `{"ttl":"1"}`, `7`} {
			if a := call("slow", `,"task":`+task); a.Error.Code != -32602 {
				t.Errorf("%s: got %s", task, a.text)
			}
		}
		if a := tr.inSession(t, "alice-mcp", session, "tools/call",
			`"name":"slow","arguments":[],"task":{}`); a.Error.Code != -32602 {
			t.Errorf("arguments that do not fit: got %s", a.text)
		}
		old := tr.initializeAt(t, "alice-mcp", "2025-06-18")
		if a := decodeAnswer(t, tr.rig.ask(t, "alice-mcp", ask{
			body:    `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"plain","task":{}}}`,
			headers: hdr("Mcp-Session-Id", old)})); a.Result["content"] == nil {
			t.Errorf("a revision without tasks ignores the member: got %s", a.text)
		}
		if a := decodeAnswer(t, tr.rig.ask(t, "alice-mcp", ask{
			body:    `{"jsonrpc":"2.0","id":7,"method":"tasks/list","params":{}}`,
			headers: hdr("Mcp-Session-Id", old)})); a.Error.Code != -32601 {
			t.Errorf("and knows no method of them: got %s", a.text)
		}
	})
	t.Run("RS-132 the time to live has bounds", func(t *testing.T) {
		for ttl, want := range map[string]float64{"1": 1000, "-5": 1000, "1e300": 8.64e7, "90000.7": 90000,
			"null": 3.6e6} {
			a := call("fails", `,"task":{"ttl":`+ttl+`}`)
			if task, _ := a.Result["task"].(map[string]any); task["ttl"] != want {
				t.Errorf("%s: got %s", ttl, a.text)
			}
		}
	})
}

func (tr *taskRig) untilOld(t *testing.T, token, session, id, status string) {
	t.Helper()
	wait.Success(t, "the task is "+status, func() error {
		a := tr.inSession(t, token, session, "tasks/get", `"taskId":"`+id+`"`)
		if a.Result["status"] != status {
			return fmt.Errorf("got %s", a.text)
		}
		return nil
	})
}
