package gosdk

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // a driver of the tests
	_ "modernc.org/sqlite"             // the other one

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	serverpostgres "github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/taskstore"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/postgres"
	"github.com/mcp-authd/mcp-authd/mcpresource/sqlite"
)

// replicas opens a store twice.
type replicas func(t *testing.T) (one, two mcpresource.TaskStore)

// stores returns the task stores by name, each opened by two replicas.
func stores() map[string]replicas {
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
	server := func(t *testing.T, s storage.Store, err error) mcpresource.TaskStore {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		ring, err := secrets.NewRing(key)
		if err != nil {
			t.Fatal(err)
		}
		tasks, err := taskstore.New(s, issuer, ring, nil)
		return must(t, tasks, err)
	}
	return map[string]replicas{
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
		"a server's SQLite": func(t *testing.T) (one, two mcpresource.TaskStore) {
			one = server(t, installation.Store(t), nil)
			return one, one // a file belongs to one process
		},
		"a server's PostgreSQL": func(t *testing.T) (one, two mcpresource.TaskStore) {
			url := pgtest.Start(t).Database(t)
			open := func() mcpresource.TaskStore {
				s, err := serverpostgres.Open(t.Context(), url, serverpostgres.Options{})
				return server(t, s, err)
			}
			return open(), open()
		},
	}
}

// TestTasksOfReplicas checks tasks whose process ends, with each store.
func TestTasksOfReplicas(t *testing.T) {
	for name, open := range stores() {
		t.Run("RS-215 "+name, func(t *testing.T) {
			t.Run("the server stops, and another finds results and lost tasks", func(t *testing.T) {
				stoppingServer(t, open)
			})
			t.Run("a process that dies leaves no task working, and none that waits", func(t *testing.T) { dying(t, open) })
			t.Run("a task that is cancelled and finished at once ends once", func(t *testing.T) { ending(t, open) })
		})
	}
}

// stoppingServer stops a server gracefully.
func stoppingServer(t *testing.T, open replicas) {
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
	wait.Until(t, "the tool whose task was cancelled on another replica has ended, and the other runs",
		func() bool { return first.runs.Load() == 1 })
	if err := first.adapter.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if a := second.about(t, "alice-mcp", "tasks/get", lost, ""); a.Result["status"] != "failed" ||
		!strings.Contains(a.text, "stopped") {
		t.Errorf("what ran: got %s", a.text)
	}
	if a := second.about(t, "alice-mcp", "tasks/get", done, ""); !strings.Contains(a.text, "broken") {
		t.Errorf("the ended task: got %s", a.text)
	}
}

// dying is a process that sends no more beats. A task that waits for input is lost, because another
// process cannot continue the tool.
func dying(t *testing.T, open replicas) {
	one, two := open(t)
	first := newTaskRig(t, &Tasks{Store: one, beat: time.Hour})
	done := first.start(t, "alice-mcp", "large")
	first.until(t, "alice-mcp", done, "completed")
	lost := map[string]string{"slow": first.start(t, "alice-mcp", "slow"), "asks": first.start(t, "alice-mcp", "asks")}
	first.until(t, "alice-mcp", lost["asks"], "input_required")
	early := newTaskRig(t, &Tasks{Store: two})
	if a := early.about(t, "alice-mcp", "tasks/get", lost["asks"], ""); a.Result["status"] != "input_required" ||
		a.Result["inputRequests"] == nil {
		t.Errorf("while the process may be there: got %s", a.text)
	}
	late := newTaskRig(t, &Tasks{Store: two, now: func() time.Time { return time.Now().Add(5 * time.Hour) }})
	session := late.initialize(t, "alice-mcp")
	for tool, id := range lost {
		a := late.about(t, "alice-mcp", "tasks/get", id, "")
		if e, _ := a.Result["error"].(map[string]any); a.Result["status"] != "failed" || e["code"] != -32603.0 ||
			!strings.Contains(a.text, "no other can go on where it was: begin again") || a.Result["inputRequests"] != nil {
			t.Errorf("%s: got %s", tool, a.text)
		}
		a = late.about(t, "alice-mcp", "tasks/update", id,
			`,"inputResponses":{"a":{"action":"accept","content":{"name":"A"}},"b":{"action":"accept"}}`)
		if a.Result["resultType"] != "complete" {
			t.Errorf("%s: an answer that comes too late: got %s", tool, a.text)
		}
		if a := early.about(t, "alice-mcp", "tasks/get", id, ""); a.Result["status"] != "failed" {
			t.Errorf("%s, at a replica with another clock: got %s", tool, a.text)
		}
		if a := late.inSession(t, "alice-mcp", session, "tasks/result", `"taskId":"`+id+`"`); a.Error.Code != -32603 {
			t.Errorf("%s, in a session: got %s", tool, a.text)
		}
	}
	if a := late.inSession(t, "alice-mcp", session, "tasks/list", ""); strings.Contains(a.text, `"working"`) ||
		strings.Count(a.text, `"failed"`) < 2 {
		t.Errorf("the list: got %s", a.text)
	}
	if a := late.about(t, "alice-mcp", "tasks/get", done, ""); a.Result["status"] != "completed" ||
		!strings.Contains(a.text, "ask for less") {
		t.Errorf("the ended task: got %.300s", a.text)
	}
}

// ending: a task that has ended does not change, whichever replica ended it.
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
