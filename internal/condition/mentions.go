package condition

import (
	"slices"

	"github.com/expr-lang/expr/ast"
)

// EveryClaim stands for all claims, if a condition uses claims without naming them.
const EveryClaim = "*"

// mentions collects the claims that a condition uses.
type mentions struct {
	root    string // the name of the root: claims
	claims  []string
	bare    int      // uses of the root, minus uses of a single claim
	denied  []string // claims that must not have a value
	guarded []string // claims that must be present
}

// open returns the claims whose absence makes a part of the condition true.
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
		if n.Value == m.root {
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
		if name := m.claimOf(side); name != "" && (left || right) {
			m.guarded = append(m.guarded, name)
		}
	}
	if !left && !right {
		m.deny(n.Left, n.Right)
	}
}

func (m *mentions) deny(sides ...ast.Node) {
	for _, side := range sides {
		if name := m.claimOf(side); name != "" {
			m.denied = append(m.denied, name)
		}
	}
}

// claimOf returns the claim that an expression accesses, or "".
func (m *mentions) claimOf(n ast.Node) string {
	member, ok := n.(*ast.MemberNode)
	if !ok {
		return ""
	}
	all, ok := member.Node.(*ast.IdentifierNode)
	name, fixed := member.Property.(*ast.StringNode)
	if !ok || !fixed || all.Value != m.root {
		return ""
	}
	return name.Value
}

func (m *mentions) member(of, property ast.Node) {
	all, ok := of.(*ast.IdentifierNode)
	name, fixed := property.(*ast.StringNode)
	if ok && fixed && all.Value == m.root {
		m.claims, m.bare = append(m.claims, name.Value), m.bare-1
	}
}

// named returns the mentioned claims.
func (m *mentions) named() []string {
	if m.bare > 0 {
		return append(m.claims, EveryClaim)
	}
	return m.claims
}
