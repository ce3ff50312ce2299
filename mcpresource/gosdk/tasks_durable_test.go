package gosdk

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// counted counts the reads of a store.
type counted struct {
	mcpresource.TaskStore
	asked atomic.Int64
}

// Task implements mcpresource.TaskStore.
func (c *counted) Task(ctx context.Context, owner, id string) (mcpresource.Task, error) {
	c.asked.Add(1)
	return c.TaskStore.Task(ctx, owner, id)
}

// TestAttacksOnDurableTasks: two processes with one store give the same guarantees as one.
func TestAttacksOnDurableTasks(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			t.Run("RS-132 RS-186 a task of others, asked for at another replica", func(t *testing.T) { foreign(t, open) })
			t.Run("RS-215 after the grant has ended, at another replica", func(t *testing.T) { revoked(t, open) })
			t.Run("RS-132 32 calls at once, at two replicas, never pass the bound", func(t *testing.T) { flood(t, open) })
			t.Run("RS-132 a result of 3 MB is refused by the bound that it passes", func(t *testing.T) {
				one, two := open(t)
				first, second := newTaskRig(t, &Tasks{Store: one}), newTaskRig(t, &Tasks{Store: two})
				id := first.start(t, "alice-mcp", "huge")
				first.until(t, "alice-mcp", id, "completed")
				a := second.about(t, "alice-mcp", "tasks/get", id, "")
				if len(a.text) > 2000 || !strings.Contains(a.text, "more than the 1048576 that are kept of a task") {
					t.Errorf("got %.300s", a.text)
				}
			})
		})
	}
}

// foreign: the response is the same as without a task, with the same number of identical queries.
func foreign(t *testing.T, open replicas) {
	one, two := open(t)
	store := &counted{TaskStore: two}
	first, second := newTaskRig(t, &Tasks{Store: one}), newTaskRig(t, &Tasks{Store: store})
	id := first.start(t, "alice/app/g1-mcp", "breaks")
	first.until(t, "alice/app/g1-mcp", id, "failed")
	if a := second.about(t, "alice/app/g1-mcp", "tasks/get", id, ""); a.Result["status"] != "failed" {
		t.Fatalf("the owner: got %s", a.text)
	}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		ask := func(token, id string) (string, int64) {
			was := store.asked.Load()
			a := second.about(t, token, method, id, "")
			return fmt.Sprint(a.status, a.text), store.asked.Load() - was
		}
		want, asked := ask("alice/app/g1-mcp", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
		if !strings.Contains(want, "-32602") || asked != 1 {
			t.Fatalf("%s: got %s, and the store was asked %d times", method, want, asked)
		}
		for _, token := range []string{"bob/app/g1-mcp", "alice/other/g1-mcp", "alice/app/g2-mcp"} {
			if got, n := ask(token, id); got != want || n != asked {
				t.Errorf("%s by %s: got %s, and the store was asked %d times", method, token, got, n)
			}
		}
	}
}

// revoked: a task and access to its result end with its grant, whichever replica runs the task.
func revoked(t *testing.T, open replicas) {
	one, two := open(t)
	first := newTaskRig(t, &Tasks{Store: one, beat: 20 * time.Millisecond})
	second := newTaskRig(t, &Tasks{Store: two, beat: 20 * time.Millisecond})
	const token = "alice/app/gx-mcp"
	runs, done := first.start(t, token, "slow"), first.start(t, token, "breaks")
	first.until(t, token, done, "failed")
	for _, tr := range []*taskRig{first, second} {
		tr.revoked.Store("gx", true)
	}
	first.idle(t)
	for _, tr := range []*taskRig{first, second} {
		for _, id := range []string{runs, done} {
			r := tr.rig.ask(t, token, ask{
				body: strings.Replace(modern("tasks/get", `"taskId":"`+id+`"`),
					`"io.modelcontextprotocol/clientCapabilities":{}`, declaring, 1),
				headers: hdr("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tasks/get", "Mcp-Name", id),
			})
			if r.status != 401 || strings.Contains(r.text, "broken") {
				t.Errorf("by the token of the grant: got %d %s", r.status, r.text)
			}
			if a := tr.about(t, "alice/app/gy-mcp", "tasks/get", id, ""); a.Error.Code != -32602 { // not found
				t.Errorf("by the next grant of the application: got %s", a.text)
			}
		}
	}
	second.revoked.Delete("gx") // to read its final state
	if a := second.until(t, token, runs, "cancelled"); !strings.Contains(a.text, "access") {
		t.Errorf("got %s", a.text)
	}
}

