package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const insertClient = "INSERT INTO clients (" + column.ClientColumns +
	") VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14) ON CONFLICT DO NOTHING"

// PutClient implements storage.Clients.
func (s *Store) PutClient(ctx context.Context, cl storage.Client) error {
	return s.do(ctx, "PutClient", func(ctx context.Context, q querier) error {
		return changed(storage.ErrExists)(exec(ctx, q, insertClient, column.ClientValues(cl)...))
	})
}

const replaceClient = "INSERT INTO clients (" + column.ClientColumns + `, replaced_at) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15)
ON CONFLICT (id) DO UPDATE SET ` + column.ClientReplacement + " WHERE clients.deleted_at IS NULL"

// ReplaceClient implements storage.Clients.
func (s *Store) ReplaceClient(ctx context.Context, cl storage.Client, now time.Time) error {
	return s.do(ctx, "ReplaceClient", func(ctx context.Context, q querier) error {
		return changed(storage.ErrRevoked)(
			exec(ctx, q, replaceClient, append(column.ClientValues(cl), column.Millis(now))...),
		)
	})
}

// Client implements storage.Clients.
func (s *Store) Client(ctx context.Context, id string) (out storage.Client, err error) {
	err = s.do(ctx, "Client", func(ctx context.Context, q querier) (err error) {
		var r column.ClientRow
		var deleted *int64
		err = one(ctx, q, append(r.Dest(), &deleted),
			"SELECT "+column.ClientColumns+", deleted_at FROM clients WHERE id = $1", id)
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
	err = s.do(ctx, "ListClients", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (storage.Client, error) {
			var r column.ClientRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.Client{}, err
			}
			return r.Client()
		}, "SELECT "+column.ClientColumns+" FROM clients WHERE id > $1 AND deleted_at IS NULL ORDER BY id LIMIT $2",
			after, max(limit, 0))
		return err
	})
	return out, err
}

const tombstone = `INSERT INTO clients (id, created_at, deleted_at) VALUES ($1, $2, $2)
ON CONFLICT (id) DO UPDATE SET ` + column.Bury + `coalesce(clients.deleted_at, excluded.deleted_at)`

// DeleteClient implements storage.Clients.
func (s *Store) DeleteClient(ctx context.Context, id string, now time.Time) error {
	return s.tx(ctx, "DeleteClient", func(ctx context.Context, q querier) error {
		if err := all(ctx, q, statement{tombstone, []any{id, column.Millis(now)}}); err != nil {
			return err
		}
		return cut(ctx, q, storage.Selection{ClientID: id}, storage.ByClientDeleted, now)
	})
}

// revoke ends the live grants that match where, whose parameters begin at $4.
func revoke(by storage.RevokedBy, where string, now time.Time, args ...any) statement {
	return statement{
		"UPDATE grants AS g SET revoked_at = $1, sweep_at = least(sweep_at, $2), revoked_by = $3 WHERE revoked_at IS NULL AND NOT " +
			column.IsCut + " AND " + where,
		append([]any{column.Millis(now), column.Millis(now.Add(column.RevokedFor)), string(by)}, args...),
	}
}
