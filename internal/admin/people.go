package admin

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/storage"
)

// User is an account.
type User struct {
	ID          string    `json:"id"`
	Name        string    `json:"name" jsonschema:"what is typed at sign-in"`
	Admin       bool      `json:"admin"`
	Role        Role      `json:"role,omitempty" jsonschema:"administrator, auditor or support; absent for none"`
	Disabled    bool      `json:"disabled"`
	CreatedAt   time.Time `json:"created_at"`
	LastLoginAt time.Time `json:"last_login_at,omitzero"`
	Mail        string    `json:"mail,omitempty"`
}

// UserOf is what is shown of an account.
func UserOf(u storage.User) User {
	return User{
		ID: u.ID, Name: u.Name, Admin: u.Role == Administrator, Role: u.Role, Disabled: u.Disabled,
		CreatedAt: u.CreatedAt, LastLoginAt: u.LastLoginAt, Mail: u.Mail,
	}
}

// UserName names an account.
type UserName struct {
	Name string `json:"name" jsonschema:"the name of the account"`
}

// UserRole is a role for an account.
type UserRole struct {
	Name string `json:"name" jsonschema:"the name of the account"`
	Role string `json:"role" jsonschema:"administrator, auditor, support or none"`
}

// The operations on accounts.
var (
	UserList = define(Spec{
		Name: "user list", Method: "GET", Path: "/users", Summary: "List accounts", Roles: readers,
	}, (*Service).listUsers)
	UserShow = define(Spec{
		Name: "user show", Method: "GET", Path: "/users/{name}", Summary: "Show one account", Roles: readers,
	}, (*Service).showUser)
	UserDisable = define(Spec{
		Name: "user disable", Method: "POST", Path: "/users/{name}/disable", Roles: helping, Fresh: true,
		Summary: "Refuse an account, and end its sessions and grants",
	}, changing((*users.Users).Disable))
	UserEnable = define(Spec{
		Name: "user enable", Method: "POST", Path: "/users/{name}/enable", Roles: helping, Fresh: true,
		Summary: "Let a disabled account sign in again",
	}, changing((*users.Users).Enable))
	UserSetRole = define(Spec{
		Name: "user set-role", Method: "PUT", Path: "/users/{name}/role", Fresh: true,
		Summary: "Say what an account may administer; ends its sessions",
		Details: "An administrator may do everything, an auditor may read everything, and support may help people:\n" +
			"their accounts and their attempts. None takes the role away, but not that of the last administrator.",
	}, (*Service).setRole)
)

// changing is an operation on one account, whose answer is the account as it then is.
func changing(
	do func(*users.Users, context.Context, string) error,
) func(*Service, context.Context, UserName) (User, error) {
	return func(s *Service, ctx context.Context, in UserName) (User, error) {
		if err := do(s.Users, ctx, in.Name); err != nil {
			return User{}, ExplainUser(err, in.Name)
		}
		if err := s.followed(ctx); err != nil {
			return User{}, err
		}
		return s.showUser(ctx, in)
	}
}

func (s *Service) listUsers(ctx context.Context, in Paging) (Page[User], error) {
	found, err := s.Store.ListUsers(ctx, in.After, in.bounded()+1)
	return page(found, in.bounded(), UserOf, func(u storage.User) string { return u.Name }), err
}

func (s *Service) showUser(ctx context.Context, in UserName) (User, error) {
	u, err := s.Users.Find(ctx, in.Name)
	return UserOf(u), ExplainUser(err, in.Name)
}

func (s *Service) setRole(ctx context.Context, in UserRole) (User, error) {
	role, err := ParseRole(in.Role)
	if err != nil {
		return User{}, err
	}
	if err := s.Users.SetRole(ctx, in.Name, role); err != nil {
		return User{}, ExplainUser(err, in.Name)
	}
	return s.showUser(ctx, UserName{in.Name})
}

// ExplainUser says what is wrong with the account, and what to do.
func ExplainUser(err error, name string) error {
	switch {
	case errors.Is(err, users.ErrExists):
		return fault(ErrConflict, "the name %q is taken; see: mcp-authd user show %s", name, name)
	case errors.Is(err, users.ErrUnknown):
		return fault(ErrNotFound, "there is no user %q; see: mcp-authd user list", name)
	case errors.Is(err, users.ErrName), errors.Is(err, users.ErrPassword), errors.Is(err, users.ErrCommon),
		errors.Is(err, users.ErrMail), errors.Is(err, users.ErrDisabled):
		return fault(ErrInvalid, "%s", strings.TrimPrefix(err.Error(), "users: "))
	case errors.Is(err, users.ErrLast):
		return fault(ErrConflict, "%s is the last administrator; give another account that role first", name)
	case errors.Is(err, users.ErrOtherWays):
		return fault(ErrConflict,
			"%s has other ways in, so a link has to wait, and the person can stop it: leave --now out", name)
	}
	return err
}
