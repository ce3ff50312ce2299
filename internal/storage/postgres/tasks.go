package postgres

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	keepTask = "INSERT INTO tasks (" + column.TaskColumns + ") VALUES ($1,$2,$3,$4,$5,$6,$7,$8)" +
		" ON CONFLICT (id) DO NOTHING"
	// holdTasksOf serializes new tasks of a user with a row for the user. Without it, concurrent
	// calls would not count each other's tasks. The row is not a visible task: no owner or task has
	// the digest of a user. It expires with the last task.
	holdTasksOf = "INSERT INTO tasks AS t (" + column.TaskColumns + ") VALUES ($1,$1,'','',$2,$3,0,'')" +
		" ON CONFLICT (id) DO UPDATE SET expires_at = greatest(t.expires_at, excluded.expires_at)"
	tasksOf = "SELECT count(*) FROM tasks WHERE person = $1 AND expires_at > $2"
)

// KeepTask implements storage.Tasks.
func (s *Store) KeepTask(ctx context.Context, t storage.Task, most int, now time.Time) error {
	return s.txCommitted(ctx, "KeepTask", func(ctx context.Context, q querier) error {
		_, err := exec(ctx, q, holdTasksOf, t.Person[:], column.Millis(t.CreatedAt), column.Millis(t.ExpiresAt))
		if err != nil {
			return err
		}
		var has int
		if err := one(ctx, q, []any{&has}, tasksOf, t.Person[:], column.Millis(now)); err != nil {
			return err
		}
		if has >= most {
			return storage.ErrFull
		}
		n, err := exec(ctx, q, keepTask, column.TaskValues(t)...)
		if err == nil && n == 0 {
			err = storage.ErrExists
		}
		return err
	})
}
