package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	// decideRemote decides a request once: one of N callers changes the row.
	decideRemote = `UPDATE remote_sign_ins SET decided_at = $1, session_hash = $3
WHERE secret_hash = $2 AND decided_at IS NULL AND expires_at > $1`
	approverLives = `SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
WHERE s.hash = $1 AND s.expires_at > $2 AND NOT u.disabled AND NOT ` + column.IsSignedOut

	// collectRemote uses up an approved request once.
	collectRemote = `UPDATE remote_sign_ins SET collected_at = $1
WHERE secret_hash = $2 AND session_hash IS NOT NULL AND collected_at IS NULL AND expires_at > $1
RETURNING session_hash`
	holdAccount = "SELECT id FROM users WHERE id = $1 AND NOT disabled FOR SHARE"
	stillTheirs = " AND s.user_id = $3"
)

// DecideRemoteSignIn implements storage.RemoteSignIns.
func (s *Store) DecideRemoteSignIn(
	ctx context.Context, secret storage.Hash, approver *storage.Hash, now time.Time,
) error {
	return s.tx(ctx, "DecideRemoteSignIn", func(ctx context.Context, q querier) error {
		var by []byte
		if approver != nil {
			by = approver[:]
			if err := one(ctx, q, []any{new(int)}, approverLives, by, column.Millis(now)); err != nil {
				return err
			}
		}
		n, err := exec(ctx, q, decideRemote, column.Millis(now), secret[:], by)
		if err == nil && n == 0 {
			return remoteOver(ctx, q, "decided_at", secret, now)
		}
		return err
	})
}

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
			return remoteOver(ctx, q, "collected_at", secret, now)
		}
		if err == nil {
			err = one(ctx, q, []any{new(int)}, approverLives+stillTheirs+" FOR KEY SHARE OF s", approver,
				column.Millis(now), se.UserID)
		}
		if err != nil {
			return err
		}
		return changed(storage.ErrNotFound)(exec(ctx, q, putSession, append(column.SessionValues(se), "", nil)...))
	})
}

// remoteOver returns why a request was not decided or collected: the column set was already set, or
// the request has expired. storage.ErrNotFound means neither.
func remoteOver(ctx context.Context, q querier, set string, secret storage.Hash, now time.Time) error {
	var done, live bool
	err := one(ctx, q, []any{&done, &live},
		"SELECT "+set+" IS NOT NULL, expires_at > $2::bigint FROM remote_sign_ins WHERE secret_hash = $1",
		secret[:], column.Millis(now))
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && !done && !live:
		return storage.ErrExpired
	case err != nil:
		return err
	case done:
		return storage.ErrSpent
	}
	return storage.ErrNotFound
}
