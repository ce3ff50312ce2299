package portable

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const replaceClient = "INSERT INTO clients (" + column.ClientColumns + `, replaced_at) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15)
ON CONFLICT (id) DO UPDATE SET ` + column.ClientReplacement + " WHERE clients.deleted_at IS NULL"

// clients implements storage.Clients.
type clients struct{ db Engine }

// PutClient implements storage.Clients.
func (s clients) PutClient(ctx context.Context, cl storage.Client) error {
	return s.db.Write(ctx, "PutClient", func(c Conn) error {
		return changed(storage.ErrExists)(c.Exec(column.InsertClient, column.ClientValues(cl)...))
	})
}

// ReplaceClient implements storage.Clients.
func (s clients) ReplaceClient(ctx context.Context, cl storage.Client, now time.Time) error {
	return s.db.Write(ctx, "ReplaceClient", func(c Conn) error {
		return changed(storage.ErrRevoked)(
			c.Exec(replaceClient, append(column.ClientValues(cl), column.Millis(now))...),
		)
	})
}

// Client implements storage.Clients.
func (s clients) Client(ctx context.Context, id string) (out storage.Client, err error) {
	err = s.db.Read(ctx, "Client", func(c Conn) (err error) {
		var r column.ClientRow
		var deleted *int64
		err = c.One(append(r.Dest(), &deleted),
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
func (s clients) ListClients(ctx context.Context, after string, limit int) (out []storage.Client, err error) {
	err = s.db.Read(ctx, "ListClients", func(c Conn) (err error) {
		out, err = Each(c, func(row Row) (storage.Client, error) {
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
