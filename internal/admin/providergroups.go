package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const maxProviderGroup = 500 // bytes

// checkProvider refuses people of a provider that is not configured, or of a group that cannot be.
func (s *Service) checkProvider(in ProviderMembers) error {
	odd := func(r rune) bool { return unicode.IsControl(r) }
	switch {
	case in == ProviderMembers{}:
		return nil
	case in.Provider == "" || in.ProviderGroup == "":
		return errHalfProvider
	case len(in.ProviderGroup) > maxProviderGroup || !utf8.ValidString(in.ProviderGroup) ||
		strings.ContainsFunc(in.ProviderGroup, odd) || in.ProviderGroup != strings.TrimSpace(in.ProviderGroup):
		return fault(ErrInvalid, "%q cannot be a group at a provider: it must have at most %d bytes, no control characters, "+
			"and no blanks around it", in.ProviderGroup, maxProviderGroup)
	case !slices.Contains(s.connectors(), in.Provider):
		return fault(ErrNotFound, "there is no provider %q under thirdparty in the configuration; see: mcp-authd provider list",
			in.Provider)
	}
	return nil
}

var errHalfProvider = fault(ErrInvalid, "name both the provider and its group")

// connectors returns the ids of the configured providers.
func (s *Service) connectors() (ids []string) {
	if s.Config == nil {
		return nil
	}
	for _, c := range s.Config.ThirdParty {
		ids = append(ids, c.ID)
	}
	return ids
}

// addProviderGroup puts the people of a provider into a group. No provider: does nothing.
func (s *Service) addProviderGroup(ctx context.Context, group string, in ProviderMembers) error {
	if in.Provider == "" {
		return nil
	}
	err := s.Store.AddProviderGroup(ctx, storage.ProviderGroup{
		Group: group, Connector: in.Provider, Name: in.ProviderGroup, AddedAt: s.Now().UTC().Truncate(time.Millisecond),
	})
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return unknownGroup(group)
	case errors.Is(err, storage.ErrFull):
		return fault(ErrConflict, "there are %s already; take one out: mcp-authd group remove",
			label.Count(storage.MaxProviderGroups, "provider group", "provider groups"))
	case err != nil:
		return err
	}
	s.changedProviderGroup(ctx, group, in, "added")
	return nil
}

// removeProviderGroup takes the people of a provider out of a group, also of one that is not configured any more. No
// provider: does nothing.
func (s *Service) removeProviderGroup(ctx context.Context, group string, in ProviderMembers) error {
	switch {
	case in == ProviderMembers{}:
		return nil
	case in.Provider == "" || in.ProviderGroup == "":
		return errHalfProvider
	}
	err := s.Store.RemoveProviderGroup(ctx, storage.ProviderGroup{
		Group: group, Connector: in.Provider, Name: in.ProviderGroup,
	})
	if errors.Is(err, storage.ErrNotFound) {
		return fault(ErrNotFound, "the group %q of the provider %s is not in the group %s; see: mcp-authd group show %s",
			in.ProviderGroup, in.Provider, group, group)
	}
	if err == nil {
		s.changedProviderGroup(ctx, group, in, "removed")
	}
	return err
}

func (s *Service) changedProviderGroup(ctx context.Context, group string, in ProviderMembers, what string) {
	s.Audit.Record(ctx, audit.GroupChanged, slog.String("group", group), slog.String("connector", in.Provider),
		slog.String("provider_group", in.ProviderGroup), slog.String("what", what))
}

// UserProviderGroup is a provider group that makes a person a member of a group.
type UserProviderGroup struct {
	Group string `json:"group" jsonschema:"group that this makes the user a member of"`
	ProviderGroup
}

// providerGroupsOf returns by which provider groups a person is in groups, as the providers said last. It asks no
// provider.
func (s *Service) providerGroupsOf(ctx context.Context, userID string) (out []storage.ProviderGroup, err error) {
	all, err := s.Store.ListProviderGroups(ctx)
	if err != nil || len(all) == 0 || len(s.connectors()) == 0 {
		return nil, err
	}
	d, err := s.Delegation()
	if err != nil {
		return nil, err
	}
	said, err := d.Memberships(ctx, userID, nil)
	if err != nil {
		return nil, err
	}
	for _, g := range all {
		for _, m := range said {
			if m.Connector == g.Connector && slices.Contains(m.Groups, g.Name) {
				out = append(out, g)
				break
			}
		}
	}
	return out, nil
}

// ProviderGroupFindings says which provider groups have nobody in them, since their provider is not configured.
func ProviderGroupFindings(groups []storage.ProviderGroup, connectors []string) (out []string) {
	for _, g := range groups {
		if !slices.Contains(connectors, g.Connector) {
			out = append(out, fmt.Sprintf("the provider group %[2]q gives the group %[1]s no member: the provider %[3]s is not "+
				"configured. Take it out: group remove, with this provider and provider group",
				g.Group, g.Name, g.Connector))
		}
	}
	return out
}
