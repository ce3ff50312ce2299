package portable

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	findTask  = "SELECT " + column.TaskColumns + " FROM tasks WHERE id = $1 AND expires_at > $2"
	listTasks = "SELECT " + column.TaskColumns + ` FROM tasks WHERE owner = $1 AND expires_at > $2
	AND (CAST($3 AS text) = '' OR created_at < $4 OR created_at = $4 AND name < CAST($3 AS text))
ORDER BY created_at DESC, name DESC LIMIT $5`
	// changeTask changes a version once.
	changeTask = `UPDATE tasks SET sealed = $3, version = version + 1
WHERE id = $1 AND version = $2 AND expires_at > $4`
)

// tasks implements storage.Tasks, except KeepTask.
type tasks struct{ db Engine }

// FindTask implements storage.Tasks.
func (s tasks) FindTask(ctx context.Context, id storage.Hash, now time.Time) (t storage.Task, err error) {
	err = s.db.Read(ctx, "FindTask", func(c Conn) error {
		var row column.TaskRow
		err := c.One(row.Dest(), findTask, id[:], column.Millis(now))
		if err == nil {
			t, err = row.Task()
		}
		return err
	})
	return t, err
}

// ListTasks implements storage.Tasks.
func (s tasks) ListTasks(
	ctx context.Context, owner storage.Hash, after storage.Task, limit int, now time.Time,
) (out []storage.Task, err error) {
	err = s.db.Read(ctx, "ListTasks", func(c Conn) (err error) {
		out, err = Each(c, column.ReadTask, listTasks,
			owner[:], column.Millis(now), after.Name, column.Millis(after.CreatedAt), limit)
		return err
	})
	return out, err
}

// ChangeTask implements storage.Tasks.
func (s tasks) ChangeTask(
	ctx context.Context, id storage.Hash, version int64, sealed []byte, now time.Time,
) error {
	return s.db.Write(ctx, "ChangeTask", func(c Conn) error {
		n, err := c.Exec(changeTask, id[:], version, sealed, column.Millis(now))
		if err != nil || n > 0 {
			return err
		}
		var row column.TaskRow
		if err := c.One(row.Dest(), findTask, id[:], column.Millis(now)); err != nil {
			return err
		}
		return storage.ErrChanged
	})
}
