package storage

import (
	"context"
	"time"
)

// Tasks stores tool calls whose results are fetched later, and the owners of tasks of MCP servers
// behind the gateway. Expired tasks are not returned.
type Tasks interface {
	// KeepTask stores a new task. It returns ErrFull if the user already has most tasks, a limit
	// that also holds for concurrent calls. It returns ErrExists if the owner has a task of this
	// name.
	KeepTask(ctx context.Context, t Task, most int, now time.Time) error
	// FindTask returns the task with this ID, or ErrNotFound.
	FindTask(ctx context.Context, id Hash, now time.Time) (Task, error)
	// ListTasks returns up to limit tasks of an owner, newest first, and of equal milliseconds by
	// descending name. It begins behind the time and name of after; an empty name begins at the
	// first.
	ListTasks(ctx context.Context, owner Hash, after Task, limit int, now time.Time) ([]Task, error)
	// ChangeTask replaces the sealed content of the task with this ID if its version still is
	// version, and increments the version. One of N concurrent changes of a version succeeds. It
	// returns ErrChanged for another version, and ErrNotFound for an unknown task.
	ChangeTask(ctx context.Context, id Hash, version int64, sealed []byte, now time.Time) error
}

// Task is a task of an MCP server.
type Task struct {
	ID        Hash // of MCP server, owner and name
	Owner     Hash
	Person    Hash // the key of the limit on tasks
	Name      string
	CreatedAt time.Time
	ExpiresAt time.Time
	Version   int64 // number of changes
	Sealed    []byte
}
