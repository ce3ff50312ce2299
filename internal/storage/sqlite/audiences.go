package sqlite

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// AddAudience implements storage.Audiences.
func (s *Store) AddAudience(ctx context.Context, a storage.Audience) error {
	return s.write(ctx, "AddAudience", func(c *conn) error {
		values, err := column.AudienceValues(a)
		if err != nil {
			return err
		}
		return changed(storage.ErrExists)(c.exec(
			"INSERT INTO audiences ("+column.AudienceColumns+") VALUES (?,?,?) ON CONFLICT DO NOTHING", values...))
	})
}

// ListAudiences implements storage.Audiences.
func (s *Store) ListAudiences(ctx context.Context) (out []storage.Audience, err error) {
	err = s.read(ctx, "ListAudiences", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.Audience, error) { return column.ReadAudience(row) },
			"SELECT "+column.AudienceColumns+" FROM audiences ORDER BY issuer")
		return err
	})
	return out, err
}

// RemoveAudience implements storage.Audiences.
func (s *Store) RemoveAudience(ctx context.Context, issuer string) error {
	return s.write(ctx, "RemoveAudience", func(c *conn) error {
		return changed(storage.ErrNotFound)(c.exec("DELETE FROM audiences WHERE issuer = ?", issuer))
	})
}
