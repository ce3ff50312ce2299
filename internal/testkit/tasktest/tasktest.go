// Package tasktest tests the contract of mcpresource.TaskStore. Every store runs these tests.
package tasktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Store is a store to test.
type Store struct {
	// Open returns two replicas of a store without tasks, which may be the same. now is its clock.
	Open func(t *testing.T, now func() time.Time) [2]mcpresource.TaskStore
}

// env holds two replicas and their time.
type env struct {
	at       atomic.Int64 // milliseconds
	one, two mcpresource.TaskStore
}

func (e *env) now() time.Time         { return time.UnixMilli(e.at.Load()) }
func (e *env) passes(d time.Duration) { e.at.Add(d.Milliseconds()) }
func (s Store) env(t *testing.T) *env {
	t.Helper()
	e := &env{}
	e.at.Store(1_800_000_000_000)
	both := s.Open(t, e.now)
	e.one, e.two = both[0], both[1]
	return e
}

func (e *env) replica(i int) mcpresource.TaskStore { return []mcpresource.TaskStore{e.one, e.two}[i%2] }

func (e *env) task(id, owner, person string) mcpresource.Task {
	return mcpresource.Task{
		ID: id, Owner: owner, Person: person, Created: e.now(), Expires: e.now().Add(time.Hour),
		State: []byte(`{"of":"` + id + `"}`),
	}
}

// Run tests a store.
func Run(t *testing.T, s Store) {
	for name, test := range map[string]func(*testing.T, *env){
		"RS-215 a task is found by its owner alone, at every replica":  owners,
		"RS-215 what is found is what was kept":                        kept,
		"RS-215 a list has pages, the latest first":                    pages,
		"RS-215 of changes of one version one is made":                 changes,
		"RS-215 tasks expire, and make room":                           expiry,
		"RS-132 a person has so many tasks, however many come at once": bounds,
		"RS-132 a context that has ended changes nothing":              ended,
	} {
		t.Run(name, func(t *testing.T) { test(t, s.env(t)) })
	}
}

func owners(t *testing.T, e *env) {
	ctx := t.Context()
	if err := e.one.CreateTask(ctx, e.task("a", "alice", "p"), 3); err != nil {
		t.Fatal(err)
	}
	if _, err := e.two.Task(ctx, "alice", "a"); err != nil {
		t.Errorf("the owner: got %v", err)
	}
	for _, owner := range []string{"bob", "", "alic", "ALICE", "alice "} {
		if _, err := e.two.Task(ctx, owner, "a"); !errors.Is(err, mcpresource.ErrNoTask) {
			t.Errorf("%q: got %v", owner, err)
		}
		change := mcpresource.Task{ID: "a", Owner: owner, State: []byte("x")}
		if err := e.two.ChangeTask(ctx, change); !errors.Is(err, mcpresource.ErrNoTask) {
			t.Errorf("%q: got %v", owner, err)
		}
		if list, err := e.two.Tasks(ctx, owner, mcpresource.Task{}, 9); err != nil || len(list) != 0 {
			t.Errorf("%q: got %v, %v", owner, list, err)
		}
	}
	for _, id := range []string{"", "A", "a ", "b", "%"} {
		if _, err := e.one.Task(ctx, "alice", id); !errors.Is(err, mcpresource.ErrNoTask) {
			t.Errorf("%q: got %v", id, err)
		}
	}
	if err := e.two.CreateTask(ctx, e.task("a", "bob", "q"), 3); err != nil { // task ids are per owner
		t.Fatal(err)
	}
	if got, err := e.one.Task(ctx, "alice", "a"); err != nil || got.Owner != "alice" {
		t.Errorf("got %v, %v", got, err)
	}
}

func kept(t *testing.T, e *env) {
	ctx := t.Context()
	want := e.task("a", "alice", "p")
	want.State = []byte("\x00\xff any bytes")
	if err := e.one.CreateTask(ctx, want, 3); err != nil {
		t.Fatal(err)
	}
	same(t, e.two, want)
	want.State[0] = 'x' // the caller may change its copy
	got, err := e.two.Task(ctx, "alice", "a")
	if err != nil || got.State[0] != 0 {
		t.Fatalf("got %v, %v", got, err)
	}
	got.State = []byte("changed")
	if err := e.two.ChangeTask(ctx, got); err != nil {
		t.Fatal(err)
	}
	got.Version++
	same(t, e.one, got)
	if err := e.one.CreateTask(ctx, e.task("a", "alice", "p"), 3); err == nil {
		t.Error("an id was taken twice")
	}
	same(t, e.one, got)
}

