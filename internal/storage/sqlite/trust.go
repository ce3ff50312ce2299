package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const markTrust = "INSERT INTO trust_entries (" + column.TrustColumns + `) VALUES (?,?,?,?,?,?)
ON CONFLICT (id) DO UPDATE SET disabled_at = coalesce(trust_entries.disabled_at, excluded.disabled_at)`

// DisableTrust implements storage.TrustEntries.
func (s *Store) DisableTrust(ctx context.Context, id string, now time.Time) error {
	return s.write(ctx, "DisableTrust", func(c *conn) error {
		return all(
			run(c, markTrust, column.TrustMark(id, now)...),
			cutTrust(c, id, now),
		)
	})
}

// EnableTrust implements storage.TrustEntries.
func (s *Store) EnableTrust(ctx context.Context, id string) error {
	return s.write(ctx, "EnableTrust", func(c *conn) error {
		n, err := c.exec("DELETE FROM trust_entries WHERE id = ? AND kind = ''", id)
		if err != nil || n > 0 {
			return err
		}
		return changed(storage.ErrNotFound)(c.exec("UPDATE trust_entries SET disabled_at = NULL WHERE id = ?", id))
	})
}

// RemoveTrust implements storage.TrustEntries.
func (s *Store) RemoveTrust(ctx context.Context, id string, now time.Time) error {
	return s.write(ctx, "RemoveTrust", func(c *conn) error {
		err := changed(storage.ErrNotFound)(c.exec("DELETE FROM trust_entries WHERE id = ?", id))
		if err != nil {
			return err
		}
		return cutTrust(c, id, now)()
	})
}
