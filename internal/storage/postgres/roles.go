package postgres

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// SetRole implements storage.Roles. The setup's lock lets one change at a time check that an
// administrator remains.
func (s *Store) SetRole(ctx context.Context, userID string, role storage.Role) error {
	admin, name := column.RoleValues(role)
	return s.tx(ctx, "SetRole", func(ctx context.Context, q querier) error {
		if _, err := lockSetup(ctx, q); err != nil {
			return err
		}
		n, err := exec(ctx, q, column.SetRole, userID, admin, name)
		if err != nil {
			return err
		}
		if n > 0 {
			return all(ctx, q, statement{"DELETE FROM sessions WHERE user_id = $1", []any{userID}})
		}
		var same bool
		if err := one(ctx, q, []any{&same}, column.RoleIs, userID, admin, name); err != nil || same {
			return err
		}
		return storage.ErrLast
	})
}
