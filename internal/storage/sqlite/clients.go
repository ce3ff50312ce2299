package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const insertClient = "INSERT INTO clients (" + column.ClientColumns +
	") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING"

// PutClient implements storage.Clients.
func (s *Store) PutClient(ctx context.Context, cl storage.Client) error {
	return s.write(ctx, "PutClient", func(c *conn) error {
		return changed(storage.ErrExists)(c.exec(insertClient, column.ClientValues(cl)...))
	})
}

const replaceClient = "INSERT INTO clients (" + column.ClientColumns + `, replaced_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
ON CONFLICT (id) DO UPDATE SET ` + column.ClientReplacement + " WHERE deleted_at IS NULL"

// ReplaceClient implements storage.Clients.
func (s *Store) ReplaceClient(ctx context.Context, cl storage.Client, now time.Time) error {
	return s.write(ctx, "ReplaceClient", func(c *conn) error {
		return changed(storage.ErrRevoked)(
			c.exec(replaceClient, append(column.ClientValues(cl), column.Millis(now))...),
		)
	})
}

// Client implements storage.Clients.
func (s *Store) Client(ctx context.Context, id string) (out storage.Client, err error) {
	err = s.read(ctx, "Client", func(c *conn) (err error) {
		var r column.ClientRow
		var deleted *int64
		err = c.one(append(r.Dest(), &deleted),
			"SELECT "+column.ClientColumns+", deleted_at FROM clients WHERE id = ?", id)
		if err != nil {
			return err
		}
		if deleted != nil {
			return storage.ErrRevoked
		}
		out, err = r.Client()
		return err
	})
	return out, err
}

// ListClients implements storage.Clients.
func (s *Store) ListClients(ctx context.Context, after string, limit int) (out []storage.Client, err error) {
	err = s.read(ctx, "ListClients", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.Client, error) {
			var r column.ClientRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.Client{}, err
			}
			return r.Client()
		}, "SELECT "+column.ClientColumns+" FROM clients WHERE id > ? AND deleted_at IS NULL ORDER BY id LIMIT ?",
			after, max(limit, 0))
		return err
	})
	return out, err
}

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
