package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

// Identities implements storage.Identities.
func (s *Store) Identities(ctx context.Context, userID string) (out []storage.Identity, err error) {
	err = s.do(ctx, "identities", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (storage.Identity, error) {
			var r column.IdentityRow
			err := row.Scan(r.Dest()...)
			return r.Identity(), err
		}, "SELECT "+column.IdentityColumns+
			" FROM identities WHERE user_id = $1 ORDER BY created_at, connector, subject", userID)
		return err
	})
	return out, err
}

const (
	// holdUser keeps two identities of a user from being untied at once.
	holdUser = "SELECT password_hash <> '' FROM users WHERE id = $1 FOR NO KEY UPDATE"

	waysIn = `SELECT count(*) FILTER (WHERE connector = $2 AND subject = $3), count(*) FROM identities WHERE user_id = $1`
)

// Unlink implements storage.Identities.
func (s *Store) Unlink(
	ctx context.Context, userID, connector, subject, reason string, now time.Time,
) (ended []storage.Upstream, err error) {
	err = s.tx(ctx, "unlink", func(ctx context.Context, q querier) error {
		var password bool
		if err := one(ctx, q, []any{&password}, holdUser, userID); err != nil {
			return err
		}
		var this, all int
		if err := one(ctx, q, []any{&this, &all}, waysIn, userID, connector, subject); err != nil {
			return err
		}
		switch {
		case this == 0:
			return storage.ErrNotFound
		case all == 1 && !password:
			return storage.ErrSpent
		}
		_, err := q.Exec(ctx, "DELETE FROM identities WHERE user_id = $1 AND connector = $2 AND subject = $3", userID,
			connector, subject)
		if err != nil {
			return err
		}
		ended, err = endUpstreams(ctx, q, "user_id = $1 AND connector = $2 AND subject = $3",
			[]any{userID, connector, subject}, reason, now)
		return err
	})
	return ended, err
}
