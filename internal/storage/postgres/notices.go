package postgres

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	insertNotice = `INSERT INTO notices (id, user_id, kind, detail, at)
SELECT $1, $2, $3, $4, $5 WHERE EXISTS (SELECT 1 FROM users WHERE id = $2)`

	forgetNotices = `DELETE FROM notices WHERE id IN
	(SELECT id FROM notices WHERE user_id = $1 ORDER BY at DESC, id DESC OFFSET $2 FOR UPDATE SKIP LOCKED)`

	seeNotices = "UPDATE notices SET seen_at = $1 WHERE user_id = $2 AND seen_at IS NULL AND id = ANY ($3::text[])"
)

// PutNotice implements storage.Notices.
func (s *Store) PutNotice(ctx context.Context, n storage.Notice) error {
	return s.tx(ctx, "PutNotice", func(ctx context.Context, q querier) error {
		err := changed(storage.ErrNotFound)(
			exec(ctx, q, insertNotice, n.ID, n.UserID, n.Kind, n.Detail, column.Millis(n.At)),
		)
		if err != nil {
			return err
		}
		_, err = q.Exec(ctx, forgetNotices, n.UserID, storage.MaxNotices)
		return err
	})
}

// SeeNotices implements storage.Notices.
func (s *Store) SeeNotices(ctx context.Context, userID string, ids []string, now time.Time) error {
	return s.do(ctx, "SeeNotices", func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, seeNotices, column.Millis(now), userID, ids)
		return err
	})
}
