package column

import "github.com/mcp-authd/mcp-authd/internal/storage"

// HasRole is the condition that the user u has a role.
const HasRole = "(u.admin OR u.role <> '')"

// SetRole gives a user ($1) the values of a role ($2, $3), if they differ and an administrator
// remains.
const SetRole = `UPDATE users SET admin = $2, role = $3 WHERE id = $1 AND (admin <> $2 OR role <> $3)
	AND ($2 OR NOT admin OR EXISTS (SELECT 1 FROM users o WHERE o.id <> $1 AND o.admin AND NOT o.disabled))`

// RoleIs selects whether the user $1 has the role with those values.
const RoleIs = "SELECT admin = $2 AND role = $3 FROM users WHERE id = $1"

// RoleValues returns the values of the columns admin and role. Servers of an earlier version know
// only administrators, by the first column. The second one holds the other roles.
func RoleValues(r storage.Role) (admin bool, role string) {
	if r == storage.Administrator {
		return true, ""
	}
	return false, string(r)
}

// readRole is the reverse of RoleValues.
func readRole(admin bool, role storage.Role) storage.Role {
	if admin {
		return storage.Administrator
	}
	return role
}
