package config

import (
	"fmt"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/access"
	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// AccessRule says which scopes of its resource an account, the members of a group or everyone may
// have. It sets exactly one of User, Group and Everyone, and exactly one of Scopes, All and None.
type AccessRule struct {
	User     string   `yaml:"user"` // the account ID, because a name may be given to another account later
	Group    string   `yaml:"group"`
	Everyone bool     `yaml:"everyone"`
	Scopes   []string `yaml:"scopes"`
	All      bool     `yaml:"all"`
	None     bool     `yaml:"none"`
	Approve  []string `yaml:"approve"` // tools, by name or pattern, each call of which they must approve
}

// maxResourceRules limits the rules of one resource. Every decision evaluates all of them.
const maxResourceRules = 100

// AccessRules returns the configured access rules as records.
func (c *Config) AccessRules() (out []storage.AccessRule) {
	for _, r := range c.Resources {
		of := storage.Resource{URI: r.URI, Scopes: r.Scopes}
		for _, rule := range r.Access {
			given := storage.AccessRule{
				Resource: policy.Canonical(r.URI), UserID: rule.User, Group: rule.Group, All: rule.All, Config: true,
				Approve: rule.Approve,
			}
			given.Scopes, _ = access.Grantable(of, rule.Scopes) // reported by validateAccess; fails closed
			out = append(out, given)
		}
	}
	return out
}

func (r *Resource) validateAccess(add func(string, string, ...any), key string) {
	if len(r.Access) > maxResourceRules {
		add(key+".access", "must have at most %d rules; use groups instead of single users", maxResourceRules)
	}
	of := storage.Resource{URI: r.URI, Scopes: r.Scopes}
	seen := map[[2]string]bool{} // subjects; everyone has neither user nor group
	for i, rule := range r.Access {
		key := fmt.Sprintf("%s.access[%d]", key, i)
		subject := [2]string{rule.User, rule.Group}
		switch {
		case count(rule.User != "", rule.Group != "", rule.Everyone) != 1:
			add(key, "must set exactly one of user, group and everyone")
		case rule.User != "" && !strings.HasPrefix(rule.User, identifier.User):
			add(key+".user", "%q is not the id of an account, such as usr_...; see: mcp-authd user show NAME", rule.User)
		case rule.Group != "" && !identifier.ValidGroup(rule.Group):
			add(key+".group", identifier.GroupFault, rule.Group)
		case seen[subject]:
			add(key, "duplicates an earlier rule for the same user, group or everyone")
		}
		seen[subject] = true
		if count(len(rule.Scopes) > 0, rule.All, rule.None) != 1 {
			add(key, "must set exactly one of scopes, all and none")
			continue
		}
		if _, err := access.Grantable(of, rule.Scopes); err != nil {
			add(key+".scopes", "%v", err)
		}
		if rule.None && len(rule.Approve) > 0 {
			add(key, "must not set approve with none")
		}
		if err := access.CheckTools(rule.Approve); err != nil {
			add(key+".approve", "%v", err)
		}
	}
}

// count returns how many facts are true.
func count(facts ...bool) (n int) {
	for _, fact := range facts {
		if fact {
			n++
		}
	}
	return n
}
