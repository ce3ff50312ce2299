package thirdparty

import (
	"fmt"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// everyClaim stands for all claims, for a condition that looks at them without naming them.
const everyClaim = "*"

// claims are those that the rules look at.
func (r *rules) claims() (out []string) {
	for _, rule := range []struct {
		given  []string
		claims []string
	}{
		{r.Domains, []string{"email", "email_verified"}}, {r.Emails, []string{"email", "email_verified"}}, {r.Groups, []string{"groups"}},
		{r.Organizations, []string{"organizations"}}, {r.Teams, []string{"teams"}}, {r.Tenants, []string{"tid"}},
	} {
		if len(rule.given) > 0 {
			out = append(out, rule.claims...)
		}
	}
	if r.condition != nil {
		out = append(out, r.condition.claims...)
	}
	return out
}

// ruled are the claims that any rule of the connector looks at.
func (c *connector) ruled() []string {
	out := c.allow.claims()
	for _, s := range c.scopeRules {
		out = append(out, s.rules.claims()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unheard reports whether rules look at what user info does not tell. Such claims are heard
// in an ID token alone, so that only a renewal brings them up to date (OpenID Connect Core
// §12.2): else who was put out of a group would stay.
func (c *connector) unheard(p profile) bool {
	said := p.Parts["id_token"]
	if said == nil {
		return false
	}
	told := p.Parts["userinfo"]
	return slices.ContainsFunc(c.ruled(), func(claim string) bool {
		if claim != everyClaim {
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

// Warnings are what is allowed and probably not meant: a rule that shuts people out for what
// a claim says, and lets in those of whom it says nothing.
func (c Connector) Warnings() (out []string) {
	expressions := []string{c.Allow.Expression}
	for _, s := range c.ScopeRules {
		expressions = append(expressions, s.Expression)
	}
	for _, source := range expressions {
		if source == "" {
			continue
		}
		compiled, err := compile(source)
		if err != nil {
			continue // Validate says it
		}
		for _, name := range compiled.open {
			out = append(out, fmt.Sprintf("thirdparty %s: the expression %q holds for everybody of whom the claim %s is not told; write claims.%s != nil && ... if that is not meant",
				c.ID, source, name, name))
		}
	}
	return out
}

// mentions collects the claims that a condition looks at.
type mentions struct {
	claims  []string
	bare    int      // how often the claims are looked at, less how often one of them is
	denied  []string // claims that must not say something
	guarded []string // claims that must not be missing
}

// open are the claims whose absence makes a part of the condition true.
func (m *mentions) open() (out []string) {
	for _, name := range m.denied {
		if !slices.Contains(m.guarded, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Visit implements ast.Visitor.
func (m *mentions) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value == "claims" {
			m.bare++
		}
	case *ast.MemberNode:
		m.member(n.Node, n.Property)
	case *ast.UnaryNode:
		if inner, ok := n.Node.(*ast.BinaryNode); ok && (n.Operator == "!" || n.Operator == "not") {
			m.deny(inner.Left, inner.Right)
		}
	case *ast.BinaryNode:
		m.compare(n)
	case *ast.BuiltinNode:
		if n.Name == "get" && len(n.Arguments) == 2 {
			m.member(n.Arguments[0], n.Arguments[1])
		}
	}
}

func (m *mentions) compare(n *ast.BinaryNode) {
	_, left := n.Left.(*ast.NilNode)
	_, right := n.Right.(*ast.NilNode)
	if n.Operator != "!=" {
		return
	}
	for _, side := range []ast.Node{n.Left, n.Right} {
		if name := claimOf(side); name != "" && (left || right) {
			m.guarded = append(m.guarded, name)
		}
	}
	if !left && !right {
		m.deny(n.Left, n.Right)
	}
}

func (m *mentions) deny(sides ...ast.Node) {
	for _, side := range sides {
		if name := claimOf(side); name != "" {
			m.denied = append(m.denied, name)
		}
	}
}

// claimOf is the claim that an expression is, "" for none.
func claimOf(n ast.Node) string {
	member, ok := n.(*ast.MemberNode)
	if !ok {
		return ""
	}
	all, ok := member.Node.(*ast.IdentifierNode)
	name, fixed := member.Property.(*ast.StringNode)
	if !ok || !fixed || all.Value != "claims" {
		return ""
	}
	return name.Value
}

func (m *mentions) member(of, property ast.Node) {
	all, ok := of.(*ast.IdentifierNode)
	name, fixed := property.(*ast.StringNode)
	if ok && fixed && all.Value == "claims" {
		m.claims, m.bare = append(m.claims, name.Value), m.bare-1
	}
}

// named are the claims that were mentioned.
func (m *mentions) named() []string {
	if m.bare > 0 {
		return append(m.claims, everyClaim)
	}
	return m.claims
}
