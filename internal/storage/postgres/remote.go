package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

const (
	// collectRemote uses up an approved request once.
	collectRemote = `UPDATE remote_sign_ins SET collected_at = $1
WHERE secret_hash = $2 AND session_hash IS NOT NULL AND collected_at IS NULL AND expires_at > $1
RETURNING session_hash`
	holdAccount = "SELECT id FROM users WHERE id = $1 AND NOT disabled FOR SHARE"
	stillTheirs = " AND s.user_id = $3"
)

// CollectRemoteSignIn implements storage.RemoteSignIns. It locks the account before the approving
// session. Every verb that ends all sessions of a user also locks the account first. So it either
// ends the new session, or has already ended the approving one.
func (s *Store) CollectRemoteSignIn(
	ctx context.Context, secret storage.Hash, se storage.Session, now time.Time,
) error {
	return s.tx(ctx, "CollectRemoteSignIn", func(ctx context.Context, q querier) error {
		if err := one(ctx, q, []any{new(string)}, holdAccount, se.UserID); err != nil {
			return err
		}
		var approver []byte
		err := one(ctx, q, []any{&approver}, collectRemote, column.Millis(now), secret[:])
		if errors.Is(err, pgx.ErrNoRows) {
			return portable.RemoteOver(portableConn{ctx, q}, "collected_at", secret, now)
		}
		if err == nil {
			err = one(ctx, q, []any{new(int)}, column.ApproverLives+stillTheirs+" FOR KEY SHARE OF s", approver,
				column.Millis(now), se.UserID)
		}
		if err != nil {
			return err
		}
		return changed(storage.ErrNotFound)(exec(ctx, q, putSession, append(column.SessionValues(se), "", nil)...))
	})
}
