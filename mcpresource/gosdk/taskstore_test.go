package gosdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMemoryTasks is the contract of TaskStore.
func TestMemoryTasks(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	m := newMemoryTasks(5, func() time.Time { return now })
	task := func(id, owner, person string) Task {
		return Task{ID: id, Owner: owner, Person: person, Created: now, Expires: now.Add(time.Hour),
			State: []byte(`{}`)}
	}
	ctx := t.Context()
	for _, id := range []string{"a", "b", "c"} {
		if err := m.CreateTask(ctx, task(id, "alice", "p"), 3); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("RS-132 bounds", func(t *testing.T) {
		if err := m.CreateTask(ctx, task("d", "alice, by another application", "p"), 3); !errors.Is(err,
			ErrTasksFull) {
			t.Errorf("of a person: got %v", err)
		}
		for _, id := range []string{"e", "f"} {
			if err := m.CreateTask(ctx, task(id, "bob", "q"), 3); err != nil {
				t.Error(err)
			}
		}
		if err := m.CreateTask(ctx, task("g", "carol", "r"), 3); !errors.Is(err, ErrTasksFull) {
			t.Errorf("of the store: got %v", err)
		}
		if err := m.ChangeTask(ctx, Task{ID: "f", Owner: "bob", State: make([]byte,
			memoryTaskBytes)}); !errors.Is(err, ErrTasksFull) {
			t.Errorf("of bytes: got %v", err)
		}
	})
	t.Run("RS-215 owners", func(t *testing.T) {
		for _, owner := range []string{"bob", "", "alic"} {
			if _, err := m.Task(ctx, owner, "a"); !errors.Is(err, ErrNoTask) {
				t.Errorf("%q: got %v", owner, err)
			}
			if err := m.ChangeTask(ctx, Task{ID: "a", Owner: owner}); !errors.Is(err, ErrNoTask) {
				t.Errorf("%q: got %v", owner, err)
			}
		}
		list, err := m.Tasks(ctx, "alice", Task{}, 2)
		if err != nil || len(list) != 2 || list[0].ID != "c" || list[1].ID != "b" {
			t.Errorf("got %v, %v", list, err)
		}
		if list, err = m.Tasks(ctx, "alice", list[1], 2); err != nil || len(list) != 1 || list[0].ID != "a" {
			t.Errorf("got %v, %v", list, err)
		}
	})
	t.Run("RS-215 of 32 changes of one version one is made", func(t *testing.T) {
		var won, lost atomic.Int64
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				switch err := m.ChangeTask(ctx, Task{ID: "a", Owner: "alice", State: fmt.Append(nil, i)}); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, ErrTaskChanged):
					lost.Add(1)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || lost.Load() != 31 {
			t.Errorf("%d won, %d lost", won.Load(), lost.Load())
		}
		if got, err := m.Task(ctx, "alice", "a"); err != nil || got.Version != 1 {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("RS-215 they expire, and make room", func(t *testing.T) {
		now = now.Add(time.Hour)
		if _, err := m.Task(ctx, "alice", "a"); !errors.Is(err, ErrNoTask) {
			t.Errorf("got %v", err)
		}
		if list, err := m.Tasks(ctx, "alice", Task{}, 9); err != nil || len(list) != 0 {
			t.Errorf("got %v, %v", list, err)
		}
		if err := m.CreateTask(ctx, task("h", "alice", "p"), 1); err != nil {
			t.Error(err)
		}
		if m.count != 1 || m.bytes != len(`{}`) || len(m.persons) != 1 || len(m.byOwner) != 1 {
			t.Errorf("left: %d tasks, %d bytes, %v", m.count, m.bytes, m.persons)
		}
	})
}

// TestTasksOverStdio: the member task has another way there.
func TestTasksOverStdio(t *testing.T) {
	tr := newTaskRig(t, nil)
	p := newPipeTo(t, tr.rig, nil).open("2025-11-25")
	p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fails","task":{}}}`)
	line := p.next()
	_, after, ok := strings.Cut(line, `"taskId":"`)
	if !ok {
		t.Fatalf("RS-215 got %s", line)
	}
	id, _, _ := strings.Cut(after, `"`)
	p.send(`{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"` + id + `"}}`)
	if line := p.next(); !strings.Contains(line, "no such file") || !strings.Contains(line, id) {
		t.Errorf("RS-215 got %s", line)
	}
}

// TestTasksAndOutputSchemas: a task ends as the call would have.
func TestTasksAndOutputSchemas(t *testing.T) {
	tr := newTaskRig(t, &Tasks{Tools: map[string]TaskTool{"typed": {}}})
	tr.adapter.server.AddTool(&mcp.Tool{
		Name: "typed", InputSchema: anyObject,
		OutputSchema: json.RawMessage(`{"type":"object","required":["n"]}`),
	}, okTool)
	got := tr.until(t, "alice-mcp", tr.start(t, "alice-mcp", "typed"), "completed", "failed")
	if e, _ := got.Result["error"].(map[string]any); e["code"] != -32603.0 {
		t.Errorf("RS-126 RS-216 got %s", got.text)
	}
}
