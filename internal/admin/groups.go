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
	Name          string           `json:"name" jsonschema:"name of the provider"`
	Groups        []string         `json:"groups,omitempty"`
	Organizations []string         `json:"organizations,omitempty"`
	Teams         []string         `json:"teams,omitempty"`
	SaidAt        time.Time        `json:"said_at" jsonschema:"when the provider last reported this"`
	Withheld      []WithheldScopes `json:"withheld,omitempty" jsonschema:"scopes that scope_rules withhold from the user at this provider"`
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
	Summary: "List the groups of a user at providers, and the scopes that rules withhold",
	Details: "Lists the groups, organizations and teams that each provider last reported for the user's sessions\n" +
		"there. Rules use them to decide who may sign in and which scopes a user may have (allow,\n" +
		"scope_rules). Change them at the provider; they count when the provider is asked again. For groups\n" +
		"of accounts here, see group list and user show.",
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
