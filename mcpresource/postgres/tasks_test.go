package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/tasktest"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

var taskKey = []byte(strings.Repeat("k", 32))

func TestTasks(t *testing.T) {
	server := pgtest.Start(t)
	tasktest.Run(t, tasktest.Store{Open: func(t *testing.T, now func() time.Time) (both [2]mcpresource.TaskStore) {
		url := server.Database(t)
		for i := range both {
			_, shared := open(t, url, resource)
			store, err := shared.Tasks(now, taskKey)
			if err != nil {
				t.Fatal(err)
			}
			both[i] = store
		}
		return both
	}})
}

// TestTasksOfServers: equal names of tasks at two servers do not conflict.
func TestTasksOfServers(t *testing.T) {
	url := pgtest.Start(t).Database(t)
	var stores []mcpresource.TaskStore
	for _, name := range []string{resource, "https://other.example.com/mcp"} {
		_, shared := open(t, url, name)
		store, err := shared.Tasks(nil, taskKey)
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, store)
	}
	now := time.Now()
	task := mcpresource.Task{ID: "a", Owner: "alice", Person: "p", Created: now, Expires: now.Add(time.Hour)}
	if err := stores[0].CreateTask(t.Context(), task, 1); err != nil {
		t.Fatal(err)
	}
	if got, err := stores[1].Task(t.Context(), "alice", "a"); err == nil {
		t.Errorf("RS-215 got %v", got)
	}
	if err := stores[1].CreateTask(t.Context(), task, 1); err != nil {
		t.Errorf("RS-132 got %v", err)
	}
}
