package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// resources implements a verb of storage.Resources.
type resources struct{ db Engine }

// ListResources implements storage.Resources.
func (s resources) ListResources(ctx context.Context) (out []storage.Resource, err error) {
	err = s.db.Read(ctx, "ListResources", func(c Conn) error {
		read := func(row Row) (column.Address, error) { return column.ReadAddress(row) }
		rows, err := each(c, read,
			"SELECT "+column.AddressColumns+" FROM resources ORDER BY created_at, uri")
		if err != nil {
			return err
		}
		out, err = column.Resources(rows)
		return err
	})
	return out, err
}
