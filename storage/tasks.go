package storage

import (
	"context"
	"time"
)

// Tasks holds calls of tools whose results are fetched later, and whom the tasks of MCP servers behind the
// gateway belong to. What has expired is not there.
type Tasks interface {
	// KeepTask stores a new task. ErrFull when the person has that many, however many are stored at once;
	// ErrExists when its owner has one of this name.
	KeepTask(ctx context.Context, t Task, most int, now time.Time) error
	// FindTask returns the task with this ID, or ErrNotFound.
	FindTask(ctx context.Context, id Hash, now time.Time) (Task, error)
	// ListTasks returns up to limit tasks of an owner, the latest first, those of one millisecond by
	// descending name: those that come after the time and name of another one in that order, all of them for
	// the name "".
	ListTasks(ctx context.Context, owner Hash, after Task, limit int, now time.Time) ([]Task, error)
	// ChangeTask puts sealed in place of what the task with this ID has, if its version is still this one,
	// and counts the version up: of N concurrent changes of one version one is made. ErrChanged for another
	// version, ErrNotFound for no such task.
	ChangeTask(ctx context.Context, id Hash, version int64, sealed []byte, now time.Time) error
}

// Task is a task of an MCP server.
type Task struct {
	ID        Hash // of MCP server, owner and name
	Owner     Hash
	Person    Hash // by whom tasks are counted
	Name      string
	CreatedAt time.Time
	ExpiresAt time.Time
	Version   int64 // how often it was changed
	Sealed    []byte
}
