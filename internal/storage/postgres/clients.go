package postgres

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

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
