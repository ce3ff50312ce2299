package authserver

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Users are the local accounts, by name.
type Users interface {
	// Create adds an account: ErrUserName, ErrPasswordLength, ErrPasswordCommon, ErrUserExists.
	Create(ctx context.Context, name, password string, admin bool) (storage.User, error)
	// Find returns the account of a name, or of an id where no account has that name, or
	// ErrUserUnknown, as all that follow.
	Find(ctx context.Context, name string) (storage.User, error)
	// List returns up to limit accounts with a name after the given one.
	List(ctx context.Context, after string, limit int) ([]storage.User, error)
	// SetPassword replaces a password (ErrPasswordLength, ErrPasswordCommon) and ends the user's sessions; unless
	// keepGrants, it also revokes what the user allowed applications (OAuth 2.1 §4.3.3).
	SetPassword(ctx context.Context, name, password string, keepGrants bool) error
	// Disable ends every session and grant of an account and refuses its sign-ins.
	Disable(ctx context.Context, name string) error
	// Enable lets an account sign in again.
	Enable(ctx context.Context, name string) error
	// Delete removes an account with its sessions and grants.
	Delete(ctx context.Context, name string) error
}

// The errors of Users that a program tells apart.
var (
	ErrUserExists     error = users.ErrExists   // the name is taken
	ErrUserUnknown    error = users.ErrUnknown  // there is no such account
	ErrUserName       error = users.ErrName     // a name has 1 to 64 letters, digits or . _ - @ +
	ErrPasswordLength error = users.ErrPassword // a password has 8 to 1024 bytes
	ErrPasswordCommon error = users.ErrCommon   // the password is guessed first, or is the name
)

// Users manages the local accounts.
func (s *Server) Users() Users { return s.users }
