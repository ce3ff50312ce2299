package portable

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putRule = `INSERT INTO access_rules (resource, subject, user_id, group_name, scopes, all_scopes, set_at,
	approve)
SELECT CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS text), CAST($5 AS text), CAST($6 AS bigint), CAST($7 AS bigint),
	CAST($8 AS text)
WHERE (CAST($3 AS text) IS NULL OR EXISTS (SELECT 1 FROM users WHERE id = $3))
	AND (CAST($4 AS text) IS NULL OR EXISTS (SELECT 1 FROM account_groups WHERE name = $4))
ON CONFLICT (resource, subject) DO UPDATE
SET scopes = excluded.scopes, all_scopes = excluded.all_scopes, set_at = excluded.set_at,
	approve = excluded.approve`
	listRules = "SELECT " + column.RuleColumns +
		" FROM access_rules r LEFT JOIN users u ON u.id = r.user_id ORDER BY r.resource, r.subject"
	groupMembers = `SELECT u.id, u.name, m.added_at FROM group_members m JOIN users u ON u.id = m.user_id
WHERE m.group_name = $1 AND u.name_key > $2 ORDER BY u.name_key LIMIT $3`
	membership = `SELECT u.name, m.group_name FROM users u LEFT JOIN group_members m ON m.user_id = u.id
WHERE u.id = $1 ORDER BY m.group_name`
)

// groups implements storage.Groups and storage.AccessRules.
type groups struct{ db Engine }

// CreateGroup implements storage.Groups.
func (s groups) CreateGroup(ctx context.Context, g storage.Group) error {
	return s.db.Transact(ctx, "CreateGroup", func(c Conn) error {
		var n int
		if err := c.One([]any{&n}, "SELECT count(*) FROM account_groups"); err != nil {
			return err
		}
		if n >= storage.MaxGroups {
			return storage.ErrFull
		}
		return changed(storage.ErrExists)(c.Exec(
			"INSERT INTO account_groups (name, description, created_at) VALUES ($1,$2,$3) ON CONFLICT DO NOTHING",
			g.Name, g.Description, column.Millis(g.CreatedAt)))
	})
}

// DeleteGroup implements storage.Groups. The foreign key of access_rules makes it fail if a rule is
// stored concurrently.
func (s groups) DeleteGroup(ctx context.Context, name string) error {
	return s.db.Transact(ctx, "DeleteGroup", func(c Conn) error {
		var named bool
		err := c.One([]any{&named}, "SELECT EXISTS (SELECT 1 FROM access_rules WHERE group_name = $1)", name)
		if err != nil {
			return err
		}
		if named {
			return storage.ErrInUse
		}
		return changed(storage.ErrNotFound)(c.Exec("DELETE FROM account_groups WHERE name = $1", name))
	})
}

// ListGroups implements storage.Groups.
func (s groups) ListGroups(ctx context.Context) (out []storage.Group, err error) {
	err = s.db.Read(ctx, "ListGroups", func(c Conn) (err error) {
		out, err = Each(c, column.ReadGroup, column.ListGroups)
		return err
	})
	return out, err
}

// GroupMembers implements storage.Groups.
func (s groups) GroupMembers(ctx context.Context, group, after string, limit int) (out []storage.Member, err error) {
	err = s.db.Read(ctx, "GroupMembers", func(c Conn) (err error) {
		out, err = Each(c, column.ReadMember, groupMembers, group, column.NameKey(after), limit)
		return err
	})
	return out, err
}

// AddMember implements storage.Groups.
func (s groups) AddMember(ctx context.Context, group, userID string, now time.Time) error {
	return s.db.Write(ctx, "AddMember", func(c Conn) error {
		return changed(storage.ErrNotFound)(c.Exec(column.AddMember, group, userID, column.Millis(now)))
	})
}

// RemoveMember implements storage.Groups.
func (s groups) RemoveMember(ctx context.Context, group, userID string) error {
	return s.db.Write(ctx, "RemoveMember", func(c Conn) error {
		return changed(storage.ErrNotFound)(c.Exec(
			"DELETE FROM group_members WHERE group_name = $1 AND user_id = $2", group, userID))
	})
}

// Membership implements storage.Groups.
func (s groups) Membership(ctx context.Context, userID string) (out storage.Membership, err error) {
	err = s.db.Read(ctx, "Membership", func(c Conn) error {
		out = storage.Membership{UserID: userID}
		groups, err := Each(c, func(row Row) (group *string, err error) {
			err = row.Scan(&out.Name, &group)
			return group, err
		}, membership, userID)
		if err != nil {
			return err
		}
		if len(groups) == 0 {
			return storage.ErrNotFound
		}
		for _, group := range groups {
			if group != nil { // for an account without groups, the only row has none
				out.Groups = append(out.Groups, *group)
			}
		}
		return nil
	})
	return out, err
}

// PutAccessRule implements storage.AccessRules.
func (s groups) PutAccessRule(ctx context.Context, r storage.AccessRule) error {
	return s.db.Transact(ctx, "PutAccessRule", func(c Conn) error {
		if err := changed(storage.ErrNotFound)(c.Exec(putRule, column.RuleValues(r)...)); err != nil {
			return err
		}
		var n int
		if err := c.One([]any{&n}, "SELECT count(*) FROM access_rules"); err != nil {
			return err
		}
		if n > storage.MaxAccessRules {
			return storage.ErrFull
		}
		return nil
	})
}

// DeleteAccessRule implements storage.AccessRules.
func (s groups) DeleteAccessRule(ctx context.Context, r storage.AccessRule) error {
	return s.db.Write(ctx, "DeleteAccessRule", func(c Conn) error {
		return changed(storage.ErrNotFound)(c.Exec(
			"DELETE FROM access_rules WHERE resource = $1 AND subject = $2", r.Resource, column.RuleSubject(r)))
	})
}

// ListAccessRules implements storage.AccessRules.
func (s groups) ListAccessRules(ctx context.Context) (out []storage.AccessRule, err error) {
	err = s.db.Read(ctx, "ListAccessRules", func(c Conn) (err error) {
		out, err = Each(c, column.ReadAccessRule, listRules)
		return err
	})
	return out, err
}
