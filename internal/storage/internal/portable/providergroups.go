package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const addProviderGroup = `INSERT INTO provider_groups AS p (group_name, connector, name, added_at)
SELECT name, CAST($2 AS text), CAST($3 AS text), CAST($4 AS bigint) FROM account_groups WHERE name = $1
ON CONFLICT (group_name, connector, name) DO UPDATE SET added_at = p.added_at`

// providerGroups implements storage.ProviderGroups.
type providerGroups struct{ db Engine }

// AddProviderGroup implements storage.ProviderGroups.
func (s providerGroups) AddProviderGroup(ctx context.Context, g storage.ProviderGroup) error {
	return s.db.Transact(ctx, "AddProviderGroup", func(c Conn) error {
		err := changed(storage.ErrNotFound)(
			c.Exec(addProviderGroup, g.Group, g.Connector, g.Name, column.Millis(g.AddedAt)))
		if err != nil {
			return err
		}
		var n int
		if err := c.One([]any{&n}, "SELECT count(*) FROM provider_groups"); err != nil {
			return err
		}
		if n > storage.MaxProviderGroups {
			return storage.ErrFull
		}
		return nil
	})
}

// RemoveProviderGroup implements storage.ProviderGroups.
func (s providerGroups) RemoveProviderGroup(ctx context.Context, g storage.ProviderGroup) error {
	return s.db.Write(ctx, "RemoveProviderGroup", func(c Conn) error {
		return changed(storage.ErrNotFound)(c.Exec(
			"DELETE FROM provider_groups WHERE group_name = $1 AND connector = $2 AND name = $3",
			g.Group, g.Connector, g.Name))
	})
}

// ListProviderGroups implements storage.ProviderGroups.
func (s providerGroups) ListProviderGroups(ctx context.Context) (out []storage.ProviderGroup, err error) {
	err = s.db.Read(ctx, "ListProviderGroups", func(c Conn) (err error) {
		out, err = Each(c, column.ReadProviderGroup, column.ListProviderGroups)
		return err
	})
	return out, err
}
