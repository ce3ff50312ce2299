package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

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
	tasksOf   = "SELECT count(*) FROM tasks WHERE person = $1 AND expires_at > $2"
	findTask  = "SELECT " + column.TaskColumns + " FROM tasks WHERE id = $1 AND expires_at > $2"
	listTasks = "SELECT " + column.TaskColumns + ` FROM tasks WHERE owner = $1 AND expires_at > $2
	AND ($3::text = '' OR created_at < $4 OR created_at = $4 AND name < $3::text)
ORDER BY created_at DESC, name DESC LIMIT $5`
	// changeTask changes a version once.
	changeTask = `UPDATE tasks SET sealed = $3, version = version + 1
WHERE id = $1 AND version = $2 AND expires_at > $4`
)

func readTask(row pgx.CollectableRow) (storage.Task, error) { return column.ReadTask(row) }

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

// FindTask implements storage.Tasks.
func (s *Store) FindTask(ctx context.Context, id storage.Hash, now time.Time) (t storage.Task, err error) {
	err = s.do(ctx, "FindTask", func(ctx context.Context, q querier) error {
		var row column.TaskRow
		err := one(ctx, q, row.Dest(), findTask, id[:], column.Millis(now))
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
	err = s.do(ctx, "ListTasks", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, readTask, listTasks,
			owner[:], column.Millis(now), after.Name, column.Millis(after.CreatedAt), limit)
		return err
	})
	return out, err
}

// ChangeTask implements storage.Tasks.
func (s *Store) ChangeTask(
	ctx context.Context, id storage.Hash, version int64, sealed []byte, now time.Time,
) error {
	return s.do(ctx, "ChangeTask", func(ctx context.Context, q querier) error {
		n, err := exec(ctx, q, changeTask, id[:], version, sealed, column.Millis(now))
		if err != nil || n > 0 {
			return err
		}
		var row column.TaskRow
		if err := one(ctx, q, row.Dest(), findTask, id[:], column.Millis(now)); err != nil {
			return err
		}
		return storage.ErrChanged
	})
}
