package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// ListGrants implements storage.Grants.
func (s *Store) ListGrants(
	ctx context.Context, userID, clientID, after string, limit int,
) (out []storage.Grant, err error) {
	// One query text per set of filters, so that each can use its own index. The client's index
	// begins with parts of its id, followed by the grants' ids in order.
	query := "SELECT " + column.GrantRead + " FROM grants g WHERE id > ?1 AND revoked_at IS NULL AND NOT " +
		column.IsCut
	args, order := []any{after, max(limit, 0)}, "id"
	if clientID != "" {
		args = append(args, clientID)
		query += " AND client_id = ?3 AND " + clientKey("?3")
	}
	switch {
	case userID != "":
		args = append(args, userID)
		p := fmt.Sprintf("?%d", len(args))
		query += " AND user_id = " + p + " AND " + userKey(p)
	case clientID != "":
		query += " AND substr(id, 1, 11) >= substr(?1, 1, 11)"
		order = "substr(id, 1, 11), id"
	}
	err = s.read(ctx, "ListGrants", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.Grant, error) {
			var r column.GrantRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.Grant{}, err
			}
			return r.Grant()
		}, query+" ORDER BY "+order+" LIMIT ?2", args...)
		return err
	})
	return out, err
}

// ForgetConsent implements storage.Grants.
func (s *Store) ForgetConsent(ctx context.Context, userID, clientID, resource string, now time.Time) error {
	return s.write(ctx, "ForgetConsent", func(c *conn) error {
		if userID == "" || clientID == "" || resource == "" {
			return nil // an empty field would select more grants, not fewer
		}
		return cut(c, storage.Selection{UserID: userID, ClientID: clientID, Resource: resource}, storage.ByConsent, now)
	})
}
