package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// resources implements verbs of storage.Resources.
type resources struct{ db Engine }

// AddResource implements storage.Resources.
func (s resources) AddResource(ctx context.Context, r storage.Resource) error {
	return s.db.Transact(ctx, "AddResource", func(c Conn) error { return AddAddresses(c, column.Addresses(r)) })
}

// AddAddresses stores rows of a resource as a part of another verb.
func AddAddresses(c Conn, rows []column.Address) error {
	for _, row := range rows {
		err := changed(storage.ErrExists)(c.Exec(
			"INSERT INTO resources ("+column.AddressColumns+") VALUES ($1,$2,$3,$4,$5,$6,$7,$8) ON CONFLICT DO NOTHING",
			row.Values()...))
		if err != nil {
			return err
		}
	}
	return nil
}

// ListResources implements storage.Resources.
func (s resources) ListResources(ctx context.Context) (out []storage.Resource, err error) {
	err = s.db.Read(ctx, "ListResources", func(c Conn) error {
		read := func(row Row) (column.Address, error) { return column.ReadAddress(row) }
		rows, err := Each(c, read,
			"SELECT "+column.AddressColumns+" FROM resources ORDER BY created_at, uri")
		if err != nil {
			return err
		}
		out, err = column.Resources(rows)
		return err
	})
	return out, err
}