func same(t *testing.T, s mcpresource.TaskStore, want mcpresource.Task) {
	t.Helper()
	got, err := s.Task(t.Context(), want.Owner, want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != want.ID || got.Owner != want.Owner || got.Version != want.Version ||
		!got.Created.Equal(want.Created) ||
		!got.Expires.Equal(want.Expires) || string(got.State) != string(want.State) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func pages(t *testing.T, e *env) {
	ctx := t.Context()
	for _, id := range []string{"b", "a", "C"} { // in the same millisecond
		if err := e.one.CreateTask(ctx, e.task(id, "alice", "p"), 9); err != nil {
			t.Fatal(err)
		}
	}
	e.passes(time.Millisecond)
	if err := e.one.CreateTask(ctx, e.task("0", "alice", "p"), 9); err != nil {
		t.Fatal(err)
	}
	if err := e.one.CreateTask(ctx, e.task("z", "bob", "p"), 9); err != nil {
		t.Fatal(err)
	}
	var got []string
	after := mcpresource.Task{}
	for range 5 {
		list, err := e.two.Tasks(ctx, "alice", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range list {
			got = append(got, task.ID)
			after = task
		}
	}
	if fmt.Sprint(got) != "[0 b a C]" {
		t.Errorf("got %v", got)
	}
}

func changes(t *testing.T, e *env) {
	ctx := t.Context()
	if err := e.one.CreateTask(ctx, e.task("a", "alice", "p"), 3); err != nil {
		t.Fatal(err)
	}
	for version := range int64(3) {
		var won, lost atomic.Int64
		race(32, func(i int) {
			change := mcpresource.Task{ID: "a", Owner: "alice", Version: version, State: fmt.Append(nil, i)}
			switch err := e.replica(i).ChangeTask(ctx, change); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, mcpresource.ErrTaskChanged):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
		if won.Load() != 1 || lost.Load() != 31 {
			t.Errorf("%d won, %d lost", won.Load(), lost.Load())
		}
		if got, err := e.two.Task(ctx, "alice", "a"); err != nil || got.Version != version+1 {
			t.Errorf("got %v, %v", got, err)
		}
	}
	for _, version := range []int64{0, 2, 4} {
		change := mcpresource.Task{ID: "a", Owner: "alice", Version: version, State: []byte("late")}
		if err := e.one.ChangeTask(ctx, change); !errors.Is(err, mcpresource.ErrTaskChanged) {
			t.Errorf("version %d: got %v", version, err)
		}
	}
}

func expiry(t *testing.T, e *env) {
	ctx := t.Context()
	for _, id := range []string{"a", "b"} {
		if err := e.one.CreateTask(ctx, e.task(id, "alice", "p"), 2); err != nil {
			t.Fatal(err)
		}
	}
	e.passes(time.Hour - time.Millisecond)
	if _, err := e.two.Task(ctx, "alice", "a"); err != nil {
		t.Errorf("just before: got %v", err)
	}
	if err := e.one.CreateTask(ctx, e.task("c", "alice", "p"), 2); !errors.Is(err, mcpresource.ErrTasksFull) {
		t.Errorf("just before: got %v", err)
	}
	e.passes(time.Millisecond)
	if _, err := e.two.Task(ctx, "alice", "a"); !errors.Is(err, mcpresource.ErrNoTask) {
		t.Errorf("got %v", err)
	}
	gone := mcpresource.Task{ID: "a", Owner: "alice"}
	if err := e.two.ChangeTask(ctx, gone); !errors.Is(err, mcpresource.ErrNoTask) {
		t.Errorf("got %v", err)
	}
	if list, err := e.two.Tasks(ctx, "alice", mcpresource.Task{}, 9); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v", list, err)
	}
	e.passes(time.Hour)
	for _, id := range []string{"c", "d"} {
		if err := e.one.CreateTask(ctx, e.task(id, "alice", "p"), 2); err != nil {
			t.Errorf("%s: got %v", id, err)
		}
	}
}

func bounds(t *testing.T, e *env) {
	ctx := t.Context()
	var won, full atomic.Int64
	race(32, func(i int) {
		task := e.task(fmt.Sprint("t", i), fmt.Sprint("application", i%3), "p")
		switch err := e.replica(i).CreateTask(ctx, task, 5); {
		case err == nil:
			won.Add(1)
		case errors.Is(err, mcpresource.ErrTasksFull):
			full.Add(1)
		default:
			t.Error(err)
		}
	})
	if won.Load() != 5 || full.Load() != 27 {
		t.Errorf("%d kept, %d refused", won.Load(), full.Load())
	}
	task := e.task("later", "alice", "p")
	if err := e.one.CreateTask(ctx, task, 5); !errors.Is(err, mcpresource.ErrTasksFull) {
		t.Errorf("after that: got %v", err)
	}
	if err := e.one.CreateTask(ctx, e.task("other", "bob", "q"), 5); err != nil {
		t.Errorf("of another person: got %v", err)
	}
}

func ended(t *testing.T, e *env) {
	ctx, cancel := context.WithCancel(t.Context())
	if err := e.one.CreateTask(ctx, e.task("a", "alice", "p"), 3); err != nil {
		t.Fatal(err)
	}
	cancel()
	change := mcpresource.Task{ID: "a", Owner: "alice", State: []byte("x")}
	if e.one.ChangeTask(ctx, change) == nil {
		return // a store in memory ignores the context
	}
	if got, err := e.two.Task(t.Context(), "alice", "a"); err != nil || got.Version != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

func race(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}
