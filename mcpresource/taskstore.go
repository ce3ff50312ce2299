package mcpresource

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// The errors of a TaskStore.
var (
	// ErrNoTask means that an owner has no such task.
	ErrNoTask = errors.New("mcpresource: no such task")
	// ErrTaskChanged means that a task has been changed since it was read.
	ErrTaskChanged = errors.New("mcpresource: the task has been changed meanwhile")
	// ErrTasksFull means that there is no room for the task.
	ErrTasksFull = errors.New("mcpresource: too many tasks are kept")
)

// Task is a task as a TaskStore keeps it. What else there is to know of it, the adapter keeps in State.
type Task struct {
	ID      string    // unguessable
	Owner   string    // who alone finds it; a digest
	Person  string    // by whom tasks are counted; a digest
	Created time.Time // in whole milliseconds
	Expires time.Time // from then on the task does not exist any more
	Version int64     // counts the changes
	State   []byte    // JSON: the call with its arguments, how far it is, and its result
}

// TaskStore keeps tasks for the adapters of one MCP server, as package gosdk has them, whichever of its
// replicas they are in. It is safe for concurrent use. What has expired it does not return, and removes.
// Stores are NewMemoryTasks and those of packages mcpresource/postgres and mcpresource/sqlite.
type TaskStore interface {
	// CreateTask keeps a new task, or returns ErrTasksFull when most tasks of the person are kept, however
	// many come at once. Once it has returned, Task finds the task in every replica. It fails for an id that
	// its owner has.
	CreateTask(ctx context.Context, t Task, most int) error
	// Task returns a task of owner, or ErrNoTask, also for one of another owner.
	Task(ctx context.Context, owner, id string) (Task, error)
	// Tasks returns up to limit tasks of owner, the latest first: those that come after another one in that
	// order, or all for the zero Task. Those of one millisecond are in descending order of their ids.
	Tasks(ctx context.Context, owner string, after Task, limit int) ([]Task, error)
	// ChangeTask puts State in place of that of the task with this owner, id and version, and counts the
	// version up. It returns ErrTaskChanged for another version: of concurrent changes of one version
	// one is made. It returns ErrNoTask for no such task, and ErrTasksFull when there is no room.
	ChangeTask(ctx context.Context, t Task) error
}

const (
	memoryTaskCount = 10_000
	memoryTaskBytes = 256 << 20
)

// NewMemoryTasks returns a store in memory for up to size tasks (default 10,000) with 256 MiB of states
// altogether. Its tasks end with the process. A nil now is time.Now.
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

	mu      sync.Mutex // guards what follows
	byOwner map[string]map[string]Task
	persons map[string]int // how many tasks each has
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

// get needs the lock.
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

// sweep removes what has expired, at most once a second. It needs the lock.
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
