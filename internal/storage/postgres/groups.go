package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putRule = `INSERT INTO access_rules (resource, subject, user_id, group_name, scopes, all_scopes, set_at,
	approve)
SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::bigint,
	$8::text
WHERE ($3::text IS NULL OR EXISTS (SELECT 1 FROM users WHERE id = $3))
	AND ($4::text IS NULL OR EXISTS (SELECT 1 FROM account_groups WHERE name = $4))
ON CONFLICT (resource, subject) DO UPDATE
SET scopes = excluded.scopes, all_scopes = excluded.all_scopes, set_at = excluded.set_at,
	approve = excluded.approve`

	listRules = "SELECT " + column.RuleColumns +
		" FROM access_rules r LEFT JOIN users u ON u.id = r.user_id ORDER BY r.resource, r.subject"

	groupMembers = `SELECT u.id, u.name, m.added_at FROM group_members m JOIN users u ON u.id = m.user_id
WHERE m.group_name = $1 AND u.name_key > $2 ORDER BY u.name_key LIMIT $3`

	addMember = `INSERT INTO group_members AS m (group_name, user_id, added_at)
SELECT g.name, u.id, $3::bigint FROM account_groups g, users u WHERE g.name = $1 AND u.id = $2
ON CONFLICT (group_name, user_id) DO UPDATE SET added_at = m.added_at`

	membership = `SELECT u.name, m.group_name FROM users u LEFT JOIN group_members m ON m.user_id = u.id
WHERE u.id = $1 ORDER BY m.group_name`
)

// CreateGroup implements storage.Groups.
func (s *Store) CreateGroup(ctx context.Context, g storage.Group) error {
	return s.tx(ctx, "CreateGroup", func(ctx context.Context, q querier) error {
		var n int
		if err := one(ctx, q, []any{&n}, "SELECT count(*) FROM account_groups"); err != nil {
			return err
		}
		if n >= storage.MaxGroups {
			return storage.ErrFull
		}
		return changed(storage.ErrExists)(exec(ctx, q,
			"INSERT INTO account_groups (name, description, created_at) VALUES ($1,$2,$3) ON CONFLICT DO NOTHING",
			g.Name, g.Description, column.Millis(g.CreatedAt)))
	})
}

// DeleteGroup implements storage.Groups. The foreign key of access_rules makes it fail if a rule is
// stored concurrently.
func (s *Store) DeleteGroup(ctx context.Context, name string) error {
	return s.tx(ctx, "DeleteGroup", func(ctx context.Context, q querier) error {
		var named bool
		err := one(ctx, q, []any{&named}, "SELECT EXISTS (SELECT 1 FROM access_rules WHERE group_name = $1)", name)
		if err != nil {
			return err
		}
		if named {
			return storage.ErrInUse
		}
		return changed(storage.ErrNotFound)(exec(ctx, q, "DELETE FROM account_groups WHERE name = $1", name))
	})
}

// ListGroups implements storage.Groups.
func (s *Store) ListGroups(ctx context.Context) (out []storage.Group, err error) {
	err = s.do(ctx, "ListGroups", func(ctx context.Context, q querier) (err error) {
		read := func(row pgx.CollectableRow) (storage.Group, error) { return column.ReadGroup(row) }
		out, err = each(ctx, q, read, column.ListGroups)
		return err
	})
	return out, err
}

// GroupMembers implements storage.Groups.
func (s *Store) GroupMembers(ctx context.Context, group, after string, limit int) (out []storage.Member, err error) {
	err = s.do(ctx, "GroupMembers", func(ctx context.Context, q querier) (err error) {
		read := func(row pgx.CollectableRow) (storage.Member, error) { return column.ReadMember(row) }
		out, err = each(ctx, q, read, groupMembers, group, column.NameKey(after), limit)
		return err
	})
	return out, err
}

// AddMember implements storage.Groups.
func (s *Store) AddMember(ctx context.Context, group, userID string, now time.Time) error {
	return s.do(ctx, "AddMember", func(ctx context.Context, q querier) error {
		return changed(storage.ErrNotFound)(exec(ctx, q, addMember, group, userID, column.Millis(now)))
	})
}

// RemoveMember implements storage.Groups.
func (s *Store) RemoveMember(ctx context.Context, group, userID string) error {
	return s.do(ctx, "RemoveMember", func(ctx context.Context, q querier) error {
		return changed(storage.ErrNotFound)(exec(ctx, q,
			"DELETE FROM group_members WHERE group_name = $1 AND user_id = $2", group, userID))
	})
}

// Membership implements storage.Groups.
func (s *Store) Membership(ctx context.Context, userID string) (out storage.Membership, err error) {
	err = s.do(ctx, "Membership", func(ctx context.Context, q querier) error {
		out = storage.Membership{UserID: userID}
		groups, err := each(ctx, q, func(row pgx.CollectableRow) (group *string, err error) {
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
func (s *Store) PutAccessRule(ctx context.Context, r storage.AccessRule) error {
	return s.tx(ctx, "PutAccessRule", func(ctx context.Context, q querier) error {
		if err := changed(storage.ErrNotFound)(exec(ctx, q, putRule, column.RuleValues(r)...)); err != nil {
			return err
		}
		var n int
		if err := one(ctx, q, []any{&n}, "SELECT count(*) FROM access_rules"); err != nil {
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
	return s.do(ctx, "DeleteAccessRule", func(ctx context.Context, q querier) error {
		return changed(storage.ErrNotFound)(exec(ctx, q,
			"DELETE FROM access_rules WHERE resource = $1 AND subject = $2", r.Resource, column.RuleSubject(r)))
	})
}

// ListAccessRules implements storage.AccessRules.
func (s *Store) ListAccessRules(ctx context.Context) (out []storage.AccessRule, err error) {
	err = s.do(ctx, "ListAccessRules", func(ctx context.Context, q querier) (err error) {
		read := func(row pgx.CollectableRow) (storage.AccessRule, error) { return column.ReadAccessRule(row) }
		out, err = each(ctx, q, read, listRules)
		return err
	})
	return out, err
}
