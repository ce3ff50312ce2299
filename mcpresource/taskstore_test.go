package mcpresource_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/tasktest"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

func TestMemoryTasks(t *testing.T) {
	tasktest.Run(t, tasktest.Store{Open: func(_ *testing.T, now func() time.Time) [2]mcpresource.TaskStore {
		m := mcpresource.NewMemoryTasks(0, now)
		return [2]mcpresource.TaskStore{m, m}
	}})
	t.Run("RS-132 the memory has bounds", func(t *testing.T) {
		now := time.UnixMilli(1_800_000_000_000)
		m := mcpresource.NewMemoryTasks(2, func() time.Time { return now })
		task := func(id string) mcpresource.Task {
			return mcpresource.Task{ID: id, Owner: id, Person: id, Created: now, Expires: now.Add(time.Hour)}
		}
		for _, id := range []string{"a", "b"} {
			if err := m.CreateTask(t.Context(), task(id), 9); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.CreateTask(t.Context(), task("c"), 9); !errors.Is(err, mcpresource.ErrTasksFull) {
			t.Errorf("of tasks: got %v", err)
		}
		large := task("a")
		large.State = make([]byte, 256<<20+1)
		if err := m.ChangeTask(t.Context(), large); !errors.Is(err, mcpresource.ErrTasksFull) {
			t.Errorf("of bytes: got %v", err)
		}
		now = now.Add(time.Hour)
		for _, id := range []string{"d", "e"} { // expired tasks make room
			if err := m.CreateTask(t.Context(), task(id), 9); err != nil {
				t.Errorf("%s: got %v", id, err)
			}
		}
	})
}
