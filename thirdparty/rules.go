package thirdparty

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/condition"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/rules"
)

// notAllowedError names the account that the rules of a connector refuse, and the kind of rule. The
// allowed values do not belong in the log.
type notAllowedError struct{ connector, rule, subject, account string }

func (e *notAllowedError) Error() string {
	return fmt.Sprintf("the rule allow.%s of the provider %q does not admit %s", e.rule, e.connector,
		cmp.Or(e.account, e.subject))
}

// compiled holds the compiled rules of a connector.
type compiled struct {
	allow  *rules.Compiled
	scopes rules.Scoped
}

// compile compiles the rules. Its errors name the field.
func (c *Connector) compile() (out compiled, err error) {
	traits, _ := provider.TraitsOf(c.Type)
	facts := rules.Facts{
		Type: traits.ID, Kinds: traits.Rules, HostedDomain: traits.HostedDomain, VerifiedEmails: traits.VerifiedEmails,
	}
	if out.allow, err = rules.Compile("allow", rules.Rules(c.Allow), facts); err != nil {
		return out, err
	}
	var list []rules.ScopeRule
	for _, s := range c.ScopeRules {
		list = append(list, rules.ScopeRule(s))
	}
	out.scopes, err = rules.CompileScopes(list, facts)
	return out, err
}

// claims returns the claims that rules or groups here use.
func (c *connector) claims() []string {
	out := append(c.rules.allow.Claims(), c.rules.scopes.Claims()...)
	if c.grouped.Load() {
		out = append(out, groupsClaim)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// admit checks the rules for who may sign in. It returns a *notAllowedError if they refuse p.
func (c *connector) admit(p provider.Profile) error {
	if kind := c.rules.allow.Check(p.Claims); kind != "" {
		return &notAllowedError{connector: c.ID, rule: kind, subject: p.Subject, account: p.Label}
	}
	return nil
}

// permit returns which of the scopes of a resource the user may have, and the keys of the rules
// that withhold the others.
func (c *connector) permit(
	p provider.Profile, resource string, scopes oauth.Scopes,
) (left oauth.Scopes, withheldBy string) {
	left, by := c.rules.scopes.Permitted(p.Claims, resource, scopes)
	if len(by) == 0 {
		return left, ""
	}
	keys := make([]string, len(by))
	for i, n := range by {
		keys[i] = fmt.Sprintf("scope_rules[%d]", n)
	}
	return left, fmt.Sprintf("%s of the provider %q", strings.Join(keys, ", "), c.ID)
}

// unheard reports whether rules or groups here use claims that user info omits. Only an ID token has such
// claims, so only a renewal updates them (OpenID Connect Core §12.2). Otherwise a user who was removed from
// a group would keep access.
func (c *connector) unheard(p provider.Profile) bool {
	said := p.Parts["id_token"]
	if said == nil {
		return false
	}
	told := p.Parts["userinfo"]
	return slices.ContainsFunc(c.claims(), func(claim string) bool {
		if claim != condition.EveryClaim {
			_, ok := told[claim]
			return !ok
		}
		for name := range said {
			if _, ok := told[name]; !ok {
				return true
			}
		}
		return false
	})
}

// Warnings lists rules that are valid but probably unintended: they exclude users by a claim, and
// admit users who lack the claim.
func (c Connector) Warnings() (out []string) {
	expressions := []string{c.Allow.Expression}
	for _, s := range c.ScopeRules {
		expressions = append(expressions, s.Expression)
	}
	for _, source := range expressions {
		compiled, err := condition.Compile(source)
		if err != nil {
			continue // Validate reports the error
		}
		for _, name := range compiled.Open {
			out = append(out,
				fmt.Sprintf(
					"thirdparty %s: the expression %q is true for everyone without the claim %s; write claims.%s != nil && ... if that is not meant",
					c.ID, source, name, name))
		}
	}
	return out
}
