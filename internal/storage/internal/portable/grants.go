package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// grants implements a verb of storage.Grants.
type grants struct{ db Engine }

// Grant implements storage.Grants.
func (s grants) Grant(ctx context.Context, id string) (g storage.Grant, err error) {
	err = s.db.Read(ctx, "Grant", func(c Conn) error {
		var row column.GrantRow
		err := c.One(row.Dest(), "SELECT "+column.GrantRead+" FROM grants WHERE id = $1", id)
		if err == nil {
			g, err = row.Grant()
		}
		return err
	})
	return g, err
}
