package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// A search reads at most a given number of rows. In the collation C, lower only folds ASCII
// letters, like SQLite.
const (
	searchUsers = "SELECT " + column.UserColumns + " FROM (SELECT " + column.UserColumns + `, name_key FROM users
	WHERE name_key > $1 ORDER BY name_key LIMIT $2) AS looked_at
WHERE strpos(name_key COLLATE "C", $3) > 0 OR strpos(lower(mail COLLATE "C"), $4) > 0
	OR strpos(lower(id COLLATE "C"), $4) > 0 ORDER BY name_key LIMIT $5`
	searchClients = "SELECT " + column.ClientColumns + " FROM (SELECT " + column.ClientColumns + ` FROM clients
	WHERE id > $1 AND deleted_at IS NULL ORDER BY id LIMIT $2) AS looked_at
WHERE strpos(lower(name COLLATE "C"), $3) > 0 OR strpos(lower(id COLLATE "C"), $3) > 0 ORDER BY id LIMIT $4`
	lastUser   = "SELECT name_key FROM users WHERE name_key > $1 ORDER BY name_key LIMIT 2 OFFSET $2"
	lastClient = "SELECT id FROM clients WHERE id > $1 AND deleted_at IS NULL ORDER BY id LIMIT 2 OFFSET $2"
)

// SearchUsers implements storage.Searches.
func (s *Store) SearchUsers(
	ctx context.Context, q storage.Search,
) (out []storage.User, next string, err error) {
	err = s.do(ctx, "SearchUsers", func(ctx context.Context, c querier) (err error) {
		after := column.NameKey(q.After)
		out, err = each(ctx, c, func(row pgx.CollectableRow) (storage.User, error) {
			var r column.UserRow
			err := row.Scan(r.Dest()...)
			return r.User(), err
		}, searchUsers, after, q.Scan, column.NameKey(q.Text), storage.Fold(q.Text), q.Limit)
		next = ""
		if err == nil && len(out) < q.Limit {
			next, err = scanned(ctx, c, lastUser, after, q.Scan)
		}
		return err
	})
	return out, next, err
}

// SearchClients implements storage.Searches.
func (s *Store) SearchClients(
	ctx context.Context, q storage.Search,
) (out []storage.Client, next string, err error) {
	err = s.do(ctx, "SearchClients", func(ctx context.Context, c querier) (err error) {
		out, err = each(ctx, c, func(row pgx.CollectableRow) (storage.Client, error) {
			var r column.ClientRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.Client{}, err
			}
			return r.Client()
		}, searchClients, q.After, q.Scan, storage.Fold(q.Text), q.Limit)
		next = ""
		if err == nil && len(out) < q.Limit {
			next, err = scanned(ctx, c, lastClient, q.After, q.Scan)
		}
		return err
	})
	return out, next, err
}

// scanned returns the key of the last row that a search has read, "" if no row follows it.
func scanned(ctx context.Context, q querier, query, after string, scan int) (string, error) {
	keys, err := each(ctx, q, func(row pgx.CollectableRow) (key string, err error) {
		err = row.Scan(&key)
		return key, err
	}, query, after, scan-1)
	if err != nil || len(keys) < 2 {
		return "", err
	}
	return keys[0], nil
}
