package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const (
	beginCall   = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","task":{}}}`
	begunTask   = `{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t1","status":"working"}}}`
	begunModern = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t2","status":"working"}}`
	taskList    = `{"jsonrpc":"2.0","id":1,"result":{"tasks":[{"taskId":"t1"},{"taskId":"other"},{"x":1}]}}`
)

// tasksRig is a gateway in front of an MCP server that returns answer. The header X-As names the
// caller as "user/client/grant".
type tasksRig struct {
	*httptest.Server
	answer, kind atomic.Value // strings; atomic, because a cancellation by the gateway may come at any time
	reached      atomic.Int64
	may          atomic.Bool
}

func newTasksRig(t *testing.T, store mcpresource.TaskStore, now func() time.Time) *tasksRig {
	t.Helper()
	tr := &tasksRig{}
	tr.kind.Store("application/json")
	tr.may.Store(true)
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tr.reached.Add(1)
		w.Header().Set("Content-Type", tr.kind.Load().(string))
		io.WriteString(w, tr.answer.Load().(string))
	}))
	t.Cleanup(inner.Close)
	u, err := New(Config{
		URL: inner.URL, Resource: publicURL, Tasks: store, Now: now,
		May: func(context.Context, string) bool { return tr.may.Load() },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	tr.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := strings.Split(r.Header.Get("X-As"), "/")
		as(&mcpresource.Principal{
			Issuer: alice.Issuer, Subject: who[0], ClientID: who[1],
			Claims: json.RawMessage(`{"gid":"` + who[2] + `"}`),
		}, u).ServeHTTP(w, r)
	}))
	t.Cleanup(tr.Close)
	return tr
}

const owner = "alice/app/g1"

func (tr *tasksRig) ask(t *testing.T, who, body, answer string) string {
	t.Helper()
	tr.answer.Store(answer)
	_, got := post(t, tr.URL, body, map[string]string{"X-As": who})
	return strings.TrimSpace(got)
}

func about(method, id string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{"taskId":"` + id + `"}}`
}

const noSuchTask = `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Task not found."}}`

func TestTasksOfOthers(t *testing.T) {
	for kind, wrap := range map[string]func(string) string{
		"application/json":  func(s string) string { return s },
		"text/event-stream": func(s string) string { return "event: message\ndata: " + s + "\n\n" },
	} {
		for id, begun := range map[string]string{"t1": begunTask, "t2": begunModern} {
			t.Run("RS-132 RS-215 "+id+" "+kind, func(t *testing.T) {
				tr := newTasksRig(t, nil, nil)
				tr.kind.Store(kind)
				if got := tr.ask(t, owner, beginCall, wrap(begun)); got != strings.TrimSpace(wrap(begun)) {
					t.Fatalf("got %s", got)
				}
				for _, method := range []string{"tasks/get", "tasks/result", "tasks/update", "tasks/cancel"} {
					if got := tr.ask(t, owner, about(method, id), wrap(`{"mine":1}`)); !strings.Contains(got, "mine") {
						t.Errorf("%s, by its owner: got %s", method, got)
					}
					was := tr.reached.Load()
					for _, who := range []string{"bob/app/g1", "alice/other/g1", "alice/app/g2"} {
						if got := tr.ask(t, who, about(method, id), "leaked"); got != noSuchTask {
							t.Errorf("%s, by %s: got %s", method, who, got)
						}
					}
					for _, guess := range []string{"", "t3", "T1", "t1 ", strings.Repeat("x", 2000)} {
						if got := tr.ask(t, owner, about(method, guess), "leaked"); got != noSuchTask {
							t.Errorf("%s of %.9q: got %s", method, guess, got)
						}
					}
					if tr.reached.Load() != was {
						t.Errorf("%s reached the MCP server", method)
					}
				}
			})
		}
	}
}

