package admin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/access"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// RuleSubject names whom a rule is about. Exactly one field is set.
type RuleSubject struct {
	User     string `json:"user,omitempty" jsonschema:"the name of an account"`
	Group    string `json:"group,omitempty" jsonschema:"the name of a group"`
	Everyone bool   `json:"everyone,omitempty" jsonschema:"all users without another rule"`
}

// Rule says which scopes of an MCP server a user, the members of a group or everyone may have.
type Rule struct {
	Resource string `json:"resource" jsonschema:"the URL of the MCP server"`
	RuleSubject
	Scopes []string `json:"scopes,omitempty" jsonschema:"which scopes they may have; none without all: nothing"`
	All    bool     `json:"all,omitempty" jsonschema:"every scope, also later ones"`
	// Approve lists tools, each call of which they must approve.
	Approve []string `json:"approve,omitempty" jsonschema:"the tools, by name or pattern, each call of which they must approve"`
	// SetAt is zero for a configured rule.
	SetAt  time.Time `json:"set_at,omitzero"`
	Config bool      `json:"configured,omitempty" jsonschema:"set in the configuration; can only be changed there"`
}

// String describes in one line what the rule gives.
func (r Rule) String() string { return r.scope() + approvalOf(r.Approve) }

func (r Rule) scope() string {
	switch {
	case r.All:
		return "every scope"
	case len(r.Scopes) == 0:
		return "nothing"
	}
	return strings.Join(r.Scopes, " ")
}

// approvalOf describes the tools to approve, after what may be used.
func approvalOf(tools []string) string {
	if len(tools) == 0 {
		return ""
	}
	return ", approving each call of " + strings.Join(tools, ", ")
}

// Subject describes whom the rule is about.
func (r Rule) Subject() string {
	return access.Subject(storage.AccessRule{UserID: r.User, UserName: r.User, Group: r.Group})
}

// NewRule is a rule to set. Exactly one of Scopes, All and None is set.
type NewRule struct {
	Resource string `json:"resource" jsonschema:"the URL of the MCP server"`
	RuleSubject
	Scopes []string `json:"scopes,omitempty" jsonschema:"the scopes that they may have"`
	All    bool     `json:"all,omitempty" jsonschema:"they may have every scope, including future ones"`
	None   bool     `json:"none,omitempty" jsonschema:"they may not use this MCP server"`
	// Approve lists tools, each call of which they must approve.
	Approve []string `json:"approve,omitempty" jsonschema:"tools, by name or a pattern such as delete_*, each call of which they must approve"`
}

// RuleOf names a rule.
type RuleOf struct {
	Resource string `json:"resource" jsonschema:"the URL of the MCP server"`
	RuleSubject
}

// RulesWanted selects rules.
type RulesWanted struct {
	Resource string `json:"resource,omitempty" jsonschema:"only for this MCP server"`
	User     string `json:"user,omitempty" jsonschema:"only rules for this account itself"`
	Group    string `json:"group,omitempty" jsonschema:"only rules for this group"`
}

// Operations on access rules.
var (
	RuleSet = define(Spec{
		Name: "rule set", Method: "PUT", Path: "/rules", Fresh: true,
		Summary: "Set the scopes that a user, a group or everyone may have at an MCP server",
		Details: "Sets the scopes that a user, a group or everyone may have at an MCP server. The rule for the user\n" +
			"decides. Without one, the rules for the user's groups decide together; without those, the rule for\n" +
			"everyone.\n" +
			"Once a rule names a group, users outside all named groups may not use the MCP server, unless there\n" +
			"is a rule for everyone. A rule for a user changes nothing for others.\n" +
			"A rule can also name tools each call of which these users must approve, in addition to the approvals\n" +
			"that the MCP server requires of everyone. It needs the gateway, or a guard that can ask for approvals.\n" +
			"A rule applies within seconds to new requests, and at the next refresh to connected applications;\n" +
			"grant revoke ends their access at once.",
	}, (*Service).setRule)
	RuleRemove = define(Spec{
		Name: "rule remove", Method: "POST", Path: "/rules/remove", Fresh: true, Takes: true,
		Summary: "Remove a rule; the remaining rules decide",
		Details: "Removes a rule. If it is the last rule for a group at an MCP server, everyone may use all scopes of\n" +
			"that MCP server.",
	}, (*Service).removeRule)
	RuleList = define(Spec{
		Name: "rule list", Method: "GET", Path: "/rules", Roles: readers,
		Summary: "List which users and groups may have which scopes",
		Details: "Lists the rules for accounts. An MCP server without rules is open to everyone. The rules of\n" +
			"providers for users who sign in there (scope_rules) are in the configuration, and apply in addition.",
	}, (*Service).listRules)
)

