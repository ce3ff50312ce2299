package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// fullTasks is a store that has no room for new tasks.
type fullTasks struct{ failingTasks }

func (fullTasks) CreateTask(context.Context, mcpresource.Task, int) error {
	return mcpresource.ErrTasksFull
}

func (fullTasks) Task(context.Context, string, string) (mcpresource.Task, error) {
	return mcpresource.Task{}, mcpresource.ErrNoTask
}

// keptTasks is a full store that already has every task.
type keptTasks struct{ fullTasks }

func (keptTasks) Task(context.Context, string, string) (mcpresource.Task, error) {
	return mcpresource.Task{State: []byte(`{"tools":["gone"]}`)}, nil
}

// cancelRig is an MCP server that begins a task for each call and records cancellations.
type cancelRig struct {
	*httptest.Server
	u       *Upstream
	mu      sync.Mutex // guards cancels
	cancels []cancelled
	hold    chan struct{} // cancellations are answered after it is closed; nil: immediately
	stream  atomic.Bool   // answer calls with an event stream
	answer  atomic.Value  // a string: the answer to a call
}

type cancelled struct {
	header http.Header
	params map[string]any
}

func newCancelRig(t *testing.T, store mcpresource.TaskStore, hold chan struct{}) *cancelRig {
	t.Helper()
	c := &cancelRig{hold: hold}
	c.answer.Store(begunModern)
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			Method string
			Params map[string]any
		}
		_ = json.Unmarshal(body, &m)
		w.Header().Set("Content-Type", "application/json")
		if m.Method != "tasks/cancel" {
			answer := c.answer.Load().(string)
			if c.stream.Load() {
				w.Header().Set("Content-Type", "text/event-stream")
				answer = "event: message\ndata: " + answer + "\n\n"
			}
			io.WriteString(w, answer)
			return
		}
		c.mu.Lock()
		c.cancels = append(c.cancels, cancelled{r.Header, m.Params})
		c.mu.Unlock()
		if c.hold != nil {
			<-c.hold
		}
		io.WriteString(w, `{"jsonrpc":"2.0","id":"mcp-authd-cancel","result":{}}`)
	}))
	t.Cleanup(inner.Close)
	u, err := New(Config{
		URL: inner.URL + "/mcp", Resource: publicURL, Tasks: store,
		Headers: http.Header{"Authorization": {"Bearer of-the-gateway"}},
		May:     func(_ context.Context, tool string) bool { return tool != "gone" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	c.u = u
	c.Server = httptest.NewServer(as(alice, u))
	t.Cleanup(c.Server.Close)
	return c
}

func (c *cancelRig) seen() []cancelled {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]cancelled(nil), c.cancels...)
}

// begin makes a call whose task is refused.
func (c *cancelRig) begin(t *testing.T, meta string, header map[string]string) {
	t.Helper()
	_, got := post(t, c.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","task":{}`+meta+`}}`,
		header)
	if !strings.Contains(got, `"error"`) || strings.Contains(got, `"t1"`) || strings.Contains(got, `"t2"`) {
		t.Fatalf("RS-132: got %s", got)
	}
}

// eventually waits for n cancellations and returns them.
func (c *cancelRig) eventually(t *testing.T, n int) (got []cancelled) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("RS-132: %d tasks are cancelled", n), func() bool {
		got = c.seen()
		return len(got) >= n
	})
	return got
}

// unsureTasks is a store whose answer to CreateTask is lost.
type unsureTasks struct{ fullTasks }

func (unsureTasks) CreateTask(context.Context, mcpresource.Task, int) error {
	return context.DeadlineExceeded
}

// knownTasks is an unsure store that already has the task.
type knownTasks struct{ keptTasks }

func (knownTasks) CreateTask(context.Context, mcpresource.Task, int) error {
	return errors.New("it is there")
}

