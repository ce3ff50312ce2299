package sqlite

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const untie = "DELETE FROM identities WHERE user_id = ?1 AND connector = ?5 AND subject = ?6 AND NOT EXISTS (" +
	column.HomeIdentity + "?1 AND h.connector = ?5 AND h.subject = ?6) AND (" + aPassword +
	" OR " + aProvider + " AND (connector <> ?5 OR subject <> ?6)) OR " + aPasskey + "))"

// Unlink implements storage.Identities.
func (s *Store) Unlink(ctx context.Context, u storage.Untie) (ended []storage.Upstream, err error) {
	err = s.change(ctx, "Unlink", u.UserID, u.In, func(c *conn) error {
		n, err := c.exec(untie, append(letIn(u.UserID, u.By), u.Connector, u.Subject)...)
		err = lastOf(c, n, err, "SELECT 1 FROM identities WHERE user_id = ? AND connector = ? AND subject = ?",
			u.UserID, u.Connector, u.Subject)
		if err != nil {
			return err
		}
		ended, err = endUpstreams(c, "user_id = ? AND connector = ? AND subject = ?",
			[]any{u.UserID, u.Connector, u.Subject}, u.Reason, u.Now)
		return err
	})
	return ended, err
}
