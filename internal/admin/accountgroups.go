package admin

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Group is a group of accounts.
type Group struct {
	Name        string    `json:"group"`
	Description string    `json:"description,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	Members     int       `json:"members" jsonschema:"how many accounts were put into it"`
	// ProviderGroups are those whose people are members besides.
	ProviderGroups []ProviderGroup `json:"provider_groups,omitempty" jsonschema:"groups at providers whose users are also members"`
}

// ProviderGroup is a group at an identity provider.
type ProviderGroup struct {
	Provider string `json:"provider" jsonschema:"the id of the provider"`
	Name     string `json:"provider_group" jsonschema:"the group, as the provider's groups claim names it"`
}

// String returns the provider and its group, such as okta: engineering.
func (g ProviderGroup) String() string { return g.Provider + ": " + g.Name }

// GroupName names a group.
type GroupName struct {
	Name string `json:"group" jsonschema:"the name of the group"`
}

// GroupMember is an account in a group.
type GroupMember struct {
	ID      string    `json:"id"`
	Name    string    `json:"user_name"`
	AddedAt time.Time `json:"added_at"`
}

// GroupDetails describes a group with its members and the rules that name it.
type GroupDetails struct {
	Group
	Users []GroupMember `json:"users"`
	Rules []Rule        `json:"rules"`
}

// GroupMembers are accounts, and people of a provider, to be put into a group.
type GroupMembers struct {
	Group       string   `json:"group" jsonschema:"the name of the group, of small letters, digits and - . _"`
	Users       []string `json:"users,omitempty" jsonschema:"names of the accounts to put into it"`
	Description string   `json:"description,omitempty" jsonschema:"purpose of a new group"`
	ProviderMembers
}

// ProviderMembers are the people in a group at a provider.
type ProviderMembers struct {
	Provider      string `json:"provider,omitempty" jsonschema:"with provider_group: the id of the provider"`
	ProviderGroup string `json:"provider_group,omitempty" jsonschema:"users that the provider puts in this group (its claim groups) are members"`
}

// GroupLeavers is the input for removing accounts from a group.
type GroupLeavers struct {
	Group string   `json:"group" jsonschema:"the name of the group"`
	Users []string `json:"users,omitempty" jsonschema:"names of the accounts to take out of it"`
	ProviderMembers
}

// GroupChanged is a group after a change.
type GroupChanged struct {
	Group
	ProviderMembers
	Created bool     `json:"created,omitempty" jsonschema:"the group was created"`
	Users   []string `json:"users,omitempty" jsonschema:"the accounts that were put in or taken out"`
}

// Operations on groups of accounts.
var (
	GroupAdd = define(Spec{
		Name: "group add", Method: "POST", Path: "/groups", Fresh: true,
		Summary: "Put accounts into a group; creates the group if it is new",
		Details: "Puts accounts into a group, and creates the group if it is new. Rules set the scopes that the\n" +
			"members may use at an MCP server: see rule set. Members are accounts, not groups.\n" +
			"With a provider and one of its groups, the members include every user whom the provider put in that\n" +
			"group when it was last asked about their session.",
	}, (*Service).addToGroup)
	GroupRemove = define(Spec{
		Name: "group remove", Method: "POST", Path: "/groups/{group}/remove", Fresh: true, Takes: true,
		Summary: "Take accounts out of a group",
	}, (*Service).removeFromGroup)
	GroupDelete = define(Spec{
		Name: "group delete", Method: "DELETE", Path: "/groups/{group}", Fresh: true, Takes: true,
		Summary: "Delete a group that is in no rule",
	}, (*Service).deleteGroup)
	GroupList = define(Spec{
		Name: "group list", Method: "GET", Path: "/groups", Roles: readers, Summary: "List the groups of accounts",
	}, (*Service).listAccountGroups)
	GroupShow = define(Spec{
		Name: "group show", Method: "GET", Path: "/groups/{group}", Roles: readers,
		Summary: "Show a group with its members and rules",
	}, (*Service).showGroup)
)

const (
	maxGroupText  = 200
	maxGroupUsers = 100 // per call
)

func (s *Service) addToGroup(ctx context.Context, in GroupMembers) (GroupChanged, error) {
	switch {
	case !identifier.ValidGroup(in.Group):
		return GroupChanged{}, fault(ErrInvalid, identifier.GroupFault, in.Group)
	case len(in.Description) > maxGroupText:
		return GroupChanged{}, fault(ErrInvalid, "the description must have at most %d bytes", maxGroupText)
	}
	members, err := s.membersOf(ctx, in.Group, in.Users)
	if err != nil {
		return GroupChanged{}, err
	}
	if err := s.checkProvider(in.ProviderMembers); err != nil {
		return GroupChanged{}, err
	}
	out := GroupChanged{ProviderMembers: in.ProviderMembers, Created: true}
	g := storage.Group{Name: in.Group, Description: in.Description, CreatedAt: s.Now().UTC().Truncate(time.Millisecond)}
	switch err := s.Store.CreateGroup(ctx, g); {
	case errors.Is(err, storage.ErrExists):
		if out.Created = false; len(members) == 0 && in.Provider == "" {
			return out, fault(ErrConflict, "the group %s is there already; name the users to add: mcp-authd group add %s USER",
				in.Group, in.Group)
		}
	case errors.Is(err, storage.ErrFull):
		return out, fault(ErrConflict, "there are %s already; delete one: mcp-authd group delete",
			label.Count(storage.MaxGroups, "group", "groups"))
	case err != nil:
		return out, err
	default:
		s.changedGroup(ctx, in.Group, "", "created")
	}
	for _, u := range members {
		if err := s.Store.AddMember(ctx, in.Group, u.ID, s.Now()); err != nil {
			return out, groupFault(err, in.Group, u.Name)
		}
		s.changedGroup(ctx, in.Group, u.ID, "added")
		out.Users = append(out.Users, u.Name)
	}
	if err := s.addProviderGroup(ctx, in.Group, in.ProviderMembers); err != nil {
		return out, err
	}
	out.Group, err = s.findGroup(ctx, in.Group)
	return out, err
}

// membersOf finds the accounts to add to a group. Groups cannot be members of groups.
func (s *Service) membersOf(ctx context.Context, group string, names []string) (out []storage.User, err error) {
	if len(names) > maxGroupUsers {
		return nil, fault(ErrInvalid, "name at most %d users at a time", maxGroupUsers)
	}
	for _, name := range names {
		u, err := s.FindUser(ctx, name)
		if errors.Is(err, ErrNotFound) {
			if _, known := s.findGroup(ctx, name); known == nil || name == group {
				return nil, fault(ErrInvalid, "%q is a group: the members of a group are people. Add its users instead; see: "+
					"mcp-authd group show %s", name, name)
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

func (s *Service) removeFromGroup(ctx context.Context, in GroupLeavers) (GroupChanged, error) {
	out := GroupChanged{ProviderMembers: in.ProviderMembers}
	if len(in.Users) == 0 && in.Provider == "" && in.ProviderGroup == "" {
		return out, fault(ErrInvalid, "name the users to take out of %s; to delete the group: mcp-authd group delete %s",
			in.Group, in.Group)
	}
	if _, err := s.findGroup(ctx, in.Group); err != nil {
		return out, err
	}
	members, err := s.membersOf(ctx, in.Group, in.Users)
	if err != nil {
		return out, err
	}
	for _, u := range members {
		if err := s.Store.RemoveMember(ctx, in.Group, u.ID); err != nil {
			return out, groupFault(err, in.Group, u.Name)
		}
		s.changedGroup(ctx, in.Group, u.ID, "removed")
		out.Users = append(out.Users, u.Name)
	}
	if err := s.removeProviderGroup(ctx, in.Group, in.ProviderMembers); err != nil {
		return out, err
	}
	out.Group, err = s.findGroup(ctx, in.Group)
	return out, err
}

// groupFault explains why an account could not be added to or removed from a group.
func groupFault(err error, group, user string) error {
	if errors.Is(err, storage.ErrNotFound) {
		return fault(ErrNotFound, "%s is not in the group %s; see: mcp-authd group show %s", user, group, group)
	}
	return err
}

func (s *Service) deleteGroup(ctx context.Context, in GroupName) (Group, error) {
	g, err := s.findGroup(ctx, in.Name)
	if err != nil {
		return g, err
	}
	for _, r := range s.configuredRules() {
		if r.Group == in.Name {
			return g, fault(ErrConflict, "the configuration has a rule for the group %s at %s; remove it from resources[].access first",
				in.Name, r.Resource)
		}
	}
	switch err := s.Store.DeleteGroup(ctx, in.Name); {
	case errors.Is(err, storage.ErrInUse):
		return g, fault(ErrConflict, "rules name the group %s, and without them an MCP server would be open to more people; "+
			"change those first: mcp-authd group show %s", in.Name, in.Name)
	case errors.Is(err, storage.ErrNotFound):
		return g, unknownGroup(in.Name)
	case err != nil:
		return g, err
	}
	s.changedGroup(ctx, in.Name, "", "deleted")
	return g, nil
}

func (s *Service) listAccountGroups(ctx context.Context, _ None) (Page[Group], error) {
	all, err := s.accountGroups(ctx)
	return Page[Group]{Items: all}, err
}

// accountGroups returns all groups with their provider groups.
func (s *Service) accountGroups(ctx context.Context) ([]Group, error) {
	out := []Group{}
	all, err := s.Store.ListGroups(ctx)
	if err != nil {
		return out, err
	}
	provided, err := s.Store.ListProviderGroups(ctx)
	for _, g := range all {
		v := Group{Name: g.Name, Description: g.Description, CreatedAt: g.CreatedAt, Members: g.Members}
		for _, p := range provided {
			if p.Group == g.Name {
				v.ProviderGroups = append(v.ProviderGroups, ProviderGroup{p.Connector, p.Name})
			}
		}
		out = append(out, v)
	}
	return out, err
}

func (s *Service) showGroup(ctx context.Context, in GroupName) (GroupDetails, error) {
	g, err := s.findGroup(ctx, in.Name)
	out := GroupDetails{Group: g, Users: []GroupMember{}, Rules: []Rule{}}
	if err != nil {
		return out, err
	}
	members, err := toTheEnd(func(after string, limit int) ([]storage.Member, error) {
		return s.Store.GroupMembers(ctx, in.Name, after, limit)
	}, func(m storage.Member) string { return m.Name })
	if err != nil {
		return out, err
	}
	for _, m := range members {
		out.Users = append(out.Users, GroupMember{ID: m.UserID, Name: m.Name, AddedAt: m.AddedAt})
	}
	rules, err := s.listRules(ctx, RulesWanted{Group: in.Name})
	out.Rules = append(out.Rules, rules.Items...)
	return out, err
}

func (s *Service) findGroup(ctx context.Context, name string) (Group, error) {
	all, err := s.accountGroups(ctx)
	if err != nil {
		return Group{}, err
	}
	for _, g := range all {
		if g.Name == name {
			return g, nil
		}
	}
	return Group{}, unknownGroup(name)
}

func unknownGroup(name string) error {
	return fault(ErrNotFound, "there is no group %q; see: mcp-authd group list, or make it: mcp-authd group add %s", name,
		name)
}

func (s *Service) changedGroup(ctx context.Context, group, userID, what string) {
	s.Audit.Record(ctx, audit.GroupChanged, slog.String("group", group), slog.String("user", userID),
		slog.String("what", what))
}
