package admin

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// CheckTwo returns an error unless names is a valid list of operations that need two
// administrators.
func CheckTwo(names []string) error {
	operations := All()
	for _, name := range names {
		switch v := operations.Named(name); {
		case v == nil:
			return fmt.Errorf("console.two_administrators: unknown operation %q; docs/roles.md lists them", name)
		case !v.Spec().Changes(), v.Spec().Noun() == "proposal":
			return fmt.Errorf("console.two_administrators: %q cannot need a second administrator", name)
		}
	}
	return nil
}

// HolesInTwo returns a line for each listed operation that one administrator can replace with other
// operations that console.two_administrators does not list.
func HolesInTwo(names []string) (holes []string) {
	for _, same := range []struct {
		listed string
		others []string
	}{
		{"application block", []string{"application delete", "application revoke"}},
		{"application delete", []string{"application block", "application revoke"}},
		{"application pause", []string{"application block", "application revoke"}},
		{"application revoke", []string{"application block", "application delete"}},
		{"client add", []string{"client rotate-secret"}},
		{"client delete", []string{"application delete", "grant revoke-many"}},
		{"grant end-pause", []string{"grant resume"}},
		{"grant narrow", []string{"grant revoke", "grant revoke-many"}},
		{"grant pause", []string{"grant revoke", "grant revoke-many"}},
		{"grant resume", []string{"grant end-pause"}},
		{"grant revoke", []string{"grant revoke-many"}},
		{"grant revoke-helper", []string{"grant revoke", "grant revoke-many"}},
		{"grant revoke-many", []string{"application revoke", "grant revoke"}},
		{"group add", []string{"rule set", "user invite"}},
		{"group remove", []string{"rule set"}},
		{"resource remove", []string{"grant revoke-many"}},
		{"resource set", []string{"resource add"}}, // after resource remove
		{"rule remove", []string{"rule set"}},
		{"rule set", []string{"group add", "group remove", "rule remove", "user invite"}},
		{"trust disable", []string{"trust remove"}},
		{"trust link", []string{"trust add"}},
		{"user add", []string{"user invite"}},
		{"user disable", []string{"user delete"}},
		{"user invite", []string{"user add"}},
		{"user links withdraw", []string{"user invite", "user recover"}}, // a new link replaces the previous one
		{"user passwd", []string{"user recover", "user set-mail"}},
		{"user recover", []string{"user passwd", "user set-mail"}},
		{"user set-mail", []string{"user passwd", "user recover"}},
		{"user set-role", []string{"user add", "user invite"}},
	} {
		missing := slices.DeleteFunc(slices.Clone(same.others), func(name string) bool {
			return slices.Contains(names, name)
		})
		if slices.Contains(names, same.listed) && len(missing) > 0 {
			holes = append(holes, fmt.Sprintf("console.two_administrators lists %q: by %s, which it does not list, one "+
				"administrator can have the same effect alone", same.listed, strings.Join(missing, " and ")))
		}
	}
	return holes
}

// These operations could let one administrator control two accounts, or act for another
// administrator. If any operation needs two administrators, these do as well when their object is
// an account or program that administers.
var (
	givingRoles  = []string{"user add", "user invite", "user set-role"}
	openAccounts = []string{
		"user enable", "user passwd", "user recover", "user set-mail", "user ways remove", "trust link",
	}
	makePrograms  = []string{"client add", "client rotate-secret"}
	believeOthers = []string{"trust add", "trust enable"}
)

// NeedsTwo reports whether an operation needs two administrators always, or only for some objects:
// accounts with a role, and programs that administer.
func (s *Service) NeedsTwo(o Spec) (always, sometimes bool) {
	if len(s.Two) == 0 {
		return false, false
	}
	some := slices.Concat(givingRoles, openAccounts, makePrograms, believeOthers)
	return slices.Contains(s.Two, o.Name), slices.Contains(some, o.Name)
}

// waits reports whether an operation with this input needs a second administrator.
func (s *Service) waits(ctx context.Context, a Actor, v Verb, in reflect.Value) (bool, error) {
	always, sometimes := s.NeedsTwo(v.Spec())
	if always || !sometimes {
		return always, nil
	}
	switch name := v.Spec().Name; {
	case slices.Contains(givingRoles, name):
		role := textOf(in, "role")
		return role != "" && role != NoRole, nil
	case slices.Contains(openAccounts, name):
		// Changing the actor's own account does not create a second administrator.
		u, err := s.Users.Find(ctx, textOf(in, "name")+textOf(in, "user"))
		if errors.Is(err, users.ErrUnknown) {
			return false, nil // the operation returns the error
		}
		return err == nil && u.Role != "" && u.ID != a.UserID, err
	case slices.Contains(makePrograms, name):
		return s.administers(ctx, in)
	}
	return true, nil
}

// administers reports whether the client in an input, described or named, can change something here
// without a user.
func (s *Service) administers(ctx context.Context, in reflect.Value) (bool, error) {
	if new, ok := in.Interface().(NewClient); ok {
		c, _, err := s.mint(new)
		if errors.Is(err, ErrInvalid) {
			return false, nil // the operation returns the error
		}
		return s.programAdministers(c), err
	}
	c, err := s.FindClient(ctx, textOf(in, "id"))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return s.programAdministers(c), err
}

// scopeWrite lets programs change things.
const scopeWrite = "admin:write"

func (s *Service) programAdministers(c storage.Client) bool {
	own := func(r storage.Resource) bool { return slices.Contains(c.Resources, r.URI) }
	return slices.Contains(c.GrantTypes, oauth.GrantClientCredentials) && c.Scopes.Has(scopeWrite) &&
		slices.ContainsFunc(s.Own, own)
}

// textOf returns the text field of an input by its JSON name, or "".
func textOf(in reflect.Value, name string) string {
	for _, f := range reflect.VisibleFields(in.Type()) {
		if v := in.FieldByIndex(f.Index); jsonName(f) == name && v.Kind() == reflect.String {
			return v.String()
		}
	}
	return ""
}
