package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const tombstone = `INSERT INTO clients (id, created_at, deleted_at) VALUES (?1, ?2, ?2)
ON CONFLICT (id) DO UPDATE SET ` + column.Bury + `coalesce(deleted_at, excluded.deleted_at)`

// DeleteClient implements storage.Clients.
func (s *Store) DeleteClient(ctx context.Context, id string, now time.Time) error {
	return s.write(ctx, "DeleteClient", func(c *conn) error {
		return all(
			run(c, tombstone, id, column.Millis(now)),
			func() error { return cut(c, storage.Selection{ClientID: id}, storage.ByClientDeleted, now) },
		)
	})
}

// revoke ends the live grants that match where, whose parameters begin at ?4.
func revoke(c *conn, by storage.RevokedBy, where string, now time.Time, args ...any) func() error {
	return run(c,
		"UPDATE grants AS g SET revoked_at = ?1, sweep_at = min(sweep_at, ?2), revoked_by = ?3 WHERE revoked_at IS NULL AND NOT "+
			column.IsCut+" AND "+where,
		append([]any{column.Millis(now), column.Millis(now.Add(column.RevokedFor)), string(by)}, args...)...)
}

// run returns a step for a statement whose row count does not matter.
func run(c *conn, query string, args ...any) func() error {
	return func() error {
		_, err := c.exec(query, args...)
		return err
	}
}

// all runs the statements until one fails.
func all(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// changed returns missed when a statement changed no row.
func changed(missed error) func(int64, error) error {
	return func(n int64, err error) error {
		if err == nil && n == 0 {
			return missed
		}
		return err
	}
}
