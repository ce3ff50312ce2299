package admin

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// User is an account.
type User struct {
	ID          string    `json:"id"`
	Name        string    `json:"name" jsonschema:"name for signing in"`
	Admin       bool      `json:"admin"`
	Role        Role      `json:"role,omitempty" jsonschema:"administrator, auditor or support; absent for none"`
	Disabled    bool      `json:"disabled"`
	CreatedAt   time.Time `json:"created_at"`
	LastLoginAt time.Time `json:"last_login_at,omitzero"`
	Mail        string    `json:"mail,omitempty"`
}

// UserOf returns the public view of an account.
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

// UserDetails describes an account and its grants.
type UserDetails struct {
	User
	Grants []Grant `json:"grants"`
	// MoreGrants: there are others, which grant list has.
	MoreGrants bool     `json:"more_grants,omitempty" jsonschema:"there are more, see grant list"`
	Groups     []string `json:"groups,omitempty" jsonschema:"the groups of the account"`
	// ProviderGroups says which of Groups the person is in by a provider, and why.
	ProviderGroups []UserProviderGroup `json:"provider_groups,omitempty" jsonschema:"groups that the user is in through a provider"`
	Access         []UserAccess        `json:"access,omitempty" jsonschema:"scopes that rules allow the user; all scopes at MCP servers that are not listed"`
}

// Count counts the grants and their applications.
func (u UserDetails) Count() GrantCount {
	clients := map[string]bool{}
	for _, g := range u.Grants {
		clients[g.Client] = true
	}
	return GrantCount{
		Grants: len(u.Grants), People: min(len(u.Grants), 1), Applications: len(clients), More: u.MoreGrants,
	}
}

// NewUser describes an account to create.
type NewUser struct {
	Name     string `json:"name" jsonschema:"name for signing in"`
	Password string `json:"password" secret:"yes"`
	Role     string `json:"role,omitempty" jsonschema:"administrator, auditor or support; nothing for none"`
	Mail     string `json:"mail,omitempty" jsonschema:"mail address of the user"`
}

// NewPassword is a new password for an account.
type NewPassword struct {
	Name       string `json:"name" jsonschema:"the name of the account"`
	Password   string `json:"password" secret:"yes"`
	KeepGrants bool   `json:"keep_grants,omitempty" jsonschema:"leave applications signed in"`
}

// NewMail is a new mail address for an account.
type NewMail struct {
	Name string `json:"name" jsonschema:"the name of the account"`
	Mail string `json:"mail,omitempty" jsonschema:"the address; empty for no mail"`
}

// UserEnded is a deleted account, with the number of grants that ended with it.
type UserEnded struct {
	Name  string     `json:"name"`
	ID    string     `json:"id"`
	Ended GrantCount `json:"ended"`
}

// Operations on accounts.
var (
	UserAdd = define(Spec{
		Name: "user add", Method: "POST", Path: "/users", Roles: helping, Fresh: true, Summary: "Create an account",
	}, (*Service).addUser)
	UserList = define(Spec{
		Name: "user list", Method: "GET", Path: "/users", Summary: "List accounts", Roles: readers,
		Details: "Lists accounts by name. You can search for a text in the name, mail address or ID. Capital letters\n" +
			"match small ones in names; in mail addresses and IDs only ASCII letters do.",
	}, (*Service).listUsers)
	UserShow = define(Spec{
		Name: "user show", Method: "GET", Path: "/users/{name}", Roles: readers,
		Summary: "Show an account with its grants and sessions",
	}, (*Service).showUser)
	UserPasswd = define(Spec{
		Name: "user passwd", Method: "PUT", Path: "/users/{name}/password", Roles: helping, Fresh: true,
		Summary: "Set a new password and end the user's sessions and grants",
	}, (*Service).setPassword)
	UserDisable = define(Spec{
		Name: "user disable", Method: "POST", Path: "/users/{name}/disable", Roles: helping, Fresh: true,
		Takes:   true,
		Summary: "Disable an account and end its sessions and grants",
	}, (*Service).disableUser)
	UserEnable = define(Spec{
		Name: "user enable", Method: "POST", Path: "/users/{name}/enable", Roles: helping, Fresh: true,
		Summary: "Enable a disabled account",
	}, (*Service).enableUser)
	UserSetMail = define(Spec{
		Name: "user set-mail", Method: "PUT", Path: "/users/{name}/mail", Roles: helping, Fresh: true,
		Summary: "Set or remove a user's mail address",
		Details: "Sets the address for mail about the account, including recovery links. Without an address, the user\n" +
			"gets no mail. Only the operator sets it: addresses that providers report are not used.",
	}, (*Service).setMail)
	UserSetRole = define(Spec{
		Name: "user set-role", Method: "PUT", Path: "/users/{name}/role", Fresh: true,
		Summary: "Set the administration role of an account; ends its sessions",
		Details: "Sets the role of an account. An administrator may do everything, an auditor may read everything, and\n" +
			"support may help users with their accounts and attempts. The role none removes the role, except from\n" +
			"the last administrator. Open recovery and reset links of an account that gets a role are revoked.",
	}, (*Service).setRole)
	UserDelete = define(Spec{
		Name: "user delete", Method: "DELETE", Path: "/users/{name}", Roles: helping, Fresh: true,
		Takes:   true,
		Summary: "Delete an account with its sessions and grants",
		Details: "Deletes an account, its sign-ins and its grants to applications.",
	}, (*Service).deleteUser)
)

