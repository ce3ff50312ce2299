package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	keepTask = "INSERT INTO tasks (" + column.TaskColumns + ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8)" +
		" ON CONFLICT (id) DO NOTHING"
	tasksOf   = "SELECT count(*) FROM tasks WHERE person = ?1 AND expires_at > ?2"
	findTask  = "SELECT " + column.TaskColumns + " FROM tasks WHERE id = ?1 AND expires_at > ?2"
	listTasks = "SELECT " + column.TaskColumns + ` FROM tasks WHERE owner = ?1 AND expires_at > ?2
	AND (?3 = '' OR created_at < ?4 OR created_at = ?4 AND name < ?3)
ORDER BY created_at DESC, name DESC LIMIT ?5`
	// changeTask changes a version once.
	changeTask = `UPDATE tasks SET sealed = ?3, version = version + 1
WHERE id = ?1 AND version = ?2 AND expires_at > ?4`
)

func readTask(row scanner) (storage.Task, error) { return column.ReadTask(row) }

// KeepTask implements storage.Tasks.
func (s *Store) KeepTask(ctx context.Context, t storage.Task, most int, now time.Time) error {
	return s.write(ctx, "KeepTask", func(c *conn) error {
		var has int
		if err := c.one([]any{&has}, tasksOf, t.Person[:], column.Millis(now)); err != nil {
			return err
		}
		if has >= most {
			return storage.ErrFull
		}
		n, err := c.exec(keepTask, column.TaskValues(t)...)
		if err == nil && n == 0 {
			err = storage.ErrExists
		}
		return err
	})
}

// FindTask implements storage.Tasks.
func (s *Store) FindTask(ctx context.Context, id storage.Hash, now time.Time) (t storage.Task, err error) {
	err = s.read(ctx, "FindTask", func(c *conn) error {
		var row column.TaskRow
		err := c.one(row.Dest(), findTask, id[:], column.Millis(now))
		if err == nil {
			t, err = row.Task()
		}
		return err
	})
	return t, err
}

// ListTasks implements storage.Tasks.
func (s *Store) ListTasks(
	ctx context.Context, owner storage.Hash, after storage.Task, limit int, now time.Time,
) (out []storage.Task, err error) {
	err = s.read(ctx, "ListTasks", func(c *conn) (err error) {
		out, err = each(c, readTask, listTasks,
			owner[:], column.Millis(now), after.Name, column.Millis(after.CreatedAt), limit)
		return err
	})
	return out, err
}

// ChangeTask implements storage.Tasks.
func (s *Store) ChangeTask(
	ctx context.Context, id storage.Hash, version int64, sealed []byte, now time.Time,
) error {
	return s.write(ctx, "ChangeTask", func(c *conn) error {
		n, err := c.exec(changeTask, id[:], version, sealed, column.Millis(now))
		if err != nil || n > 0 {
			return err
		}
		var row column.TaskRow
		if err := c.one(row.Dest(), findTask, id[:], column.Millis(now)); err != nil {
			return err
		}
		return storage.ErrChanged
	})
}
