// Package tasks stores tasks, and seals states that a client returns.
package tasks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Errors of a TaskStore.
var (
	// ErrNoTask means that the owner has no such task.
	ErrNoTask = errors.New("mcpresource: no such task")
	// ErrTaskChanged means that the task was changed since it was read.
	ErrTaskChanged = errors.New("mcpresource: the task has been changed meanwhile")
	// ErrTasksFull means that the store has no room for the task.
	ErrTasksFull = errors.New("mcpresource: too many tasks are kept")
)

// Task is a task in a TaskStore. The adapter keeps all other data in State.
type Task struct {
	ID      string    // unguessable
	Owner   string    // required to find it; a digest
	Person  string    // used to count tasks; a digest
	Created time.Time // in whole milliseconds
	Expires time.Time // the task does not exist after this time
	Version int64     // number of changes
	State   []byte    // JSON: the call with its arguments, its progress and its result
}

// TaskStore stores tasks for the adapters of one MCP server, such as package gosdk, in all of its
// replicas. It must be safe for concurrent use. It must not return expired tasks, and removes them.
// NewMemoryTasks and packages mcpresource/postgres and mcpresource/sqlite provide stores.
type TaskStore interface {
	// CreateTask stores a new task. It returns ErrTasksFull if the user already has most tasks,
	// even with concurrent calls. Once it has returned, Task finds the task in every replica. It
	// returns an error if the owner already has a task with this id.
	CreateTask(ctx context.Context, t Task, most int) error
	// Task returns a task of owner, or ErrNoTask, also for a task of another owner.
	Task(ctx context.Context, owner, id string) (Task, error)
	// Tasks returns up to limit tasks of owner, latest first: those after the given task in that
	// order, or all for the zero Task. Tasks of the same millisecond are in descending order of id.
	Tasks(ctx context.Context, owner string, after Task, limit int) ([]Task, error)
	// ChangeTask replaces the State of the task with this owner, id and version, and increments the
	// version. It returns ErrTaskChanged for another version: of concurrent changes of one version,
	// exactly one succeeds. It returns ErrNoTask if there is no such task, and ErrTasksFull if the
	// store is full.
	ChangeTask(ctx context.Context, t Task) error
}

const (
	memoryTaskCount = 10_000
	memoryTaskBytes = 256 << 20
)

// NewMemoryTasks returns an in-memory store for up to size tasks (default 10,000) with at most 256
// MiB of states in total. Its tasks end with the process. A nil now means time.Now.
func NewMemoryTasks(size int, now func() time.Time) TaskStore { return newMemoryTasks(size, now) }

func newMemoryTasks(size int, now func() time.Time) *memoryTasks {
	if size <= 0 {
		size = memoryTaskCount
	}
	if now == nil {
		now = time.Now
	}
	return &memoryTasks{now: now, size: size, byOwner: map[string]map[string]Task{}, persons: map[string]int{}}
}

type memoryTasks struct {
	now  func() time.Time
	size int

	mu      sync.Mutex // guards the fields below
	byOwner map[string]map[string]Task
	persons map[string]int // number of tasks by user
	count   int
	bytes   int
	swept   time.Time
}

// CreateTask implements TaskStore.
func (m *memoryTasks) CreateTask(_ context.Context, t Task, most int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	if m.persons[t.Person] >= most || m.count >= m.size || m.bytes+len(t.State) > memoryTaskBytes {
		return ErrTasksFull
	}
	if m.byOwner[t.Owner] == nil {
		m.byOwner[t.Owner] = map[string]Task{}
	}
	if _, taken := m.byOwner[t.Owner][t.ID]; taken {
		return errors.New("mcpresource: there is a task with this id")
	}
	t.State = slices.Clone(t.State)
	m.byOwner[t.Owner][t.ID] = t
	m.persons[t.Person]++
	m.count++
	m.bytes += len(t.State)
	return nil
}

// Task implements TaskStore.
func (m *memoryTasks) Task(_ context.Context, owner, id string) (Task, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.get(owner, id)
}

// get requires the lock.
func (m *memoryTasks) get(owner, id string) (Task, error) {
	t, ok := m.byOwner[owner][id]
	if !ok || !m.now().Before(t.Expires) {
		return Task{}, ErrNoTask
	}
	t.State = slices.Clone(t.State)
	return t, nil
}

// Tasks implements TaskStore.
func (m *memoryTasks) Tasks(_ context.Context, owner string, after Task, limit int) ([]Task, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Task
	for _, t := range m.byOwner[owner] {
		if m.now().Before(t.Expires) && (after.ID == "" || latestFirst(after, t) < 0) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, latestFirst)
	out = out[:min(len(out), limit)]
	for i := range out {
		out[i].State = slices.Clone(out[i].State)
	}
	return out, nil
}

func latestFirst(a, b Task) int {
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
}

// ChangeTask implements TaskStore.
func (m *memoryTasks) ChangeTask(_ context.Context, t Task) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	has, err := m.get(t.Owner, t.ID)
	switch {
	case err != nil:
		return err
	case has.Version != t.Version:
		return ErrTaskChanged
	case len(t.State) > len(has.State) && m.bytes+len(t.State)-len(has.State) > memoryTaskBytes:
		return ErrTasksFull
	}
	m.bytes += len(t.State) - len(has.State)
	has.Version++
	has.State = slices.Clone(t.State)
	m.byOwner[t.Owner][t.ID] = has
	return nil
}

// sweep removes expired tasks, at most once a second. It requires the lock.
func (m *memoryTasks) sweep() {
	now := m.now()
	if now.Sub(m.swept) < time.Second {
		return
	}
	m.swept = now
	for owner, tasks := range m.byOwner {
		for id, t := range tasks {
			if now.Before(t.Expires) {
				continue
			}
			delete(tasks, id)
			m.count--
			m.bytes -= len(t.State)
			if m.persons[t.Person]--; m.persons[t.Person] == 0 {
				delete(m.persons, t.Person)
			}
		}
		if len(tasks) == 0 {
			delete(m.byOwner, owner)
		}
	}
}
