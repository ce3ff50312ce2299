package storage

import "context"

// Role is what a person may do as one of the operator's.
type Role string

// The roles. An account without one administers nothing.
const (
	Administrator Role = "administrator" // everything
	Auditor       Role = "auditor"       // reads everything, changes nothing
	Support       Role = "support"       // helps people: accounts, attempts
)

// Roles gives accounts their roles.
type Roles interface {
	// SetRole replaces the role of an account, "" for none. When it was another one, it ends the
	// sessions of the account, so that its person signs in as the new role demands. ErrNotFound when
	// there is no such user; ErrLast for an administrator beside whom no other one is enabled.
	SetRole(ctx context.Context, userID string, role Role) error
}
