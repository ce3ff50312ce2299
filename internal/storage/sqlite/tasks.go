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
	tasksOf = "SELECT count(*) FROM tasks WHERE person = ?1 AND expires_at > ?2"
)

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