func (s *Service) setRule(ctx context.Context, in NewRule) (Rule, error) {
	rule, of, err := s.rule(ctx, RuleOf{in.Resource, in.RuleSubject})
	if err != nil {
		return Rule{}, err
	}
	ways := 0
	for _, given := range []bool{len(in.Scopes) > 0, in.All, in.None} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return Rule{}, fault(ErrInvalid, "say what %s may have there: the scopes, or all, or none", access.Subject(rule))
	}
	if rule.Scopes, err = access.Grantable(of, in.Scopes); err != nil {
		return Rule{}, fault(ErrInvalid, "%v", err)
	}
	if err := access.CheckTools(in.Approve); err != nil {
		return Rule{}, fault(ErrInvalid, "%v", err)
	}
	if in.None && len(in.Approve) > 0 {
		return Rule{}, fault(ErrInvalid, "a rule that allows nothing has no tools to approve")
	}
	rule.Approve = slices.Compact(slices.Sorted(slices.Values(in.Approve)))
	all, err := s.AccessRules(ctx)
	if err != nil {
		return Rule{}, err
	}
	if now, there := access.Find(all, rule); there && now.Config {
		return Rule{}, errConfigured(now)
	}
	rule.All, rule.SetAt = in.All, s.Now().UTC().Truncate(time.Millisecond)
	switch err := s.Store.PutAccessRule(ctx, rule); {
	case errors.Is(err, storage.ErrNotFound):
		return Rule{}, fault(ErrNotFound, "%s was removed by another command at this moment", access.Subject(rule))
	case errors.Is(err, storage.ErrFull):
		return Rule{}, fault(ErrConflict, "there are %s already: put people into groups, and remove rules about "+
			"single people", label.Count(storage.MaxAccessRules, "rule", "rules"))
	case err != nil:
		return Rule{}, err
	}
	out := viewRule(rule)
	s.changedRule(ctx, out, rule.UserID, "set")
	return out, nil
}

// rule returns a rule for a subject and an MCP server, without scopes.
func (s *Service) rule(ctx context.Context, in RuleOf) (rule storage.AccessRule, of storage.Resource, err error) {
	r, err := s.ruled(ctx, in.Resource)
	if err != nil {
		return rule, of, err
	}
	rule.Resource, of = policy.Canonical(r.URI), r
	switch {
	case in.User != "" && in.Group == "" && !in.Everyone:
		u, err := s.FindUser(ctx, in.User)
		rule.UserID, rule.UserName = u.ID, u.Name
		return rule, of, err
	case in.User == "" && in.Group != "" && !in.Everyone:
		g, err := s.findGroup(ctx, in.Group)
		rule.Group = g.Name
		return rule, of, err
	case in.User == "" && in.Group == "" && in.Everyone:
		return rule, of, nil
	}
	return rule, of, fault(ErrInvalid, "say whom the rule is about: a user, or a group, or everyone")
}

// ruled finds an MCP server that may have rules. The administration of this server cannot have any,
// because a rule could lock out the last administrator.
func (s *Service) ruled(ctx context.Context, uri string) (storage.Resource, error) {
	for _, own := range s.Own {
		if policy.Canonical(own.URI) == policy.Canonical(uri) {
			return own, fault(ErrInvalid, "%s is the administration of this server, which only people with a role may use: "+
				"a rule could take the last administrator out. Change roles instead: mcp-authd user set-role", own.URI)
		}
	}
	r, err := s.findResource(ctx, uri)
	return r.Resource, err
}

func (s *Service) removeRule(ctx context.Context, in RuleOf) (Rule, error) {
	rule, err := s.standing(ctx, in)
	if err != nil {
		return Rule{}, err
	}
	switch err := s.Store.DeleteAccessRule(ctx, rule); {
	case errors.Is(err, storage.ErrNotFound):
		return Rule{}, fault(ErrNotFound, "the rule was removed by another command at this moment")
	case err != nil:
		return Rule{}, err
	}
	out := viewRule(rule)
	s.changedRule(ctx, out, rule.UserID, "removed")
	return out, nil
}

// standing finds an existing rule, even if its MCP server no longer exists.
func (s *Service) standing(ctx context.Context, in RuleOf) (storage.AccessRule, error) {
	rule, _, err := s.rule(ctx, in)
	if errors.Is(err, ErrNotFound) {
		rule.Resource, rule.Group = policy.Canonical(in.Resource), in.Group
		if in.User != "" {
			u, err := s.FindUser(ctx, in.User)
			if err != nil {
				return rule, err
			}
			rule.UserID = u.ID
		}
	} else if err != nil {
		return rule, err
	}
	all, err := s.AccessRules(ctx)
	if err != nil {
		return rule, err
	}
	switch now, there := access.Find(all, rule); {
	case there && now.Config:
		return rule, errConfigured(now)
	case there:
		return now, nil
	}
	return rule, fault(ErrNotFound, "there is no such rule for %s; see: mcp-authd rule list", rule.Resource)
}