func (s *Service) addUser(ctx context.Context, in NewUser) (User, error) {
	role, err := givenRole(ctx, in.Role)
	if err != nil {
		return User{}, err
	}
	u, err := s.Users.Add(ctx, users.Account{Name: in.Name, Password: in.Password, Role: role, Mail: in.Mail})
	return UserOf(u), ExplainUser(err, in.Name)
}

func (s *Service) disableUser(ctx context.Context, in UserName) (User, error) {
	return s.changeUser(ctx, in.Name, func(u storage.User) error {
		return s.takeAway(ctx, u, func(ctx context.Context) error { return s.Users.Disable(ctx, u.ID) })
	})
}

func (s *Service) enableUser(ctx context.Context, in UserName) (User, error) {
	return s.changeUser(ctx, in.Name, func(u storage.User) error { return s.Users.Enable(ctx, u.ID) })
}

// changeUser applies do to an account, and returns the changed account.
func (s *Service) changeUser(ctx context.Context, name string, do func(storage.User) error) (User, error) {
	u, err := s.FindUser(ctx, name)
	if err != nil {
		return User{}, err
	}
	if err := do(u); err != nil {
		return User{}, ExplainUser(err, u.Name)
	}
	u, err = s.Store.User(ctx, u.ID)
	return UserOf(u), err
}

func (s *Service) setPassword(ctx context.Context, in NewPassword) (User, error) {
	return s.changeUser(ctx, in.Name, func(u storage.User) error {
		return s.Users.SetPassword(ctx, u.ID, in.Password, in.KeepGrants)
	})
}

func (s *Service) setMail(ctx context.Context, in NewMail) (User, error) {
	return s.changeUser(ctx, in.Name, func(u storage.User) error { return s.Users.SetMail(ctx, u.ID, in.Mail) })
}

func (s *Service) setRole(ctx context.Context, in UserRole) (User, error) {
	role, err := ParseRole(in.Role)
	if err != nil {
		return User{}, err
	}
	return s.changeUser(ctx, in.Name, func(u storage.User) error {
		set := func(ctx context.Context) error { return s.Users.SetRole(ctx, u.ID, role) }
		if role == Administrator {
			return set(ctx)
		}
		return s.takeAway(ctx, u, set)
	})
}

func (s *Service) deleteUser(ctx context.Context, in UserName) (UserEnded, error) {
	u, err := s.FindUser(ctx, in.Name)
	if err != nil {
		return UserEnded{}, err
	}
	some, err := s.SomeGrants(ctx, storage.Selection{UserID: u.ID})
	if err != nil {
		return UserEnded{}, err
	}
	err = s.takeAway(ctx, u, func(ctx context.Context) error { return s.Users.Delete(ctx, u.ID) })
	if err != nil {
		return UserEnded{}, ExplainUser(err, u.Name)
	}
	return UserEnded{u.Name, u.ID, some.Count()}, nil
}

func (s *Service) listUsers(ctx context.Context, in Searched) (Page[User], error) {
	q, err := in.search(in.After)
	if err != nil {
		return Page[User]{}, err
	}
	found, next, err := s.Store.SearchUsers(ctx, q)
	p := page(found, in.bounded(), UserOf, func(u storage.User) string { return u.Name })
	p.Next = cmp.Or(p.Next, next)
	return p, err
}

func (s *Service) showUser(ctx context.Context, in UserName) (UserDetails, error) {
	u, err := s.FindUser(ctx, in.Name)
	if err != nil {
		return UserDetails{}, err
	}
	some, err := s.SomeGrants(ctx, storage.Selection{UserID: u.ID})
	if err != nil {
		return UserDetails{}, err
	}
	grants, err := s.viewGrants(ctx, some.List)
	if err != nil {
		return UserDetails{}, err
	}
	out := UserDetails{User: UserOf(u), Grants: grants, MoreGrants: some.More}
	err = s.addAccess(ctx, &out)
	return out, err
}

// FindUser finds an account by name or ID.
func (s *Service) FindUser(ctx context.Context, name string) (storage.User, error) {
	u, err := s.Users.Find(ctx, name)
	return u, ExplainUser(err, name)
}

// ExplainUser turns an error about an account into one that says what to do.
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
			"%[1]s has other ways in, so a link has to wait, and the person can stop it: make one that waits; or, if "+
				"the other ways are lost, remove them by force: mcp-authd user ways %[1]s, mcp-authd user ways remove %[1]s WAY",
			name)
	}
	return err
}