func TestTasksAreRead(t *testing.T) {
	tr := newTasksRig(t, nil, nil)
	tr.ask(t, owner, beginCall, begunTask)
	for name, body := range map[string]string{
		"an escaped method":   `{"jsonrpc":"2.0","id":7,"method":"\u0074\u0061sks/get","params":{"taskId":"x"}}`,
		"another id in front": `{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"t1","taskID":"x"}}`,
		"an id twice":         `{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"x","taskId":"t1"}}`,
		"no id":               `{"jsonrpc":"2.0","id":7,"method":"tasks/get"}`,
		"an id of a number":   `{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":1}}`,
		"a subscription": `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen",` +
			`"params":{"notifications":{"taskIds":["t1","x"]}}}`,
		"a subscription by a name in other case": `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen",` +
			`"params":{"notifications":{"taskids":["x"]}}}`,
		"a subscription by two names that fold into one": `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen",` +
			`"params":{"notifications":{"taskIds":["t1"],"ta\u017fkIds":["x"]}}}`,
		"in a batch": `[` + about("tasks/get", "t1") + `,` + about("tasks/get", "x") + `]`,
	} {
		t.Run("RS-132 "+name, func(t *testing.T) {
			was := tr.reached.Load()
			got := tr.ask(t, owner, body, "leaked")
			if !strings.Contains(got, `"error"`) || tr.reached.Load() != was {
				t.Errorf("got %s", got)
			}
		})
	}
	t.Run("RS-215 a subscription of the owner", func(t *testing.T) {
		got := tr.ask(t, owner, `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen",`+
			`"params":{"notifications":{"taskIds":["t1"]}}}`, `{"ok":1}`)
		if got != `{"ok":1}` {
			t.Errorf("got %s", got)
		}
	})
}

func TestTaskLists(t *testing.T) {
	tr := newTasksRig(t, nil, nil)
	tr.ask(t, owner, beginCall, begunTask)
	list := `{"jsonrpc":"2.0","id":1,"method":"tasks/list"}`
	want := `{"jsonrpc":"2.0","id":1,"result":{"tasks":[{"taskId":"t1"}]}}`
	if got := tr.ask(t, owner, list, taskList); got != want {
		t.Errorf("RS-132 got %s", got)
	}
	if got := tr.ask(t, "bob/app/g1", list, taskList); strings.Contains(got, "t1") || strings.Contains(got, "other") {
		t.Errorf("RS-132 another person: got %s", got)
	}
}

func TestTasksEnd(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	clock := func() time.Time { return now }
	store := mcpresource.NewMemoryTasks(0, clock)
	tr := newTasksRig(t, store, clock)
	tr.ask(t, owner, beginCall, begunTask)
	get := about("tasks/get", "t1")
	t.Run("RS-215 at another replica, the owner goes on", func(t *testing.T) {
		other := newTasksRig(t, store, clock)
		if got := other.ask(t, owner, get, `{"mine":1}`); got != `{"mine":1}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RS-186 a caller who may not call the tool any more", func(t *testing.T) {
		tr.may.Store(false)
		defer tr.may.Store(true)
		if got := tr.ask(t, owner, get, "leaked"); got != noSuchTask {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RS-215 after its time", func(t *testing.T) {
		now = now.Add(taskKept)
		if got := tr.ask(t, owner, get, "leaked"); got != noSuchTask {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RS-132 a flood of tasks ends at the bound of the person, with an error for the call", func(t *testing.T) {
		const full = `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,` +
			`"message":"Too many tasks are kept: wait until earlier ones have expired.","data":{"error":"limited"}}}`
		begin := func(i int, kind, frame string) (got, want string) {
			id := strings.Repeat("i", 1+i%900) + time.Duration(i).String()
			answer := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"` + id + `"}}`
			tr.kind.Store(kind)
			return tr.ask(t, owner, beginCall, strings.Replace(frame, "X", answer, 1)), answer
		}
		for i := range taskMost {
			if got, want := begin(i, "application/json", "X"); got != want {
				t.Fatalf("task %d: got %s", i, got)
			}
		}
		if got, _ := begin(taskMost, "application/json", "X"); got != full {
			t.Errorf("got %s", got)
		}
		const first = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"
		if got, _ := begin(taskMost, "text/event-stream", first+"id: 9\ndata: X\n\n"); got !=
			first+"id: 9\ndata: "+full {
			t.Errorf("as an event: got %s", got)
		}
		tr.kind.Store("application/json")
		if got := tr.ask(t, "bob/app/g1", beginCall, begunTask); got != begunTask {
			t.Errorf("another person: got %s", got)
		}
	})
	t.Run("RS-132 a task that is nobody's because the store is away is not told of", func(t *testing.T) {
		away := newTasksRig(t, failingTasks{}, nil)
		got := away.ask(t, owner, beginCall, begunTask)
		if !strings.Contains(got, `"error":"temporarily_unavailable"`) || strings.Contains(got, "t1") ||
			strings.Contains(got, "refused") {
			t.Errorf("got %s", got)
		}
		if got := away.ask(t, owner, get, "leaked"); got != noSuchTask {
			t.Errorf("got %s", got)
		}
	})
}

// failingTasks is a store that is unavailable.
type failingTasks struct{ mcpresource.TaskStore }

func (failingTasks) CreateTask(context.Context, mcpresource.Task, int) error {
	return errors.New("connection refused")
}

func (failingTasks) Task(context.Context, string, string) (mcpresource.Task, error) {
	return mcpresource.Task{}, errors.New("connection refused")
}
