package sqlite

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// SetRole implements storage.Roles.
func (s *Store) SetRole(ctx context.Context, userID string, role storage.Role) error {
	admin, name := column.RoleValues(role)
	return s.write(ctx, "SetRole", func(c *conn) error {
		n, err := c.exec(column.SetRole, userID, admin, name)
		if err != nil {
			return err
		}
		if n > 0 {
			return all(run(c, "DELETE FROM sessions WHERE user_id = ?", userID))
		}
		var same bool
		if err := c.one([]any{&same}, column.RoleIs, userID, admin, name); err != nil || same {
			return err
		}
		return storage.ErrLast
	})
}