func (s *Service) listRules(ctx context.Context, in RulesWanted) (Page[Rule], error) {
	out := Page[Rule]{Items: []Rule{}}
	uri, userID := "", ""
	if in.Resource != "" {
		uri = policy.Canonical(in.Resource)
		if r, err := s.findResource(ctx, in.Resource); err == nil { // given by an alias
			uri = policy.Canonical(r.URI)
		}
	}
	if in.User != "" {
		u, err := s.FindUser(ctx, in.User)
		if err != nil {
			return out, err
		}
		userID = u.ID
	}
	all, err := s.AccessRules(ctx)
	for _, r := range all {
		if (uri == "" || r.Resource == uri) && (userID == "" || r.UserID == userID) &&
			(in.Group == "" || r.Group == in.Group) {
			out.Items = append(out.Items, viewRule(r))
		}
	}
	return out, err
}

// AccessRules returns the rules of the configuration and of the store, with account names.
func (s *Service) AccessRules(ctx context.Context) ([]storage.AccessRule, error) {
	all, err := access.List(ctx, s.Store, s.configuredRules())
	for i, r := range all {
		if r.Config && r.UserID != "" {
			all[i].UserName = s.Names().User(ctx, r.UserID)
		}
	}
	return all, err
}

func (s *Service) configuredRules() []storage.AccessRule {
	if s.Config == nil {
		return nil
	}
	return s.Config.AccessRules()
}

// errConfigured returns the error for a change to a configured rule.
func errConfigured(r storage.AccessRule) error {
	return fault(ErrConflict, "the rule about %s at %s is in the configuration (resources[].access): change it there",
		access.Subject(r), r.Resource)
}

func viewRule(r storage.AccessRule) Rule {
	return Rule{
		Resource: r.Resource, RuleSubject: RuleSubject{r.UserName, r.Group, r.UserID == "" && r.Group == ""},
		Scopes: r.Scopes, All: r.All, Approve: r.Approve, SetAt: r.SetAt, Config: r.Config,
	}
}

func (s *Service) changedRule(ctx context.Context, r Rule, userID, what string) {
	s.Audit.Record(ctx, audit.AccessChanged, slog.String("resource", r.Resource), slog.String("user", userID),
		slog.String("group", r.Group), slog.String("scope", r.scope()),
		slog.String("approve", strings.Join(r.Approve, " ")), slog.String("what", what))
}

// UserAccess lists the scopes that the access rules permit a user at an MCP server.
type UserAccess struct {
	Resource string   `json:"resource"`
	Scopes   []string `json:"scopes,omitempty" jsonschema:"scopes that the user may have; may be empty"`
	By       string   `json:"by" jsonschema:"the rules that decide"`
	// Approve lists tools, each call of which the user must approve.
	Approve   []string `json:"approve,omitempty" jsonschema:"the tools, by name or pattern, each call of which the user must approve"`
	ApproveBy string   `json:"approve_by,omitempty" jsonschema:"the rules that require the approvals"`
}

// String describes in one line what the user may use, and by which rules.
func (a UserAccess) String() string {
	text := cmp.Or(strings.Join(a.Scopes, " "), "nothing") + " (" + a.By + ")"
	if a.ApproveBy != "" {
		text += approvalOf(a.Approve) + " (" + a.ApproveBy + ")"
	}
	return text
}

// addAccess says which groups an account is in, and what it may have of each MCP server that has rules.
func (s *Service) addAccess(ctx context.Context, u *UserDetails) error {
	rules, err := s.AccessRules(ctx)
	if err != nil {
		return err
	}
	m, err := s.Store.Membership(ctx, u.ID)
	if err != nil {
		return err
	}
	provided, err := s.providerGroupsOf(ctx, u.ID)
	if err != nil {
		return err
	}
	for _, g := range provided {
		u.ProviderGroups = append(u.ProviderGroups, UserProviderGroup{g.Group, ProviderGroup{g.Connector, g.Name}})
	}
	m = access.Join(m, provided)
	u.Groups = m.Groups
	if len(rules) == 0 {
		return nil
	}
	known, err := s.Resources(ctx)
	if err != nil {
		return err
	}
	catalog, err := policy.NewCatalogue(known)
	if err != nil {
		return err
	}
	for _, r := range catalog.Resources() {
		v := access.Explain(rules, m, r.URI, policy.ResourceScopes(r))
		if !v.Ruled {
			continue
		}
		by := strings.Join(v.By, ", ")
		if by == "" {
			by = "rules name groups, and the person is in none of them"
			if len(v.Scopes) > 0 {
				by = "no rule is about the person"
			}
		}
		u.Access = append(u.Access, UserAccess{r.URI, v.Scopes, by, v.Approve, strings.Join(v.ApproveBy, ", ")})
	}
	return nil
}
