package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// identities implements storage.Identities, except Unlink.
type identities struct{ db Engine }

// Identities implements storage.Identities.
func (s identities) Identities(ctx context.Context, userID string) (out []storage.Identity, err error) {
	err = s.db.Read(ctx, "Identities", func(c Conn) (err error) {
		out, err = Each(c, func(row Row) (storage.Identity, error) {
			var r column.IdentityRow
			err := row.Scan(r.Dest()...)
			return r.Identity(), err
		}, "SELECT "+column.IdentityRead+
			" FROM identities i WHERE i.user_id = $1 ORDER BY i.created_at, i.connector, i.subject", userID)
		return err
	})
	return out, err
}
