package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// filedApplications implements verbs of storage.Applications.
type filedApplications struct{ db Engine }

// ApplicationClients implements storage.Applications.
func (s filedApplications) ApplicationClients(
	ctx context.Context, key, after string, limit int,
) (out []storage.Client, err error) {
	err = s.db.Read(ctx, "ApplicationClients", func(c Conn) (err error) {
		out, err = Each(c, func(row Row) (storage.Client, error) {
			var r column.ClientRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.Client{}, err
			}
			return r.Client()
		}, "SELECT "+column.ClientColumns+
			" FROM clients WHERE application = $1 AND id > $2 AND deleted_at IS NULL ORDER BY id LIMIT $3", key, after, limit)
		return err
	})
	return out, err
}

// ReleaseApplication implements storage.Applications.
func (s filedApplications) ReleaseApplication(ctx context.Context, key string) error {
	return s.db.Write(ctx, "ReleaseApplication", func(c Conn) error {
		return changed(storage.ErrNotFound)(c.Exec("DELETE FROM application_holds WHERE application = $1", key))
	})
}

// Holds implements storage.Applications.
func (s filedApplications) Holds(ctx context.Context) (out map[string]storage.Hold, err error) {
	err = s.db.Read(ctx, "Holds", func(c Conn) error {
		all, err := Each(c, func(row Row) (storage.Hold, error) {
			var r column.HoldRow
			err := row.Scan(r.Dest()...)
			return r.Hold(), err
		}, column.AllHolds)
		out = make(map[string]storage.Hold, len(all))
		for _, h := range all {
			out[h.Application] = h
		}
		return err
	})
	return out, err
}
