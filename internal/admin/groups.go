package admin

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// UserMembership is a user's membership as a provider last reported it.
type UserMembership struct {
	Connector     string           `json:"connector" jsonschema:"the id of the provider"`
	Name          string           `json:"name" jsonschema:"of the provider"`
	Groups        []string         `json:"groups,omitempty"`
	Organizations []string         `json:"organizations,omitempty"`
	Teams         []string         `json:"teams,omitempty"`
	SaidAt        time.Time        `json:"said_at" jsonschema:"when the provider last said so"`
	Withheld      []WithheldScopes `json:"withheld,omitempty" jsonschema:"what scope_rules keep from the person who signs in there"`
}

// WithheldScopes are the scopes of a resource that a user may not have.
type WithheldScopes struct {
	Resource string   `json:"resource"`
	Scopes   []string `json:"scopes"`
}

// UserGroups shows a user's groups at providers. They cannot be changed here. For groups of
// accounts, see GroupAdd.
var UserGroups = define(Spec{
	Name: "user groups", Method: "GET", Path: "/users/{name}/groups", Roles: readers,
	Summary: "List the groups of a person at providers, and the scopes that they lack for it",
	Details: "Lists what each provider where the person has a session has said last of their groups, organizations and\n" +
		"teams, by which rules decide who may sign in and which scopes they may have (allow, scope_rules). They are\n" +
		"changed at the provider, and counted when it is asked again. Groups of accounts here: group list, user show.",
}, (*Service).listGroups)

func (s *Service) listGroups(ctx context.Context, in UserName) (Page[UserMembership], error) {
	u, err := s.FindUser(ctx, in.Name)
	if err != nil {
		return Page[UserMembership]{}, err
	}
	d, err := s.Delegation()
	if err != nil {
		return Page[UserMembership]{}, err
	}
	known, err := s.Resources(ctx)
	if err != nil {
		return Page[UserMembership]{}, err
	}
	offered := map[string]oauth.Scopes{}
	for _, r := range known {
		for _, sc := range r.Scopes {
			offered[r.URI] = append(offered[r.URI], sc.Name)
		}
	}
	all, err := d.Memberships(ctx, u.ID, offered)
	out := Page[UserMembership]{Items: make([]UserMembership, 0, len(all))}
	for _, m := range all {
		v := UserMembership{
			Connector: m.Connector, Name: m.Name, Groups: m.Groups, Organizations: m.Organizations, Teams: m.Teams,
			SaidAt: m.SaidAt,
		}
		for _, uri := range slices.Sorted(maps.Keys(m.Withheld)) {
			v.Withheld = append(v.Withheld, WithheldScopes{uri, m.Withheld[uri]})
		}
		out.Items = append(out.Items, v)
	}
	return out, err
}
