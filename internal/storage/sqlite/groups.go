package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putRule = `INSERT INTO access_rules (resource, subject, user_id, group_name, scopes, all_scopes, set_at,
	approve)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
WHERE (?3 IS NULL OR EXISTS (SELECT 1 FROM users WHERE id = ?3))
	AND (?4 IS NULL OR EXISTS (SELECT 1 FROM account_groups WHERE name = ?4))
ON CONFLICT (resource, subject) DO UPDATE
SET scopes = excluded.scopes, all_scopes = excluded.all_scopes, set_at = excluded.set_at,
	approve = excluded.approve`

	listRules = "SELECT " + column.RuleColumns +
		" FROM access_rules r LEFT JOIN users u ON u.id = r.user_id ORDER BY r.resource, r.subject"

	groupMembers = `SELECT u.id, u.name, m.added_at FROM group_members m JOIN users u ON u.id = m.user_id
WHERE m.group_name = ? AND u.name_key > ? ORDER BY u.name_key LIMIT ?`

	addMember = `INSERT INTO group_members (group_name, user_id, added_at)
SELECT g.name, u.id, ?3 FROM account_groups g, users u WHERE g.name = ?1 AND u.id = ?2
ON CONFLICT (group_name, user_id) DO UPDATE SET added_at = added_at`
)

// CreateGroup implements storage.Groups.
func (s *Store) CreateGroup(ctx context.Context, g storage.Group) error {
	return s.write(ctx, "CreateGroup", func(c *conn) error {
		var n int
		if err := c.one([]any{&n}, "SELECT count(*) FROM account_groups"); err != nil {
			return err
		}
		if n >= storage.MaxGroups {
			return storage.ErrFull
		}
		return changed(storage.ErrExists)(
			c.exec("INSERT INTO account_groups (name, description, created_at) VALUES (?,?,?) ON CONFLICT DO NOTHING",
				g.Name, g.Description, column.Millis(g.CreatedAt)))
	})
}

// DeleteGroup implements storage.Groups.
func (s *Store) DeleteGroup(ctx context.Context, name string) error {
	return s.write(ctx, "DeleteGroup", func(c *conn) error {
		var named bool
		err := c.one([]any{&named}, "SELECT EXISTS (SELECT 1 FROM access_rules WHERE group_name = ?)", name)
		if err != nil {
			return err
		}
		if named {
			return storage.ErrInUse
		}
		return changed(storage.ErrNotFound)(c.exec("DELETE FROM account_groups WHERE name = ?", name))
	})
}

// ListGroups implements storage.Groups.
func (s *Store) ListGroups(ctx context.Context) (out []storage.Group, err error) {
	err = s.read(ctx, "ListGroups", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.Group, error) { return column.ReadGroup(row) }, column.ListGroups)
		return err
	})
	return out, err
}

// GroupMembers implements storage.Groups.
func (s *Store) GroupMembers(ctx context.Context, group, after string, limit int) (out []storage.Member, err error) {
	err = s.read(ctx, "GroupMembers", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.Member, error) { return column.ReadMember(row) },
			groupMembers, group, column.NameKey(after), limit)
		return err
	})
	return out, err
}

// AddMember implements storage.Groups.
func (s *Store) AddMember(ctx context.Context, group, userID string, now time.Time) error {
	return s.write(ctx, "AddMember", func(c *conn) error {
		return changed(storage.ErrNotFound)(c.exec(addMember, group, userID, column.Millis(now)))
	})
}

// RemoveMember implements storage.Groups.
func (s *Store) RemoveMember(ctx context.Context, group, userID string) error {
	return s.write(ctx, "RemoveMember", func(c *conn) error {
		return changed(storage.ErrNotFound)(
			c.exec("DELETE FROM group_members WHERE group_name = ? AND user_id = ?", group, userID))
	})
}

// Membership implements storage.Groups.
func (s *Store) Membership(ctx context.Context, userID string) (m storage.Membership, err error) {
	err = s.read(ctx, "Membership", func(c *conn) (err error) {
		m = storage.Membership{UserID: userID}
		if err := c.one([]any{&m.Name}, "SELECT name FROM users WHERE id = ?", userID); err != nil {
			return err
		}
		m.Groups, err = each(c, func(row scanner) (group string, err error) {
			err = row.Scan(&group)
			return group, err
		}, "SELECT group_name FROM group_members WHERE user_id = ? ORDER BY group_name", userID)
		return err
	})
	return m, err
}

// PutAccessRule implements storage.AccessRules.
func (s *Store) PutAccessRule(ctx context.Context, r storage.AccessRule) error {
	return s.write(ctx, "PutAccessRule", func(c *conn) error {
		if err := changed(storage.ErrNotFound)(c.exec(putRule, column.RuleValues(r)...)); err != nil {
			return err
		}
		var n int
		if err := c.one([]any{&n}, "SELECT count(*) FROM access_rules"); err != nil {
			return err
		}
		if n > storage.MaxAccessRules {
			return storage.ErrFull
		}
		return nil
	})
}

// DeleteAccessRule implements storage.AccessRules.
func (s *Store) DeleteAccessRule(ctx context.Context, r storage.AccessRule) error {
	return s.write(ctx, "DeleteAccessRule", func(c *conn) error {
		return changed(storage.ErrNotFound)(
			c.exec("DELETE FROM access_rules WHERE resource = ? AND subject = ?", r.Resource, column.RuleSubject(r)))
	})
}

// ListAccessRules implements storage.AccessRules.
func (s *Store) ListAccessRules(ctx context.Context) (out []storage.AccessRule, err error) {
	err = s.read(ctx, "ListAccessRules", func(c *conn) (err error) {
		read := func(row scanner) (storage.AccessRule, error) { return column.ReadAccessRule(row) }
		out, err = each(c, read, listRules)
		return err
	})
	return out, err
}
