package storage

import "context"

// Role says which administrative operations a user may perform.
type Role string

// The roles. An account without a role administers nothing.
const (
	Administrator Role = "administrator" // everything
	Auditor       Role = "auditor"       // reads everything, changes nothing
	Support       Role = "support"       // helps users: accounts, connection log
)

// Roles assigns roles to accounts.
type Roles interface {
	// SetRole replaces the role of an account, "" for none. If the role changes, SetRole ends the
	// sessions of the account, so that its user signs in as the new role requires. It returns
	// ErrNotFound for an unknown user, and ErrLast for the only enabled administrator.
	SetRole(ctx context.Context, userID string, role Role) error
}
