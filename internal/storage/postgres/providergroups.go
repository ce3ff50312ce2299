package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const addProviderGroup = `INSERT INTO provider_groups AS p (group_name, connector, name, added_at)
SELECT name, $2::text, $3::text, $4::bigint FROM account_groups WHERE name = $1
ON CONFLICT (group_name, connector, name) DO UPDATE SET added_at = p.added_at`

// AddProviderGroup implements storage.ProviderGroups.
func (s *Store) AddProviderGroup(ctx context.Context, g storage.ProviderGroup) error {
	return s.tx(ctx, "AddProviderGroup", func(ctx context.Context, q querier) error {
		err := changed(storage.ErrNotFound)(
			exec(ctx, q, addProviderGroup, g.Group, g.Connector, g.Name, column.Millis(g.AddedAt)))
		if err != nil {
			return err
		}
		var n int
		if err := one(ctx, q, []any{&n}, "SELECT count(*) FROM provider_groups"); err != nil {
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
	return s.do(ctx, "RemoveProviderGroup", func(ctx context.Context, q querier) error {
		return changed(storage.ErrNotFound)(exec(ctx, q,
			"DELETE FROM provider_groups WHERE group_name = $1 AND connector = $2 AND name = $3",
			g.Group, g.Connector, g.Name))
	})
}

// ListProviderGroups implements storage.ProviderGroups.
func (s *Store) ListProviderGroups(ctx context.Context) (out []storage.ProviderGroup, err error) {
	err = s.do(ctx, "ListProviderGroups", func(ctx context.Context, q querier) (err error) {
		read := func(row pgx.CollectableRow) (storage.ProviderGroup, error) { return column.ReadProviderGroup(row) }
		out, err = each(ctx, q, read, column.ListProviderGroups)
		return err
	})
	return out, err
}
