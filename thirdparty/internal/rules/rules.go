// Package rules evaluates claims: who may sign in, and who may have which scopes. It sends no
// requests.
//
//	rules.go  the kinds of rules, and the two places to configure them
package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/internal/condition"
	"github.com/mcp-authd/mcp-authd/internal/scoperule"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Rules corresponds to thirdparty.Rules.
type Rules struct {
	Domains       []string
	Emails        []string
	Groups        []string
	Organizations []string
	Teams         []string
	Tenants       []string
	Expression    string
}

// ScopeRule corresponds to thirdparty.ScopeRule.
type ScopeRule struct {
	Resource   string
	Scopes     oauth.Scopes
	Groups     []string
	Expression string
}

// Facts describes the type of provider that the claims come from.
type Facts struct {
	Type           string   // its ID, for messages
	Kinds          []string // supported rules among organizations, teams and tenants
	HostedDomain   bool     // the claim hd, not the address, shows the account's organisation
	VerifiedEmails bool     // the provider vouches for the addresses in verified_emails
}

// Compiled holds compiled Rules.
type Compiled struct {
	Rules
	facts     Facts
	condition *condition.Condition
}

// Compile compiles rules. Its errors name the field, without the connector.
func Compile(field string, r Rules, f Facts) (*Compiled, error) {
	out := &Compiled{Rules: r, facts: f}
	for _, k := range []struct {
		name   string
		values []string
		narrow bool // supported by some types only
	}{
		{"domains", r.Domains, false}, {"emails", r.Emails, false}, {"groups", r.Groups, false},
		{"organizations", r.Organizations, true}, {"teams", r.Teams, true}, {"tenants", r.Tenants, true},
	} {
		if k.narrow && len(k.values) > 0 && !slices.Contains(f.Kinds, k.name) {
			return nil, fmt.Errorf("%s.%s: means nothing for type %s", field, k.name, f.Type)
		}
		for _, v := range k.values {
			if v == "" || v != strings.TrimSpace(v) {
				return nil, fmt.Errorf("%s.%s: %q is empty or has blanks around it", field, k.name, v)
			}
		}
	}
	if err := r.wellFormed(); err != nil {
		return nil, fmt.Errorf("%s.%w", field, err)
	}
	return out, out.compile(field, r.Expression)
}

// guid matches the ID of an Entra tenant.
var guid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// wellFormed rejects values that could never match.
func (r *Rules) wellFormed() error {
	for _, d := range r.Domains {
		if strings.ContainsAny(d, "@*/ ") || !strings.Contains(d, ".") {
			return fmt.Errorf("domains: %q is not a domain such as example.com", d)
		}
	}
	for _, m := range r.Emails {
		if _, domain, ok := strings.Cut(m, "@"); !ok || domain == "" {
			return fmt.Errorf("emails: %q is not an address", m)
		}
	}
	for _, t := range r.Teams {
		if org, team, ok := strings.Cut(t, "/"); !ok || org == "" || team == "" {
			return fmt.Errorf("teams: %q is not of the form organisation/team", t)
		}
	}
	for _, t := range r.Tenants {
		if !guid.MatchString(strings.ToLower(t)) {
			return fmt.Errorf("tenants: %q is not a tenant id (a GUID)", t)
		}
	}
	return nil
}

func (r *Compiled) compile(field, expression string) (err error) {
	if expression == "" {
		return nil
	}
	if r.condition, err = condition.Compile(expression); err != nil {
		return fmt.Errorf("%s.expression: %w", field, err)
	}
	return nil
}

// Check returns the first kind of rule that does not match, or "" if all match.
func (r *Compiled) Check(claims map[string]any) string {
	addresses := r.facts.addresses(claims)
	for _, rule := range []struct {
		kind    string
		allowed []string
		match   func() bool
	}{
		{"domains", r.Domains, func() bool { return r.domain(claims, addresses) }},
		{"emails", r.Emails, func() bool { return anyFold(r.Emails, addresses) }},
		{"groups", r.Groups, func() bool { return anyOf(r.Groups, claim.List(claims, "groups")) }},
		{"organizations", r.Organizations,
			func() bool { return anyFold(r.Organizations, claim.List(claims, "organizations")) }},
		{"teams", r.Teams, func() bool { return anyFold(r.Teams, claim.List(claims, "teams")) }},
		{"tenants", r.Tenants, func() bool { return anyFold(r.Tenants, claim.List(claims, "tid")) }},
	} {
		if len(rule.allowed) > 0 && !rule.match() {
			return rule.kind
		}
	}
	if r.condition != nil && !r.condition.Holds(claims) {
		return "expression"
	}
	return ""
}

