package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// ListGrants implements storage.Grants.
func (s *Store) ListGrants(
	ctx context.Context, userID, clientID, after string, limit int,
) (out []storage.Grant, err error) {
	// One query text per set of filters, so that each can use its own index. The client's index
	// begins with the hash of its id, followed by the grants' ids in order.
	sql := "SELECT " + column.GrantRead + " FROM grants g WHERE id > $1 AND revoked_at IS NULL AND NOT " + column.IsCut
	args, order := []any{after, max(limit, 0)}, "id"
	if clientID != "" {
		args = append(args, clientID)
		sql += " AND client_id = $3 AND " + clientKey("$3")
	}
	switch {
	case userID != "":
		args = append(args, userID)
		p := fmt.Sprintf("$%d", len(args))
		sql += " AND user_id = " + p + " AND " + userKey(p)
	case clientID != "":
		sql += " AND left(id, 11) >= left($1, 11)"
		order = "left(id, 11), id"
	}
	err = s.do(ctx, "ListGrants", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (storage.Grant, error) {
			var r column.GrantRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.Grant{}, err
			}
			return r.Grant()
		}, sql+" ORDER BY "+order+" LIMIT $2", args...)
		return err
	})
	return out, err
}

// ForgetConsent implements storage.Grants.
func (s *Store) ForgetConsent(ctx context.Context, userID, clientID, resource string, now time.Time) error {
	return s.tx(ctx, "ForgetConsent", func(ctx context.Context, q querier) error {
		if userID == "" || clientID == "" || resource == "" {
			return nil // an empty field would select more grants, not fewer
		}
		return cut(ctx, q, storage.Selection{UserID: userID, ClientID: clientID, Resource: resource},
			storage.ByConsent, now)
	})
}
