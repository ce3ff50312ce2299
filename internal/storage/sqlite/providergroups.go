package sqlite

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const addProviderGroup = `INSERT INTO provider_groups (group_name, connector, name, added_at)
SELECT name, ?2, ?3, ?4 FROM account_groups WHERE name = ?1
ON CONFLICT (group_name, connector, name) DO UPDATE SET added_at = added_at`

// AddProviderGroup implements storage.ProviderGroups.
func (s *Store) AddProviderGroup(ctx context.Context, g storage.ProviderGroup) error {
	return s.write(ctx, "AddProviderGroup", func(c *conn) error {
		err := changed(storage.ErrNotFound)(
			c.exec(addProviderGroup, g.Group, g.Connector, g.Name, column.Millis(g.AddedAt)))
		if err != nil {
			return err
		}
		var n int
		if err := c.one([]any{&n}, "SELECT count(*) FROM provider_groups"); err != nil {
			return err
		}
		if n > storage.MaxProviderGroups {
			return storage.ErrFull
		}
		return nil
	})
}

// RemoveProviderGroup implements storage.ProviderGroups.
func (s *Store) RemoveProviderGroup(ctx context.Context, g storage.ProviderGroup) error {
	return s.write(ctx, "RemoveProviderGroup", func(c *conn) error {
		return changed(storage.ErrNotFound)(
			c.exec("DELETE FROM provider_groups WHERE group_name = ? AND connector = ? AND name = ?",
				g.Group, g.Connector, g.Name))
	})
}

// ListProviderGroups implements storage.ProviderGroups.
func (s *Store) ListProviderGroups(ctx context.Context) (out []storage.ProviderGroup, err error) {
	err = s.read(ctx, "ListProviderGroups", func(c *conn) (err error) {
		read := func(row scanner) (storage.ProviderGroup, error) { return column.ReadProviderGroup(row) }
		out, err = each(c, read, column.ListProviderGroups)
		return err
	})
	return out, err
}
