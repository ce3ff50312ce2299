package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	insertNotice = `INSERT INTO notices (id, user_id, kind, detail, at)
SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM users WHERE id = ?2)`

	forgetNotices = `DELETE FROM notices WHERE id IN
	(SELECT id FROM notices WHERE user_id = ? ORDER BY at DESC, id DESC LIMIT -1 OFFSET ?)`

	seeNotices = `UPDATE notices SET seen_at = ?1
WHERE user_id = ?2 AND seen_at IS NULL AND id IN (SELECT value FROM json_each(?3))`
)

// PutNotice implements storage.Notices.
func (s *Store) PutNotice(ctx context.Context, n storage.Notice) error {
	return s.write(ctx, "PutNotice", func(c *conn) error {
		err := changed(storage.ErrNotFound)(
			c.exec(insertNotice, n.ID, n.UserID, n.Kind, n.Detail, column.Millis(n.At)),
		)
		if err != nil {
			return err
		}
		_, err = c.exec(forgetNotices, n.UserID, storage.MaxNotices)
		return err
	})
}

// SeeNotices implements storage.Notices.
func (s *Store) SeeNotices(ctx context.Context, userID string, ids []string, now time.Time) error {
	return s.write(ctx, "SeeNotices", func(c *conn) error {
		_, err := c.exec(seeNotices, column.Millis(now), userID, column.List(ids))
		return err
	})
}