// Claims returns the claims that the rules use.
func (r *Compiled) Claims() (out []string) {
	for _, rule := range []struct {
		given  []string
		claims []string
	}{
		{r.Domains, []string{"email", "email_verified"}}, {r.Emails, []string{"email", "email_verified"}},
		{r.Groups, []string{"groups"}},
		{r.Organizations, []string{"organizations"}}, {r.Teams, []string{"teams"}}, {r.Tenants, []string{"tid"}},
	} {
		if len(rule.given) > 0 {
			out = append(out, rule.claims...)
		}
	}
	if r.condition != nil {
		out = append(out, r.condition.Claims...)
	}
	return out
}

// addresses returns the verified e-mail addresses of a user.
func (f Facts) addresses(claims map[string]any) []string {
	var out []string
	if claim.True(claims, "email_verified") {
		out = append(out, claim.Text(claims, "email"))
	}
	if f.VerifiedEmails {
		out = append(out, claim.List(claims, "verified_emails")...)
	}
	return slices.DeleteFunc(out, func(a string) bool { return !isAddress(a) })
}

// isAddress reports whether s has text before and after a single @ (RFC 5321 §4.1.2). An address
// with two is rejected, because its domain is ambiguous.
func isAddress(s string) bool {
	local, domain, ok := strings.Cut(s, "@")
	return ok && local != "" && domain != "" && !strings.Contains(domain, "@")
}

// domain matches the domain of a verified address. At Google it matches the organisation of the
// account, because anyone can open an account with an address of a former employer.
func (r *Compiled) domain(claims map[string]any, addresses []string) bool {
	if r.facts.HostedDomain {
		if anyFold(r.Domains, claim.List(claims, "hd")) {
			return true
		}
		addresses = slices.DeleteFunc(slices.Clone(addresses),
			func(a string) bool { return !strings.HasSuffix(strings.ToLower(a), "@gmail.com") })
	}
	return slices.ContainsFunc(addresses, func(a string) bool {
		return anyFold(r.Domains, []string{a[strings.LastIndexByte(a, '@')+1:]})
	})
}

func anyOf(allowed, have []string) bool {
	return slices.ContainsFunc(have, func(h string) bool { return slices.Contains(allowed, h) })
}

// anyFold compares names without regard to case. Two non-ASCII letters fold to k and s, and an
// address with one of them is a different address. They are longer, so equal lengths exclude them.
func anyFold(allowed, have []string) bool {
	return slices.ContainsFunc(have, func(h string) bool {
		return slices.ContainsFunc(allowed, func(a string) bool { return len(a) == len(h) && strings.EqualFold(a, h) })
	})
}

// Scoped holds compiled ScopeRules.
type Scoped []scopeRule

type scopeRule struct {
	ScopeRule
	rules *Compiled
}

// CompileScopes compiles scope rules. Its errors name the field, without the connector.
func CompileScopes(list []ScopeRule, f Facts) (Scoped, error) {
	var out Scoped
	for i, s := range list {
		field := fmt.Sprintf("scope_rules[%d]", i)
		switch {
		case len(s.Scopes) == 0:
			return nil, fmt.Errorf("%s.scopes: is missing", field)
		case len(s.Groups) == 0 && s.Expression == "":
			return nil, fmt.Errorf("%s: needs groups or an expression", field)
		}
		r, err := Compile(field, Rules{Groups: s.Groups, Expression: s.Expression}, f)
		if err != nil {
			return nil, err
		}
		out = append(out, scopeRule{s, r})
	}
	return out, nil
}

// Permitted returns which of the scopes of a resource the rules leave to a user with the claims.
// withheldBy lists the indexes of the rules that withhold the others.
func (list Scoped) Permitted(
	claims map[string]any, resource string, scopes oauth.Scopes,
) (left oauth.Scopes, withheldBy []int) {
	held, all := make([]bool, len(list)), make([]scoperule.Rule, len(list))
	for i, s := range list {
		held[i] = s.rules.Check(claims) == ""
		all[i] = scoperule.Rule{Resource: s.Resource, Scopes: s.Scopes, Rank: scoperule.Group}
	}
	return scoperule.Permitted(all, held, resource, scopes)
}

// Claims returns the claims that the rules use.
func (list Scoped) Claims() (out []string) {
	for _, s := range list {
		out = append(out, s.rules.Claims()...)
	}
	return out
}
