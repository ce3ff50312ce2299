package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	// decideRemote decides a request once: one of N callers changes the row.
	decideRemote = `UPDATE remote_sign_ins SET decided_at = ?1, session_hash = ?3
WHERE secret_hash = ?2 AND decided_at IS NULL AND expires_at > ?1`
	approverLives = `SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
WHERE s.hash = ?1 AND s.expires_at > ?2 AND NOT u.disabled AND NOT ` + column.IsSignedOut

	// collectRemote uses up an approved request once.
	collectRemote = `UPDATE remote_sign_ins SET collected_at = ?1
WHERE secret_hash = ?2 AND session_hash IS NOT NULL AND collected_at IS NULL AND expires_at > ?1
RETURNING session_hash`
	stillTheirs = " AND s.user_id = ?3"
)

// DecideRemoteSignIn implements storage.RemoteSignIns.
func (s *Store) DecideRemoteSignIn(
	ctx context.Context, secret storage.Hash, approver *storage.Hash, now time.Time,
) error {
	return s.write(ctx, "DecideRemoteSignIn", func(c *conn) error {
		var by []byte
		if approver != nil {
			by = approver[:]
			if err := c.one([]any{new(int)}, approverLives, by, column.Millis(now)); err != nil {
				return err
			}
		}
		n, err := c.exec(decideRemote, column.Millis(now), secret[:], by)
		if err == nil && n == 0 {
			return remoteOver(c, "decided_at", secret, now)
		}
		return err
	})
}

// CollectRemoteSignIn implements storage.RemoteSignIns.
func (s *Store) CollectRemoteSignIn(
	ctx context.Context, secret storage.Hash, se storage.Session, now time.Time,
) error {
	return s.write(ctx, "CollectRemoteSignIn", func(c *conn) error {
		var approver []byte
		err := c.one([]any{&approver}, collectRemote, column.Millis(now), secret[:])
		if errors.Is(err, storage.ErrNotFound) {
			return remoteOver(c, "collected_at", secret, now)
		}
		if err == nil {
			err = c.one([]any{new(int)}, approverLives+stillTheirs, approver, column.Millis(now), se.UserID)
		}
		if err != nil {
			return err
		}
		return changed(storage.ErrNotFound)(c.exec(putSession, append(column.SessionValues(se), "", nil)...))
	})
}

// remoteOver returns why a request was not decided or collected: the column set was already set, or
// the request has expired. storage.ErrNotFound means neither.
func remoteOver(c *conn, set string, secret storage.Hash, now time.Time) error {
	var done, live bool
	err := c.one([]any{&done, &live},
		"SELECT "+set+" IS NOT NULL, expires_at > ?2 FROM remote_sign_ins WHERE secret_hash = ?1",
		secret[:], column.Millis(now))
	switch {
	case errors.Is(err, storage.ErrNotFound), err == nil && !done && !live:
		return storage.ErrExpired
	case err != nil:
		return err
	case done:
		return storage.ErrSpent
	}
	return storage.ErrNotFound
}
