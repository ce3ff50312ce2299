package mcpresource

import (
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/tasks"
)

// Sealer protects data that a client must return to the server, such as the requestState of MCP
// 2026-07-28 ("Multi Round-Trip Requests"), object handles and cursors. The client can neither read
// nor change it, no other user can use it, and it expires. Until then it can be used repeatedly.
// For an effect that must happen once, use Once of package gosdk.
type Sealer = tasks.Sealer

// NewSealer returns a Sealer. Keys must have at least 32 bytes. The first encrypts and all decrypt,
// so that keys can be replaced. All replicas need the same keys. Without keys it generates one for
// the life of this process.
func NewSealer(keys ...[]byte) (*Sealer, error) {
	return tasks.NewSealer(keys...)
}

// Task is a task in a TaskStore. The adapter keeps all other data in State.
type Task = tasks.Task

// TaskStore stores tasks for the adapters of one MCP server, such as package gosdk, in all of its
// replicas. It must be safe for concurrent use. It must not return expired tasks, and removes them.
// NewMemoryTasks and packages mcpresource/postgres and mcpresource/sqlite provide stores.
type TaskStore = tasks.TaskStore

// NewMemoryTasks returns an in-memory store for up to size tasks (default 10,000) with at most 256
// MiB of states in total. Its tasks end with the process. A nil now means time.Now.
func NewMemoryTasks(size int, now func() time.Time) TaskStore {
	return tasks.NewMemoryTasks(size, now)
}

// SealTasks returns a store that encrypts the states of tasks, which contain arguments and results,
// before they are stored in store. Keys must have at least 32 bytes. The first encrypts and all
// decrypt, so that keys can be replaced. All replicas need the same keys. Each state is bound to
// its task.
func SealTasks(store TaskStore, keys ...[]byte) (TaskStore, error) {
	return tasks.SealTasks(store, keys...)
}

var (

	// ErrState means that a state was not sealed here, was changed, belongs to another user or
	// operation, or has expired. It does not say which.
	ErrState = tasks.ErrState
	// ErrNoTask means that the owner has no such task.
	ErrNoTask = tasks.ErrNoTask
	// ErrTaskChanged means that the task was changed since it was read.
	ErrTaskChanged = tasks.ErrTaskChanged
	// ErrTasksFull means that the store has no room for the task.
	ErrTasksFull = tasks.ErrTasksFull
)
