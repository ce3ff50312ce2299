// Package access decides which scopes of an MCP server an account may have, by the access rules.
package access

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/scoperule"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Store provides groups and rules.
type Store interface {
	ListAccessRules(ctx context.Context) ([]storage.AccessRule, error)
	Membership(ctx context.Context, userID string) (storage.Membership, error)
}

// Providers knows the groups of people at identity providers.
type Providers interface {
	// ProviderGroups returns which provider groups make a person a member of one of the groups.
	ProviderGroups(ctx context.Context, userID string, groups []string) ([]storage.ProviderGroup, error)
}

// Rules are the access rules of the configuration and of the store, as of at most recent.TTL ago.
// The members of groups are read each time.
type Rules struct {
	store     Store
	providers Providers // nil: no provider is configured
	current   recent.Value[[]storage.AccessRule]
}

// New returns the rules of a configuration and of a store. Without providers, provider groups have no members.
func New(store Store, providers Providers, configured []storage.AccessRule, now func() time.Time) *Rules {
	read := func(ctx context.Context) ([]storage.AccessRule, error) { return List(ctx, store, configured) }
	return &Rules{
		store: store, providers: providers,
		current: recent.Value[[]storage.AccessRule]{Read: read, Now: now, Strict: true},
	}
}

// List returns the configured rules, then the stored ones that they do not override.
func List(ctx context.Context, store Store, configured []storage.AccessRule) ([]storage.AccessRule, error) {
	stored, err := store.ListAccessRules(ctx)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(configured)
	for _, r := range stored {
		if _, overridden := Find(configured, r); !overridden {
			out = append(out, r)
		}
	}
	return out, nil
}

// Find returns the rule with the same resource and subject as like.
func Find(rules []storage.AccessRule, like storage.AccessRule) (storage.AccessRule, bool) {
	i := slices.IndexFunc(rules, func(r storage.AccessRule) bool {
		return r.Resource == like.Resource && r.UserID == like.UserID && r.Group == like.Group
	})
	if i < 0 {
		return storage.AccessRule{}, false
	}
	return rules[i], true
}

// Any reports whether there are any rules.
func (r *Rules) Any(ctx context.Context) (bool, error) {
	all, err := r.current.Load(ctx)
	return len(all) > 0, err
}

// Permit returns the scopes of a resource that the rules permit an account. For administrators, it
// also names the rules that withhold the others. If there are rules, a deleted account has no
// permissions. Providers are asked only if their answer can change the permissions.
func (r *Rules) Permit(
	ctx context.Context, userID, resource string, scopes oauth.Scopes,
) (left oauth.Scopes, withheldBy string, err error) {
	all, err := r.current.Load(ctx)
	if err != nil {
		return nil, "", err
	}
	about := Of(all, resource)
	if len(about) == 0 {
		return scopes, "", nil
	}
	m, err := r.store.Membership(ctx, userID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, "the account is gone", nil
	case err != nil:
		return nil, "", err
	}
	rules, holds := compile(about, m)
	known := r.providers == nil
	if !known && !settled(rules, holds, resource, scopes) {
		if err := r.join(ctx, about, &m); err != nil {
			return nil, "", err
		}
		known = true
		rules, holds = compile(about, m)
	}
	left, by := scoperule.Permitted(rules, holds, resource, scopes)
	return left, blame(about, holds, by, known), nil
}

// settled reports whether further groups of the person change nothing about any of the scopes.
func settled(rules []scoperule.Rule, holds []bool, resource string, scopes oauth.Scopes) bool {
	return !slices.ContainsFunc(scopes, func(scope string) bool {
		return !scoperule.Settled(rules, holds, resource, scope)
	})
}

// joined returns a membership with the groups of the rules that the person is in by a provider group.
func (r *Rules) joined(
	ctx context.Context, about []storage.AccessRule, m storage.Membership,
) (storage.Membership, error) {
	if r.providers == nil {
		return m, nil
	}
	err := r.join(ctx, about, &m)
	return m, err
}

// personal reports whether a rule is about the person alone. It overrides the rules about groups.
func personal(about []storage.AccessRule, userID string) bool {
	return slices.ContainsFunc(about, func(r storage.AccessRule) bool { return r.UserID != "" && r.UserID == userID })
}

