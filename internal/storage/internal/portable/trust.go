package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const addTrust = "INSERT INTO trust_entries (" + column.TrustColumns + ") VALUES ($1,$2,$3,$4,$5,$6) ON CONFLICT DO NOTHING"

// trustEntries implements verbs of storage.TrustEntries.
type trustEntries struct{ db Engine }

// AddTrust implements storage.TrustEntries.
func (s trustEntries) AddTrust(ctx context.Context, e storage.TrustEntry) error {
	return s.db.Transact(ctx, "AddTrust", func(c Conn) error {
		return changed(storage.ErrExists)(c.Exec(addTrust, column.TrustValues(e)...))
	})
}

// ListTrust implements storage.TrustEntries.
func (s trustEntries) ListTrust(ctx context.Context) (out []storage.TrustEntry, err error) {
	err = s.db.Read(ctx, "ListTrust", func(c Conn) error {
		out, err = Each(c, column.ReadTrust, "SELECT "+column.TrustColumns+" FROM trust_entries ORDER BY created_at, id")
		return err
	})
	return out, err
}
