package sqlite

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// A search reads at most a given number of rows. SQLite's lower only folds ASCII letters.
const (
	searchUsers = "SELECT " + column.UserColumns + " FROM (SELECT " + column.UserColumns + `, name_key FROM users
	WHERE name_key > ?1 ORDER BY name_key LIMIT ?2)
WHERE instr(name_key, ?3) OR instr(lower(mail), ?4) OR instr(lower(id), ?4) ORDER BY name_key LIMIT ?5`
	searchClients = "SELECT " + column.ClientColumns + " FROM (SELECT " + column.ClientColumns + ` FROM clients
	WHERE id > ?1 AND deleted_at IS NULL ORDER BY id LIMIT ?2)
WHERE instr(lower(name), ?3) OR instr(lower(id), ?3) ORDER BY id LIMIT ?4`
	lastUser   = "SELECT name_key FROM users WHERE name_key > ? ORDER BY name_key LIMIT 2 OFFSET ?"
	lastClient = "SELECT id FROM clients WHERE id > ? AND deleted_at IS NULL ORDER BY id LIMIT 2 OFFSET ?"
)

// SearchUsers implements storage.Searches.
func (s *Store) SearchUsers(
	ctx context.Context, q storage.Search,
) (out []storage.User, next string, err error) {
	err = s.read(ctx, "SearchUsers", func(c *conn) (err error) {
		after := column.NameKey(q.After)
		out, err = each(c, func(row scanner) (storage.User, error) {
			var r column.UserRow
			err := row.Scan(r.Dest()...)
			return r.User(), err
		}, searchUsers, after, q.Scan, column.NameKey(q.Text), storage.Fold(q.Text), q.Limit)
		next = ""
		if err == nil && len(out) < q.Limit {
			next, err = scanned(c, lastUser, after, q.Scan)
		}
		return err
	})
	return out, next, err
}

// SearchClients implements storage.Searches.
func (s *Store) SearchClients(
	ctx context.Context, q storage.Search,
) (out []storage.Client, next string, err error) {
	err = s.read(ctx, "SearchClients", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.Client, error) {
			var r column.ClientRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.Client{}, err
			}
			return r.Client()
		}, searchClients, q.After, q.Scan, storage.Fold(q.Text), q.Limit)
		next = ""
		if err == nil && len(out) < q.Limit {
			next, err = scanned(c, lastClient, q.After, q.Scan)
		}
		return err
	})
	return out, next, err
}

// scanned returns the key of the last row that a search has read, "" if no row follows it.
func scanned(c *conn, query, after string, scan int) (string, error) {
	keys, err := each(c, func(row scanner) (key string, err error) {
		err = row.Scan(&key)
		return key, err
	}, query, after, scan-1)
	if err != nil || len(keys) < 2 {
		return "", err
	}
	return keys[0], nil
}