// join adds the groups of the rules that the person is a member of by a provider group.
func (r *Rules) join(ctx context.Context, about []storage.AccessRule, m *storage.Membership) error {
	var others []string
	for _, rule := range about {
		if rule.Group != "" && !slices.Contains(m.Groups, rule.Group) {
			others = append(others, rule.Group)
		}
	}
	by, err := r.providers.ProviderGroups(ctx, m.UserID, others)
	*m = Join(*m, by)
	return err
}

// Join returns a membership with the groups that provider groups add.
func Join(m storage.Membership, by []storage.ProviderGroup) storage.Membership {
	m.Groups = slices.Clone(m.Groups)
	for _, g := range by {
		m.Groups = append(m.Groups, g.Group)
	}
	slices.Sort(m.Groups)
	m.Groups = slices.Compact(m.Groups)
	return m
}

// blame names the rules that withhold something: rules that hold for the person, or rules about groups without them.
// If known is false, the person may be in those groups by a provider group.
func blame(about []storage.AccessRule, holds []bool, by []int, known bool) string {
	var held, foreign []string
	for _, i := range by {
		if holds[i] {
			held = append(held, Subject(about[i]))
		} else {
			foreign = append(foreign, Subject(about[i]))
		}
	}
	word := func(about []string) string {
		if len(about) == 1 {
			return "the access rule for "
		}
		return "the access rules for "
	}
	var out []string
	if len(held) > 0 {
		out = append(out, word(held)+strings.Join(held, ", "))
	}
	if len(foreign) > 0 {
		foreigners := word(foreign) + strings.Join(foreign, ", ")
		if known {
			foreigners += ", of which the person is not a member"
		}
		out = append(out, foreigners)
	}
	return strings.Join(out, "; ")
}

// Of returns the rules for a resource.
func Of(rules []storage.AccessRule, resource string) (out []storage.AccessRule) {
	for _, r := range rules {
		if r.Resource == resource {
			out = append(out, r)
		}
	}
	return out
}

func compile(rules []storage.AccessRule, m storage.Membership) (out []scoperule.Rule, holds []bool) {
	for _, r := range rules {
		rule := scoperule.Rule{
			Resource: r.Resource, Scopes: r.Scopes, All: r.All, Rank: scoperule.Everyone, Whole: true,
		}
		hold := true
		switch {
		case r.UserID != "":
			rule.Rank, hold = scoperule.Person, r.UserID == m.UserID
		case r.Group != "":
			rule.Rank, hold = scoperule.Group, slices.Contains(m.Groups, r.Group)
		}
		out, holds = append(out, rule), append(holds, hold)
	}
	return out, holds
}

// Verdict says which scopes of a resource an account may have, and why.
type Verdict struct {
	Scopes oauth.Scopes
	By     []string // the subjects of the deciding rules, such as group staff; empty if no rule applies
	Ruled  bool     // the resource has rules
	// Approve lists the tools, by name or pattern, whose calls the user must approve, and ApproveBy
	// the subjects of the rules that demand it.
	Approve   []string
	ApproveBy []string
}

// Explain returns the scopes of a resource that its rules permit an account, and why.
func Explain(rules []storage.AccessRule, m storage.Membership, resource string, scopes oauth.Scopes) (v Verdict) {
	about := Of(rules, resource)
	list, holds := compile(about, m)
	v.Ruled = len(about) > 0
	for _, scope := range scopes {
		allowed, by := scoperule.Decide(list, holds, resource, scope)
		if allowed {
			v.Scopes = append(v.Scopes, scope)
		}
		if by != scoperule.None && !slices.Contains(v.By, Subject(about[by])) {
			v.By = append(v.By, Subject(about[by]))
		}
	}
	if len(v.Scopes) > 0 {
		v.Approve, v.ApproveBy = approvals(about, list, holds)
	}
	return v
}

// Subject describes whom a rule is about.
func Subject(r storage.AccessRule) string {
	switch {
	case r.UserID != "":
		return "user " + cmp.Or(r.UserName, r.UserID)
	case r.Group != "":
		return "group " + r.Group
	}
	return "everyone"
}