// TestUnkeptTasksAreCancelled checks that the MCP server ends a task that the store did not save,
// if the caller got an error.
func TestUnkeptTasksAreCancelled(t *testing.T) {
	for store, tasks := range map[string]mcpresource.TaskStore{"is away": failingTasks{}, "is unsure": unsureTasks{}} {
		for revision, id := range map[string]string{"2025-11-25": "t1", "2026-07-28": "t2"} {
			for _, stream := range []bool{false, true} {
				name := fmt.Sprintf("RS-132 the store %s, %s, as a stream: %v", store, revision, stream)
				t.Run(name, func(t *testing.T) {
					c := newCancelRig(t, tasks, nil)
					c.stream.Store(stream)
					header, meta := map[string]string{"Mcp-Protocol-Version": revision, "Mcp-Session-Id": "s1"}, ""
					if c.answer.Store(begunTask); id == "t2" {
						c.answer.Store(begunModern)
						meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
						header = map[string]string{
							"Mcp-Protocol-Version": revision, "Mcp-Method": "tools/call", "Mcp-Name": "slow",
						}
					}
					c.begin(t, meta, header)
					if got := c.eventually(t, 1)[0]; got.params["taskId"] != id ||
						got.header.Get("Mcp-Session-Id") != header["Mcp-Session-Id"] {
						t.Errorf("got %v %v", got.params, got.header)
					}
				})
			}
		}
	}
	cutOff := func(t *testing.T, c *cancelRig, method, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, c.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if errors.Is(err, io.EOF) {
			return // the connection ended before the header was sent
		}
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || strings.Contains(string(got), "t2") {
			t.Errorf("RS-132: got %d %s", resp.StatusCode, got)
		}
	}
	untouched := func(t *testing.T, c *cancelRig) {
		t.Helper()
		if n := len(c.u.cancels); n != 0 { // a running cancellation holds a slot until it is answered
			t.Errorf("RS-132: got %d cancels, want none", n)
		}
	}
	t.Run("RS-132 a task that the caller has goes on", func(t *testing.T) {
		hold := make(chan struct{})
		defer close(hold)
		c := newCancelRig(t, knownTasks{}, hold)
		c.begin(t, "", nil)
		untouched(t, c)
	})
	t.Run("RS-132 a task in an answer that is sent again, which the caller may have, goes on", func(t *testing.T) {
		hold := make(chan struct{})
		defer close(hold)
		c := newCancelRig(t, failingTasks{}, hold)
		c.stream.Store(true)
		cutOff(t, c, http.MethodGet, "")
		untouched(t, c)
	})
	t.Run("RS-132 of several calls at once it is not known which one is answered", func(t *testing.T) {
		hold := make(chan struct{})
		defer close(hold)
		c := newCancelRig(t, failingTasks{}, hold)
		one := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","task":{}}}`
		cutOff(t, c, http.MethodPost, "["+one+","+one+"]")
		untouched(t, c)
	})
}

// TestRefusedTasksAreCancelled checks that the MCP server ends a task if the store is full.
func TestRefusedTasksAreCancelled(t *testing.T) {
	t.Run("RS-132 in the session of its caller", func(t *testing.T) {
		c := newCancelRig(t, fullTasks{}, nil)
		c.begin(t, "", map[string]string{"Mcp-Session-Id": "s1", "Mcp-Protocol-Version": "2025-11-25"})
		got := c.eventually(t, 1)[0]
		if got.params["taskId"] != "t2" || got.params["_meta"] != nil || got.header.Get("Mcp-Session-Id") != "s1" ||
			got.header.Get("Authorization") != "Bearer of-the-gateway" ||
			got.header.Get("X-Mcp-Subject") != alice.Subject || got.header.Get("Mcp-Method") != "" {
			t.Errorf("got %v %v", got.params, got.header)
		}
	})
	t.Run("RS-132 of a stateless request, with what it says of its client", func(t *testing.T) {
		c := newCancelRig(t, fullTasks{}, nil)
		c.begin(t, `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":"p"}`,
			map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "slow"})
		got := c.eventually(t, 1)[0]
		meta, _ := got.params["_meta"].(map[string]any)
		if len(meta) != 1 || meta["io.modelcontextprotocol/protocolVersion"] != "2026-07-28" ||
			got.header.Get("Mcp-Method") != "tasks/cancel" || got.header.Get("Mcp-Name") != "t2" {
			t.Errorf("got %v %v", got.params, got.header)
		}
	})
	t.Run("RS-132 an MCP server that does not answer is asked so many times at once, and holds no caller up",
		func(t *testing.T) {
			hold := make(chan struct{})
			c := newCancelRig(t, fullTasks{}, hold)
			for range cancelsMost + 4 {
				c.begin(t, "", nil)
			}
			c.eventually(t, cancelsMost)
			if got := len(c.seen()); got != cancelsMost {
				t.Errorf("got %d cancels, want %d", got, cancelsMost)
			}
			close(hold)
			wait.Until(t, "another task is cancelled", func() bool {
				c.begin(t, "", nil)
				return len(c.seen()) > cancelsMost
			})
		})
	t.Run("RS-132 what the caller has already, and may not see now, goes on", func(t *testing.T) {
		hold := make(chan struct{})
		defer close(hold)
		c := newCancelRig(t, keptTasks{}, hold)
		c.begin(t, "", nil)
		if n := len(c.u.cancels); n != 0 { // a cancellation would be recorded before the answer
			t.Errorf("got %d cancels", n)
		}
	})
}

// TestCancelOfAnyID: EN-10, RS-149. The header of a cancellation names the same task as the body,
// for every form of id.
func TestCancelOfAnyID(t *testing.T) {
	for id, want := range map[string]string{
		"t 1":                 "t 1",
		"é":                   "=?base64?w6k=?=",
		" t":                  "=?base64?IHQ=?=",
		"=?base64?d2lwZQ==?=": "=?base64?PT9iYXNlNjQ/ZDJsd1pRPT0/PQ==?=",
	} {
		c := newCancelRig(t, failingTasks{}, nil)
		c.answer.Store(strings.Replace(begunModern, "t2", id, 1))
		c.begin(t, `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`, map[string]string{
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "slow",
			"Mcp-Param-Region": "eu",
		})
		got := c.eventually(t, 1)[0]
		if got.params["taskId"] != id || got.header.Get("Mcp-Name") != want ||
			got.header.Get("Mcp-Param-Region") != "" {
			t.Errorf("EN-10 %q: got %v %v, want the header %q", id, got.params, got.header, want)
		}
	}
}
