package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

// Identities implements storage.Identities.
func (s *Store) Identities(ctx context.Context, userID string) (out []storage.Identity, err error) {
	err = s.read(ctx, "identities", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.Identity, error) {
			var r column.IdentityRow
			err := row.Scan(r.Dest()...)
			return r.Identity(), err
		}, "SELECT "+column.IdentityColumns+
			" FROM identities WHERE user_id = ? ORDER BY created_at, connector, subject", userID)
		return err
	})
	return out, err
}

const waysIn = `SELECT u.password_hash <> '', count(*) FILTER (WHERE i.connector = ?2 AND i.subject = ?3), count(*)
FROM users u JOIN identities i ON i.user_id = u.id WHERE u.id = ?1 GROUP BY u.id`

// Unlink implements storage.Identities.
func (s *Store) Unlink(
	ctx context.Context, userID, connector, subject, reason string, now time.Time,
) (ended []storage.Upstream, err error) {
	err = s.write(ctx, "unlink", func(c *conn) error {
		var password bool
		var this, all int
		err := c.one([]any{&password, &this, &all}, waysIn, userID, connector, subject)
		switch {
		case err != nil:
			return err
		case this == 0:
			return storage.ErrNotFound
		case all == 1 && !password:
			return storage.ErrSpent
		}
		_, err = c.exec("DELETE FROM identities WHERE connector = ? AND subject = ?", connector, subject)
		if err != nil {
			return err
		}
		ended, err = endUpstreams(c, "user_id = ? AND connector = ? AND subject = ?",
			[]any{userID, connector, subject}, reason, now)
		return err
	})
	return ended, err
}
