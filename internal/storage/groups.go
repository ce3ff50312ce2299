package storage

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// The limits on groups and access rules.
const (
	MaxGroups         = 500
	MaxProviderGroups = 2000
	MaxAccessRules    = 2000
	MaxRuleTools      = 16  // in Approve of an access rule
	MaxRuleTool       = 128 // bytes of one of them
)

// Group is a group of accounts. Its members are users, never other groups.
type Group struct {
	Name        string
	Description string
	CreatedAt   time.Time
	// Members and ProviderGroups count what was put into the group. Only ListGroups sets them.
	Members        int
	ProviderGroups int
}

// ProviderGroup is a group at an identity provider. Its people are members of a group here for as long as they have a
// session at the provider and the provider names the group.
type ProviderGroup struct {
	Group     string // here
	Connector string // the id of the provider in the configuration
	Name      string // at the provider
	AddedAt   time.Time
}

// Member is an account in a group.
type Member struct {
	UserID, Name string
	AddedAt      time.Time
}

// Membership says which groups an account was put into.
type Membership struct {
	UserID, Name string
	Groups       []string // in order
}

// Groups stores groups of accounts. A deleted account leaves its groups.
type Groups interface {
	// CreateGroup adds a group. It returns ErrExists if the name is taken, ErrFull if there are
	// MaxGroups.
	CreateGroup(ctx context.Context, g Group) error
	// DeleteGroup removes a group with its memberships. It returns ErrNotFound, or ErrInUse if an
	// access rule names it: without the rule, an MCP server would be open to more users.
	DeleteGroup(ctx context.Context, name string) error
	// ListGroups returns all groups by name.
	ListGroups(ctx context.Context) ([]Group, error)
	// GroupMembers returns up to limit members of a group with a name greater than after, by name.
	GroupMembers(ctx context.Context, group, after string, limit int) ([]Member, error)
	// AddMember adds an account to a group. Adding a member again is not an error. It returns
	// ErrNotFound for an unknown group or account.
	AddMember(ctx context.Context, group, userID string, now time.Time) error
	// RemoveMember removes an account from a group. It returns ErrNotFound if it is not a member.
	RemoveMember(ctx context.Context, group, userID string) error
	// Membership returns the name and the groups of an account, or ErrNotFound.
	Membership(ctx context.Context, userID string) (Membership, error)
}

// ProviderGroups holds which groups at providers are in which groups here. They go with their group.
type ProviderGroups interface {
	// AddProviderGroup puts a provider group into a group, in which it may be already. ErrNotFound when there is no
	// such group; ErrFull when there are MaxProviderGroups.
	AddProviderGroup(ctx context.Context, g ProviderGroup) error
	// RemoveProviderGroup takes a provider group out of a group. ErrNotFound when it is not in it.
	RemoveProviderGroup(ctx context.Context, g ProviderGroup) error
	// ListProviderGroups returns all provider groups by group, connector and name.
	ListProviderGroups(ctx context.Context) ([]ProviderGroup, error)
}

// AccessRule says which scopes of a resource a person, a group or everyone may have, and which tool calls they must
// approve. Package internal/access decides by it.
type AccessRule struct {
	Resource string // canonical
	// The subject: an account or a group; everyone if both are empty.
	UserID   string
	Group    string
	UserName string // the name of the account, in lists of rules
	Scopes   oauth.Scopes
	All      bool // every scope of the resource
	// Approve lists tools, by name or pattern, each call of which the user must approve.
	Approve []string
	SetAt   time.Time
	Config  bool // set in the configuration, not stored
}

// AccessRules stores the rules that were set by command. Deleting an account deletes its rules.
type AccessRules interface {
	// PutAccessRule stores a rule. It replaces a rule with the same resource and subject. It
	// returns ErrNotFound for an unknown account or group, and ErrFull if there are MaxAccessRules.
	PutAccessRule(ctx context.Context, r AccessRule) error
	// DeleteAccessRule removes the rule with the resource and the subject of r. It returns
	// ErrNotFound if there is no such rule.
	DeleteAccessRule(ctx context.Context, r AccessRule) error
	// ListAccessRules returns all rules with the names of their accounts, by resource and subject.
	ListAccessRules(ctx context.Context) ([]AccessRule, error)
}
