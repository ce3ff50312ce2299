package admin

import (
	"context"
	"errors"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// maxReserved limits how many accounts with reserved names are shown, per kind.
const maxReserved = 5

// NameFindings warns of accounts whose name was accepted by an earlier version but looks like an
// ID.
func (s *Service) NameFindings(ctx context.Context) (f findings, _ error) {
	found, err := s.reserved(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range found {
		f.add("names", LevelWarning, "operations find this account by its id alone: make another account for the person, and "+
			"then: mcp-authd user delete "+u.ID, "the account %s has the name %q, which looks like an id or means something else",
			u.ID, u.Name)
	}
	if len(found) == 0 {
		f.add("names", LevelOK, "", "no account has a name that looks like an id")
	}
	return f, nil
}

// reserved returns accounts with a reserved name: one for each reserved word, and the first ones
// with each reserved prefix.
func (s *Service) reserved(ctx context.Context) (out []storage.User, _ error) {
	for _, word := range identifier.Words() {
		switch u, err := s.Store.UserByName(ctx, word); {
		case err == nil:
			out = append(out, u)
		case !errors.Is(err, storage.ErrNotFound):
			return nil, err
		}
	}
	for _, prefix := range identifier.Prefixes() {
		before := strings.TrimSuffix(prefix, "_") + "^" // sorts directly before the underscore
		found, err := s.Store.ListUsers(ctx, before, maxReserved)
		if err != nil {
			return nil, err
		}
		for _, u := range found {
			if strings.HasPrefix(strings.ToLower(u.Name), prefix) {
				out = append(out, u)
			}
		}
	}
	return out, nil
}
