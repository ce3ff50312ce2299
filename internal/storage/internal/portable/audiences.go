package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// audiences implements storage.Audiences.
type audiences struct{ db Engine }

// AddAudience implements storage.Audiences.
func (s audiences) AddAudience(ctx context.Context, a storage.Audience) error {
	return s.db.Write(ctx, "AddAudience", func(c Conn) error {
		values, err := column.AudienceValues(a)
		if err != nil {
			return err
		}
		return changed(storage.ErrExists)(c.Exec(
			"INSERT INTO audiences ("+column.AudienceColumns+") VALUES ($1,$2,$3) ON CONFLICT DO NOTHING", values...))
	})
}

// ListAudiences implements storage.Audiences.
func (s audiences) ListAudiences(ctx context.Context) (out []storage.Audience, err error) {
	err = s.db.Read(ctx, "ListAudiences", func(c Conn) (err error) {
		out, err = Each(c, column.ReadAudience, "SELECT "+column.AudienceColumns+" FROM audiences ORDER BY issuer")
		return err
	})
	return out, err
}

// RemoveAudience implements storage.Audiences.
func (s audiences) RemoveAudience(ctx context.Context, issuer string) error {
	return s.db.Write(ctx, "RemoveAudience", func(c Conn) error {
		return changed(storage.ErrNotFound)(c.Exec("DELETE FROM audiences WHERE issuer = $1", issuer))
	})
}
