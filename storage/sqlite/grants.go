package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

// ListGrants implements storage.Grants.
func (s *Store) ListGrants(
	ctx context.Context, userID, clientID, after string, limit int,
) (out []storage.Grant, err error) {
	// One text for each set of filters, so that each can walk its own index. That of a client
	// begins with parts of its id and goes on in the order of the grants' ids.
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
	err = s.read(ctx, "list grants", func(c *conn) (err error) {
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
	return s.write(ctx, "forget consent", func(c *conn) error {
		if userID == "" || clientID == "" || resource == "" {
			return nil // an empty field would select more, not less
		}
		return cut(c, storage.Selection{UserID: userID, ClientID: clientID, Resource: resource}, storage.ByConsent, now)
	})
}

// AddResource implements storage.Resources.
func (s *Store) AddResource(ctx context.Context, r storage.Resource) error {
	return s.write(ctx, "add resource", func(c *conn) error {
		return changed(storage.ErrExists)(
			c.exec("INSERT INTO resources (uri, name, scopes, created_at) VALUES (?,?,?,?) ON CONFLICT DO NOTHING",
				r.URI, r.Name, column.List(r.Scopes), column.Millis(r.CreatedAt)))
	})
}

// ReplaceResource implements storage.Resources.
func (s *Store) ReplaceResource(ctx context.Context, r storage.Resource) error {
	return s.write(ctx, "replace resource", func(c *conn) error {
		return changed(storage.ErrNotFound)(
			c.exec("UPDATE resources SET name = ?, scopes = ? WHERE uri = ?", r.Name, column.List(r.Scopes), r.URI),
		)
	})
}

// ListResources implements storage.Resources.
func (s *Store) ListResources(ctx context.Context) (out []storage.Resource, err error) {
	err = s.read(ctx, "list resources", func(c *conn) (err error) {
		out, err = each(c, resource, "SELECT uri, name, scopes, created_at FROM resources ORDER BY created_at, uri")
		return err
	})
	return out, err
}

func resource(row scanner) (r storage.Resource, err error) {
	var scopes string
	var created int64
	if err := row.Scan(&r.URI, &r.Name, &scopes, &created); err != nil {
		return r, err
	}
	r.CreatedAt = column.Time(created)
	r.Scopes, err = column.ParseList[storage.ScopeText](scopes)
	return r, err
}

// RemoveResource implements storage.Resources.
func (s *Store) RemoveResource(ctx context.Context, uri string, now time.Time) error {
	return s.write(ctx, "remove resource", func(c *conn) error {
		if err := changed(storage.ErrNotFound)(c.exec("DELETE FROM resources WHERE uri = ?", uri)); err != nil {
			return err
		}
		return cut(c, storage.Selection{Resource: uri}, storage.ByResource, now)
	})
}
