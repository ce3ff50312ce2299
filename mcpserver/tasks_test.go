package mcpserver

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
)

// TestTasksInDatabase checks that tasks are in the database of the accounts and survive a restart.
func TestTasksInDatabase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	asked := &gosdk.Tasks{Tools: map[string]gosdk.TaskTool{"report": {}}}
	open := func() (mcpresource.TaskStore, func()) {
		store, err := sqlite.Open(t.Context(), file, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := program{
			store: store, keys: [][]byte{bytes.Repeat([]byte{7}, 32)},
			o: Options{Adapter: &gosdk.Options{Tasks: asked}},
		}
		options, err := p.adapter("https://notes.example.com/mcp")
		if err != nil || options.Tasks.Tools == nil {
			t.Fatal(options, err)
		}
		return options.Tasks.Store, func() { store.Close() }
	}
	now := time.Now()
	first, stop := open()
	err := first.CreateTask(t.Context(), mcpresource.Task{
		ID: "a", Owner: "alice", Person: "p", Created: now, Expires: now.Add(time.Hour), State: []byte("{}"),
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if stop(); asked.Store != nil {
		t.Error("the caller's options were changed")
	}
	second, stop := open()
	defer stop()
	if got, err := second.Task(t.Context(), "alice", "a"); err != nil || string(got.State) != "{}" {
		t.Errorf("RS-215 after a restart: got %v, %v", got, err)
	}
	if _, err := second.Task(t.Context(), "bob", "a"); !errors.Is(err, mcpresource.ErrNoTask) {
		t.Errorf("RS-215 of another owner: got %v", err)
	}
}
