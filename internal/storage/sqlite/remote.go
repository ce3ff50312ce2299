package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

const (
	// collectRemote uses up an approved request once.
	collectRemote = `UPDATE remote_sign_ins SET collected_at = ?1
WHERE secret_hash = ?2 AND session_hash IS NOT NULL AND collected_at IS NULL AND expires_at > ?1
RETURNING session_hash`
	stillTheirs = " AND s.user_id = $3"
)

// CollectRemoteSignIn implements storage.RemoteSignIns.
func (s *Store) CollectRemoteSignIn(
	ctx context.Context, secret storage.Hash, se storage.Session, now time.Time,
) error {
	return s.write(ctx, "CollectRemoteSignIn", func(c *conn) error {
		var approver []byte
		err := c.one([]any{&approver}, collectRemote, column.Millis(now), secret[:])
		if errors.Is(err, storage.ErrNotFound) {
			return portable.RemoteOver(portableConn{c}, "collected_at", secret, now)
		}
		if err == nil {
			err = c.one([]any{new(int)}, column.ApproverLives+stillTheirs, approver, column.Millis(now), se.UserID)
		}
		if err != nil {
			return err
		}
		return changed(storage.ErrNotFound)(c.exec(putSession, append(column.SessionValues(se), "", nil)...))
	})
}
