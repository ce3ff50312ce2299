package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

// ListGrants implements storage.Grants.
func (s *Store) ListGrants(
	ctx context.Context, userID, clientID, after string, limit int,
) (out []storage.Grant, err error) {
	// One text for each set of filters, so that each can walk its own index. That of a client
	// begins with the hash of its id and goes on in the order of the grants' ids.
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
	err = s.do(ctx, "list grants", func(ctx context.Context, q querier) (err error) {
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
	return s.tx(ctx, "forget consent", func(ctx context.Context, q querier) error {
		if userID == "" || clientID == "" || resource == "" {
			return nil // an empty field would select more, not less
		}
		return cut(ctx, q, storage.Selection{UserID: userID, ClientID: clientID, Resource: resource},
			storage.ByConsent, now)
	})
}

// AddResource implements storage.Resources.
func (s *Store) AddResource(ctx context.Context, r storage.Resource) error {
	return s.do(ctx, "add resource", func(ctx context.Context, q querier) error {
		return changed(storage.ErrExists)(
			exec(ctx, q,
				"INSERT INTO resources (uri, name, scopes, created_at) VALUES ($1,$2,$3,$4) ON CONFLICT DO NOTHING",
				r.URI, r.Name, column.List(r.Scopes), column.Millis(r.CreatedAt)))
	})
}

// ReplaceResource implements storage.Resources.
func (s *Store) ReplaceResource(ctx context.Context, r storage.Resource) error {
	return s.do(ctx, "replace resource", func(ctx context.Context, q querier) error {
		return changed(storage.ErrNotFound)(
			exec(ctx, q, "UPDATE resources SET name = $1, scopes = $2 WHERE uri = $3", r.Name, column.List(r.Scopes),
				r.URI),
		)
	})
}

// ListResources implements storage.Resources.
func (s *Store) ListResources(ctx context.Context) (out []storage.Resource, err error) {
	err = s.do(ctx, "list resources", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, resource,
			"SELECT uri, name, scopes, created_at FROM resources ORDER BY created_at, uri")
		return err
	})
	return out, err
}

func resource(row pgx.CollectableRow) (r storage.Resource, err error) {
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
	return s.tx(ctx, "remove resource", func(ctx context.Context, q querier) error {
		if err := changed(storage.ErrNotFound)(exec(ctx, q, "DELETE FROM resources WHERE uri = $1", uri)); err != nil {
			return err
		}
		return cut(ctx, q, storage.Selection{Resource: uri}, storage.ByResource, now)
	})
}
