package admin

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// administrators is the lock for changes that could remove the last administrator.
const administrators = "administrators"

// takeAway disables or deletes an account, or changes its role, unless it is the last
// administrator. Without one, no one could assign that role again. Commands with direct database
// access can assign it, so they may also remove the last one.
func (s *Service) takeAway(ctx context.Context, u storage.User, do func(context.Context) error) error {
	if _, acts := ctx.Value(actorKey{}).(Actor); !acts || RoleOf(u) != Administrator {
		return do(ctx)
	}
	return s.Alone(ctx, administrators, func(ctx context.Context) error {
		switch others, err := s.otherAdministrator(ctx, u.ID); {
		case err != nil:
			return err
		case !others:
			return users.ErrLast
		}
		return do(ctx)
	})
}

// otherAdministrator reports whether an administrator other than the given account can sign in.
func (s *Service) otherAdministrator(ctx context.Context, id string) (bool, error) {
	for after := ""; ; {
		found, err := s.Store.ListUsers(ctx, after, MaxPage)
		if err != nil {
			return false, err
		}
		for _, u := range found {
			if u.ID != id && RoleOf(u) == Administrator {
				return true, nil
			}
			after = u.Name
		}
		if len(found) < MaxPage {
			return false, nil
		}
	}
}
