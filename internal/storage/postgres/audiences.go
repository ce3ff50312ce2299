package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// AddAudience implements storage.Audiences.
func (s *Store) AddAudience(ctx context.Context, a storage.Audience) error {
	return s.do(ctx, "AddAudience", func(ctx context.Context, q querier) error {
		values, err := column.AudienceValues(a)
		if err != nil {
			return err
		}
		return changed(storage.ErrExists)(exec(ctx, q,
			"INSERT INTO audiences ("+column.AudienceColumns+") VALUES ($1,$2,$3) ON CONFLICT DO NOTHING", values...))
	})
}

// ListAudiences implements storage.Audiences.
func (s *Store) ListAudiences(ctx context.Context) (out []storage.Audience, err error) {
	err = s.do(ctx, "ListAudiences", func(ctx context.Context, q querier) (err error) {
		read := func(row pgx.CollectableRow) (storage.Audience, error) { return column.ReadAudience(row) }
		out, err = each(ctx, q, read, "SELECT "+column.AudienceColumns+" FROM audiences ORDER BY issuer")
		return err
	})
	return out, err
}

// RemoveAudience implements storage.Audiences.
func (s *Store) RemoveAudience(ctx context.Context, issuer string) error {
	return s.do(ctx, "RemoveAudience", func(ctx context.Context, q querier) error {
		return changed(storage.ErrNotFound)(exec(ctx, q, "DELETE FROM audiences WHERE issuer = $1", issuer))
	})
}
