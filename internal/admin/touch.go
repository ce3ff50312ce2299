package admin

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// mayTouch returns ErrForbidden if the actor may use an operation, but not on this object. Such an
// object is an account or open invitation that has a role or groups, or an input that assigns one.
// The check applies to the operation itself, and to making, accepting and declining a proposal for
// it.
func (s *Service) mayTouch(ctx context.Context, v Verb, in reflect.Value) error {
	if v.Spec().Noun() != "user" || mayGiveRoles(ctx) == nil {
		return nil
	}
	for _, f := range reflect.VisibleFields(v.Input()) {
		value := in.FieldByIndex(f.Index)
		if value.Kind() == reflect.Slice && jsonName(f) == "groups" && value.Len() > 0 {
			return mayGiveRoles(ctx)
		}
		if value.Kind() != reflect.String {
			continue
		}
		var err error
		switch jsonName(f) {
		case "name":
			err = s.mayTouchName(ctx, value.String())
		case "role":
			if _, err = givenRole(ctx, value.String()); !errors.Is(err, ErrForbidden) {
				err = nil // the operation reports an invalid role
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mayTouchName is mayTouch for everything with a name or ID: an account and an invitation.
func (s *Service) mayTouchName(ctx context.Context, name string) error {
	u, err := s.Users.Find(ctx, name)
	switch {
	case err == nil && u.Role != "": // even while it is disabled
		return mayGiveRoles(ctx)
	case err == nil:
		name = u.Name
	case !errors.Is(err, users.ErrUnknown):
		return err
	}
	l, err := s.invitation(ctx, name)
	if err == nil && (l.Role != "" || len(l.Groups) > 0) {
		err = mayGiveRoles(ctx)
	}
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}

// invitation returns the open invitation of a name, or storage.ErrNotFound.
func (s *Service) invitation(ctx context.Context, name string) (storage.OneTimeLink, error) {
	for after := (storage.Hash{}); ; {
		found, err := s.Users.OpenLinks(ctx, after, MaxPage)
		if err != nil {
			return storage.OneTimeLink{}, err
		}
		for _, l := range found {
			if l.Kind == storage.LinkInvite && strings.EqualFold(l.Name, name) {
				return l, nil
			}
			after = l.Hash
		}
		if len(found) < MaxPage {
			return storage.OneTimeLink{}, storage.ErrNotFound
		}
	}
}
