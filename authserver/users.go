package authserver

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// Users manages the local accounts by name.
type Users interface {
	// Create adds an account. It returns ErrUserName, ErrPasswordLength, ErrPasswordCommon or
	// ErrUserExists.
	Create(ctx context.Context, name, password string, admin bool) (storage.User, error)
	// Find returns the account with a name, or with an id if no account has that name. Like all
	// following methods, it returns ErrUserUnknown if the account does not exist.
	Find(ctx context.Context, name string) (storage.User, error)
	// List returns up to limit accounts with a name after the given one.
	List(ctx context.Context, after string, limit int) ([]storage.User, error)
	// SetPassword replaces a password and ends the user's sessions. Unless keepGrants is set, it
	// also revokes the user's grants (OAuth 2.1 §4.3.3). It returns ErrPasswordLength or
	// ErrPasswordCommon for an invalid password.
	SetPassword(ctx context.Context, name, password string, keepGrants bool) error
	// Disable ends every session and grant of an account and refuses its sign-ins.
	Disable(ctx context.Context, name string) error
	// Enable lets an account sign in again.
	Enable(ctx context.Context, name string) error
	// Delete removes an account with its sessions and grants.
	Delete(ctx context.Context, name string) error
}

// Errors of Users.
var (
	ErrUserExists     error = users.ErrExists   // the name is taken
	ErrUserUnknown    error = users.ErrUnknown  // the account does not exist
	ErrUserName       error = users.ErrName     // a name has 1 to 64 letters, digits or . _ - @ +
	ErrPasswordLength error = users.ErrPassword // a password has 8 to 1024 bytes
	ErrPasswordCommon error = users.ErrCommon   // the password is one of the most common, or is the name
)

// Users returns the manager of the local accounts.
func (s *Server) Users() Users { return s.users }