func flood(t *testing.T, open replicas) {
	one, two := open(t)
	const most = 10
	rigs := []*taskRig{
		newTaskRig(t, &Tasks{Store: one, MaxTasks: most}), newTaskRig(t, &Tasks{Store: two, MaxTasks: most}),
	}
	var begun, refused atomic.Int64
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			a := rigs[i%2].extended(t, fmt.Sprintf("alice/app%d/g-mcp", i%5), "tools/call", "slow", `"name":"slow"`)
			switch {
			case a.id() != "":
				begun.Add(1)
			case strings.Contains(a.Error.Message, "Too many tasks are kept"):
				refused.Add(1)
			default:
				t.Errorf("got %s", a.text)
			}
		})
	}
	all.Wait()
	if begun.Load() != most || refused.Load() != 32-most {
		t.Errorf("%d tasks have begun, and %d were refused", begun.Load(), refused.Load())
	}
	if n := rigs[0].runs.Load() + rigs[1].runs.Load(); n > most {
		t.Errorf("%d tools run", n)
	}
}

// TestManyDurableTasks: a list of 10,000 has pages of limited size, and cursors bound to one
// caller.
func TestManyDurableTasks(t *testing.T) {
	const size = 10_000
	store, _ := stores()["PostgreSQL"](t)
	tr := newTaskRig(t, &Tasks{Store: store})
	first := tr.start(t, "alice-mcp", "breaks")
	tr.until(t, "alice-mcp", first, "failed")
	owner := tr.adapter.tasks.owner(&mcpresource.Principal{
		Issuer: issuer, Subject: "alice", ClientID: "app", Claims: []byte(`{"gid":"g"}`)})
	like, err := store.Task(t.Context(), owner, first)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			for i := part; i < size; i += 8 {
				// Of different users, because the limit per user is not tested here.
				task := like
				task.ID, task.Person = fmt.Sprintf("%026d", i), fmt.Sprint(i)
				if err := store.CreateTask(t.Context(), task, 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	session := tr.initialize(t, "alice-mcp")
	seen, cursor := map[string]bool{}, ""
	for page := range 6 {
		began := time.Now()
		a := tr.inSession(t, "alice-mcp", session, "tasks/list", cursor)
		list, _ := a.Result["tasks"].([]any)
		next, _ := a.Result["nextCursor"].(string)
		if len(list) != 50 || next == "" || len(a.text) > 32<<10 {
			t.Fatalf("RS-215 page %d: got %d tasks in %d bytes", page, len(list), len(a.text))
		}
		t.Logf("page %d: %v", page, time.Since(began))
		for _, one := range list {
			seen[one.(map[string]any)["taskId"].(string)] = true
		}
		cursor = `"cursor":"` + next + `"`
	}
	if len(seen) != 300 {
		t.Errorf("RS-215 got %d different tasks on six pages of 50", len(seen))
	}
	sealed := strings.TrimSuffix(strings.TrimPrefix(cursor, `"cursor":"`), `"`)
	half := len(sealed) / 2
	forged := sealed[:half] + map[bool]string{true: "B", false: "A"}[sealed[half] == 'A'] + sealed[half+1:]
	for what, c := range map[string]struct{ token, cursor string }{
		"forged":                 {"alice-mcp", forged},
		"cut":                    {"alice-mcp", sealed[:half]},
		"of another person":      {"bob-mcp", sealed},
		"of another application": {"alice/other/g-mcp", sealed},
		"in clear":               {"alice-mcp", "1 " + first},
	} {
		a := tr.inSession(t, c.token, tr.initialize(t, c.token), "tasks/list", `"cursor":"`+c.cursor+`"`)
		if a.Error.Code != -32602 || !strings.Contains(a.Error.Message, "cursor is not valid") {
			t.Errorf("RS-132 a cursor %s: got %.200s", what, a.text)
		}
	}
}
