package thirdparty

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// errNotAllowed: the rules of the connector do not hold for the person. Errors that wrap
// it name the kind of rule, for the log; which values would have done is nobody's business.
var errNotAllowed = errors.New("the rules of the connector do not admit this person")

// rules are Rules, ready to be applied.
type rules struct {
	Rules
	preset    *preset
	condition *condition
}

// newRules compiles rules; the errors name the field, without the connector.
func newRules(field string, r Rules, p *preset) (*rules, error) {
	out := &rules{Rules: r, preset: p}
	for _, k := range []struct {
		name   string
		values []string
		narrow bool // means something for some types only
	}{
		{"domains", r.Domains, false}, {"emails", r.Emails, false}, {"groups", r.Groups, false},
		{"organizations", r.Organizations, true}, {"teams", r.Teams, true}, {"tenants", r.Tenants, true},
	} {
		if k.narrow && len(k.values) > 0 && !slices.Contains(p.rules, k.name) {
			return nil, fmt.Errorf("%s.%s: means nothing for type %s", field, k.name, p.ID)
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

// wellFormed finds values that could never match.
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

func (r *rules) compile(field, expression string) (err error) {
	if expression == "" {
		return nil
	}
	if r.condition, err = compile(expression); err != nil {
		return fmt.Errorf("%s.expression: %w", field, err)
	}
	return nil
}

// check reports the first kind of rule that does not hold, "" when all do.
func (r *rules) check(claims map[string]any) string {
	addresses := r.preset.addresses(claims)
	for _, rule := range []struct {
		kind    string
		allowed []string
		match   func() bool
	}{
		{"domains", r.Domains, func() bool { return r.domain(claims, addresses) }},
		{"emails", r.Emails, func() bool { return anyFold(r.Emails, addresses) }},
		{"groups", r.Groups, func() bool { return anyOf(r.Groups, list(claims, "groups")) }},
		{"organizations", r.Organizations, func() bool { return anyFold(r.Organizations, list(claims, "organizations")) }},
		{"teams", r.Teams, func() bool { return anyFold(r.Teams, list(claims, "teams")) }},
		{"tenants", r.Tenants, func() bool { return anyFold(r.Tenants, list(claims, "tid")) }},
	} {
		if len(rule.allowed) > 0 && !rule.match() {
			return rule.kind
		}
	}
	if r.condition != nil && !r.condition.holds(claims) {
		return "expression"
	}
	return ""
}

// addresses are the verified e-mail addresses of a person.
func (p *preset) addresses(claims map[string]any) []string {
	var out []string
	if truth(claims, "email_verified") {
		out = append(out, text(claims, "email"))
	}
	if p.github {
		out = append(out, list(claims, "verified_emails")...)
	}
	return slices.DeleteFunc(out, func(a string) bool { return !isAddress(a) })
}

// isAddress: an address has something before and after its @ (RFC 5321 §4.1.2). One with
// two is nobody's; which of them the domain follows is a matter of opinion.
func isAddress(s string) bool {
	local, domain, ok := strings.Cut(s, "@")
	return ok && local != "" && domain != "" && !strings.Contains(domain, "@")
}

// domain: of a verified address; at Google of the organisation that the account belongs
// to, for anybody may open an account with an address of a former employer.
func (r *rules) domain(claims map[string]any, addresses []string) bool {
	if r.preset.hostedDomain {
		if anyFold(r.Domains, list(claims, "hd")) {
			return true
		}
		addresses = slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return !strings.HasSuffix(strings.ToLower(a), "@gmail.com") })
	}
	return slices.ContainsFunc(addresses, func(a string) bool {
		return anyFold(r.Domains, []string{a[strings.LastIndexByte(a, '@')+1:]})
	})
}

func anyOf(allowed, have []string) bool {
	return slices.ContainsFunc(have, func(h string) bool { return slices.Contains(allowed, h) })
}

// anyFold compares names for which case does not matter. Two letters that are not ASCII
// fold to k and s, and an address with one of them is another person's: they are longer.
func anyFold(allowed, have []string) bool {
	return slices.ContainsFunc(have, func(h string) bool {
		return slices.ContainsFunc(allowed, func(a string) bool { return len(a) == len(h) && strings.EqualFold(a, h) })
	})
}

// scopeRule is a ScopeRule, ready to be applied.
type scopeRule struct {
	ScopeRule
	rules *rules
}

func newScopeRules(list []ScopeRule, p *preset) ([]scopeRule, error) {
	var out []scopeRule
	for i, s := range list {
		field := fmt.Sprintf("scope_rules[%d]", i)
		switch {
		case len(s.Scopes) == 0:
			return nil, fmt.Errorf("%s.scopes: is missing", field)
		case len(s.Groups) == 0 && s.Expression == "":
			return nil, fmt.Errorf("%s: needs groups or an expression", field)
		}
		r, err := newRules(field, Rules{Groups: s.Groups, Expression: s.Expression}, p)
		if err != nil {
			return nil, err
		}
		out = append(out, scopeRule{s, r})
	}
	return out, nil
}

// permitted returns which of the scopes the rules leave to a person with the claims.
func permitted(list []scopeRule, claims map[string]any, resource string, scopes oauth.Scopes) oauth.Scopes {
	held := make([]bool, len(list))
	for i, s := range list {
		held[i] = s.rules.check(claims) == ""
	}
	return slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool {
		kept := false // to some people, and this is none of them
		for i, s := range list {
			if s.Resource != "" && s.Resource != resource || !s.Scopes.Has(scope) {
				continue
			}
			if held[i] {
				return false
			}
			kept = true
		}
		return kept
	})
}
