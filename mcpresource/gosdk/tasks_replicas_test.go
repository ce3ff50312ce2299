package gosdk

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // a driver of the tests
	_ "modernc.org/sqlite"             // the other one

	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/postgres"
	"github.com/mcp-authd/mcp-authd/mcpresource/sqlite"
)

// replicas opens a store twice.
type replicas func(t *testing.T) (one, two mcpresource.TaskStore)

// TestTasksOfReplicas: what becomes of tasks when a process ends, with each store.
func TestTasksOfReplicas(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	database := func(t *testing.T, driver, url string) *sql.DB {
		t.Helper()
		db, err := sql.Open(driver, url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	must := func(t *testing.T, s mcpresource.TaskStore, err error) mcpresource.TaskStore {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, open := range map[string]replicas{
		"memory": func(*testing.T) (one, two mcpresource.TaskStore) {
			one = mcpresource.NewMemoryTasks(0, nil)
			return one, one
		},
		"SQLite": func(t *testing.T) (one, two mcpresource.TaskStore) {
			url := "file:" + filepath.Join(t.TempDir(), "tasks.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
			open := func() mcpresource.TaskStore {
				s, err := sqlite.NewTasks(t.Context(), database(t, "sqlite", url), issuer, nil, key)
				return must(t, s, err)
			}
			return open(), open()
		},
		"PostgreSQL": func(t *testing.T) (one, two mcpresource.TaskStore) {
			url := pgtest.Start(t).Database(t)
			open := func() mcpresource.TaskStore {
				shared, err := postgres.New(t.Context(), database(t, "pgx", url), issuer)
				if err != nil {
					t.Fatal(err)
				}
				s, err := shared.Tasks(nil, key)
				return must(t, s, err)
			}
			return open(), open()
		},
	} {
		t.Run("RS-215 "+name, func(t *testing.T) {
			t.Run("the server stops, and another finds results and lost tasks", func(t *testing.T) {
				stopping(t, open)
			})
			t.Run("a process that dies leaves no task working", func(t *testing.T) { dying(t, open) })
			t.Run("a task that is cancelled and finished at once ends once", func(t *testing.T) { ending(t, open) })
		})
	}
}

// stopping ends a server in good order.
func stopping(t *testing.T, open replicas) {
	one, two := open(t)
	first := newTaskRig(t, &Tasks{Store: one, beat: 20 * time.Millisecond})
	done, slow := first.start(t, "alice-mcp", "breaks"), first.start(t, "alice-mcp", "slow")
	lost := first.start(t, "alice-mcp", "slow")
	first.until(t, "alice-mcp", done, "failed")
	second := newTaskRig(t, &Tasks{Store: two, beat: 20 * time.Millisecond})
	if a := second.about(t, "alice-mcp", "tasks/get", slow, ""); a.Error.Code == 0 &&
		a.Result["status"] != "working" {
		t.Errorf("on another replica: got %s", a.text)
	}
	if a := second.about(t, "alice-mcp", "tasks/cancel", slow, ""); a.Error.Code != 0 {
		t.Errorf("cancelling on another replica: got %s", a.text)
	}
	first.until(t, "alice-mcp", slow, "cancelled")
	for end := time.Now().Add(5 * time.Second); first.runs.Load() > 1 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if n := first.runs.Load(); n != 1 {
		t.Errorf("%d tools run after a task was cancelled on another replica, want 1", n)
	}
	if err := first.adapter.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if a := second.about(t, "alice-mcp", "tasks/get", lost, ""); a.Result["status"] != "failed" ||
		!strings.Contains(a.text, "stopped") {
		t.Errorf("what ran: got %s", a.text)
	}
	if a := second.about(t, "alice-mcp", "tasks/get", done, ""); !strings.Contains(a.text, "broken") {
		t.Errorf("what had ended: got %s", a.text)
	}
}

// dying is a process that says nothing any more.
func dying(t *testing.T, open replicas) {
	one, two := open(t)
	first := newTaskRig(t, &Tasks{Store: one, beat: time.Hour})
	id := first.start(t, "alice-mcp", "slow")
	late := newTaskRig(t, &Tasks{
		Store: two, now: func() time.Time { return time.Now().Add(5 * time.Hour) }, TTL: 24 * time.Hour})
	owner := first.adapter.tasks.owner(&mcpresource.Principal{
		Issuer: issuer, Subject: "alice", ClientID: "app", Claims: json.RawMessage(`{"gid":"g"}`)})
	if _, s, err := late.adapter.tasks.read(t.Context(), owner, id); err != nil || s.Status != "failed" {
		t.Errorf("got %+v, %v", s, err)
	}
}

// ending: a task that has ended stays as it is, whichever replica ended it.
func ending(t *testing.T, open replicas) {
	one, two := open(t)
	first := newTaskRig(t, &Tasks{Store: one})
	second := newTaskRig(t, &Tasks{Store: two})
	var ids []string
	for range 8 {
		ids = append(ids, first.start(t, "alice-mcp", "slow"))
	}
	close(first.release)
	for _, id := range ids {
		second.about(t, "alice-mcp", "tasks/cancel", id, "")
	}
	for _, id := range ids {
		was := first.until(t, "alice-mcp", id, "completed", "cancelled").Result["status"]
		first.idle(t)
		second.about(t, "alice-mcp", "tasks/cancel", id, "")
		if is := second.about(t, "alice-mcp", "tasks/get", id, "").Result["status"]; is != was {
			t.Errorf("a task that was %s is %s", was, is)
		}
	}
}
