package config

import (
	"fmt"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/access"
	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// AccessRule says which scopes of its resource an account, the members of a group or everyone may have: one of User,
// Group and Everyone, and one of Scopes, All and None.
type AccessRule struct {
	User     string   `yaml:"user"`
	Group    string   `yaml:"group"`
	Everyone bool     `yaml:"everyone"`
	Scopes   []string `yaml:"scopes"`
	All      bool     `yaml:"all"`
	None     bool     `yaml:"none"`
}

// maxResourceRules bounds the rules of one resource: each names an account that has to be looked up.
const maxResourceRules = 100

// AccessRules returns the configured access rules as records. They name accounts, which are not looked up here.
func (c *Config) AccessRules() (out []storage.AccessRule) {
	for _, r := range c.Resources {
		of := storage.Resource{URI: r.URI, Scopes: r.Scopes}
		for _, rule := range r.Access {
			given := storage.AccessRule{
				Resource: policy.Canonical(r.URI), UserName: rule.User, Group: rule.Group, All: rule.All, Config: true,
			}
			given.Scopes, _ = access.Grantable(of, rule.Scopes) // validated
			out = append(out, given)
		}
	}
	return out
}

func (r *Resource) validateAccess(add func(string, string, ...any), key string) {
	if len(r.Access) > maxResourceRules {
		add(key+".access", "are more than %d rules: put people into groups", maxResourceRules)
	}
	of := storage.Resource{URI: r.URI, Scopes: r.Scopes}
	seen := map[[2]string]bool{} // subjects; neither a user nor a group: everyone
	for i, rule := range r.Access {
		key := fmt.Sprintf("%s.access[%d]", key, i)
		subject := [2]string{strings.ToLower(rule.User), rule.Group}
		switch {
		case count(rule.User != "", rule.Group != "", rule.Everyone) != 1:
			add(key, "must say whom it is about: user, or group, or everyone: true")
		case rule.User != "" && !identifier.WellFormed(rule.User):
			add(key+".user", "%q is not the name of an account", rule.User)
		case rule.Group != "" && !identifier.ValidGroup(rule.Group):
			add(key+".group", "%q must be small letters, digits and - . _, at most 64, such as editors", rule.Group)
		case seen[subject]:
			add(key, "there is a rule about the same people before it")
		}
		seen[subject] = true
		if count(len(rule.Scopes) > 0, rule.All, rule.None) != 1 {
			add(key, "must say what they may have: scopes, or all: true, or none: true")
			continue
		}
		if _, err := access.Grantable(of, rule.Scopes); err != nil {
			add(key+".scopes", "%v", err)
		}
	}
}

// count is how many hold.
func count(facts ...bool) (n int) {
	for _, fact := range facts {
		if fact {
			n++
		}
	}
	return n
}
