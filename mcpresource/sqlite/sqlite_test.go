package sqlite_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver of the tests

	"github.com/mcp-authd/mcp-authd/internal/testkit/tasktest"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/sqlite"
)

const resource = "https://mcp.example.com/mcp"

var key = []byte(strings.Repeat("k", 32))

func open(t *testing.T, file string, now func() time.Time, keys ...[]byte) (*sql.DB, mcpresource.TaskStore) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	store, err := sqlite.NewTasks(t.Context(), db, resource, now, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return db, store
}

// TestTasks opens the file in two stores, like two processes.
func TestTasks(t *testing.T) {
	tasktest.Run(t, tasktest.Store{Open: func(t *testing.T, now func() time.Time) (both [2]mcpresource.TaskStore) {
		file := filepath.Join(t.TempDir(), "tasks.db")
		for i := range both {
			_, both[i] = open(t, file, now, key)
		}
		return both
	}})
}

// TestTasksAtRest: the file does not reveal the arguments and results of tools.
func TestTasksAtRest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tasks.db")
	now := time.UnixMilli(time.Now().UnixMilli())
	db, store := open(t, file, nil, key)
	task := mcpresource.Task{
		ID: "a", Owner: "alice", Person: "p", Created: now, Expires: now.Add(time.Hour), State: []byte("the result"),
	}
	if err := store.CreateTask(t.Context(), task, 1); err != nil {
		t.Fatal(err)
	}
	db.Close()
	for _, f := range []string{file, file + "-wal"} {
		b, err := os.ReadFile(f)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, said := range []string{"the result", "alice"} {
			if bytes.Contains(b, []byte(said)) {
				t.Errorf("RS-215 %s has %q", f, said)
			}
		}
	}
	other := []byte(strings.Repeat("o", 32))
	t.Run("RS-215 a restart keeps tasks, with the key", func(t *testing.T) {
		_, again := open(t, file, nil, other, key)
		if got, err := again.Task(t.Context(), "alice", "a"); err != nil || string(got.State) != "the result" {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("RS-215 without the key nothing is said", func(t *testing.T) {
		_, again := open(t, file, nil, other)
		_, err := again.Task(t.Context(), "alice", "a")
		if err == nil || !strings.Contains(err.Error(), "cannot be decrypted") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("RS-215 a state is that of its task alone", func(t *testing.T) {
		db, again := open(t, file, nil, key)
		task.ID, task.State = "b", []byte("another")
		if err := again.CreateTask(t.Context(), task, 2); err != nil {
			t.Fatal(err)
		}
		_, err := db.ExecContext(t.Context(),
			"UPDATE mcpresource_tasks SET state = (SELECT state FROM mcpresource_tasks WHERE name = 'a')")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Task(t.Context(), "alice", "b"); err == nil {
			t.Error("got the state of another task")
		}
	})
	t.Run("RS-215 no key, no store", func(t *testing.T) {
		for _, keys := range [][][]byte{nil, {[]byte("short")}} {
			if _, err := mcpresource.SealTasks(store, keys...); err == nil {
				t.Errorf("%q was taken", keys)
			}
		}
	})
}
