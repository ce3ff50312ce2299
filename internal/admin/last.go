package admin

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/storage"
)

// administrators is what changes wait for that may leave none of them.
const administrators = "administrators"

// takeAway disables an account, deletes it or changes its role, unless it is the last administrator's: nobody
// could give that role again. Who has the database can, and may take it away.
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

// otherAdministrator reports whether there is one beside an account who can sign in.
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
