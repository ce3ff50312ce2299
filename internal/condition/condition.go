// Package condition evaluates an administrator's expressions over untrusted claims, with bounded
// cost. Providers (allow, scope_rules) and trusted issuers (match) use the same language.
//
//	condition.go  the language
//	mentions.go   the claims that an expression uses
//	arguments.go  the same language for the arguments of a call
//	numbers.go    arithmetic
package condition

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/mcp-authd/mcp-authd/internal/claim"
)

// Limits of a condition. The expression is the administrator's, but the claims are not: without
// nested loops and ranges, the size of the claims bounds its time.
const (
	maxExpression = 4096 // bytes
	maxNodes      = 512
	memoryBudget  = 1 << 16 // values
)

// functions lists the functions that a condition may call, besides int and float. None makes large
// values from small ones, and each depends only on the claims.
var functions = []string{
	"all", "none", "any", "one", "filter", "count", "len", "lower", "upper", "trim", "split", "indexOf", "hasPrefix",
	"hasSuffix",
	"string", "get", "first", "last", "keys", "values", "max", "min", "type",
}

// Condition is a compiled expression over claims.
type Condition struct {
	program *vm.Program
	source  string
	// Claims lists the claims that it uses. EveryClaim is included if it selects a claim by a
	// value.
	Claims []string
	// Open lists the claims whose absence alone makes a part of the expression true. A rule that
	// excludes users by such a claim admits users without it.
	Open []string
}

// Compile compiles an expression. Its error is for the administrator.
func Compile(source string) (*Condition, error) { return compile(source, "claims") }

func compile(source, root string) (*Condition, error) {
	if len(source) > maxExpression {
		return nil, fmt.Errorf("is longer than %d bytes", maxExpression)
	}
	flat := &flatness{root: root}
	options := []expr.Option{
		expr.Env(map[string]any{root: map[string]any{}}), expr.AsBool(), expr.MaxNodes(maxNodes),
		expr.DisableAllBuiltins(), expr.Patch(flat),
	}
	for _, f := range functions {
		options = append(options, expr.EnableBuiltin(f))
	}
	options = append(options, exact()...)
	var program *vm.Program
	_, err := expr.Compile(source, options...) // for the types in the source
	if err == nil {
		program, err = expr.Compile(source, append(options, expr.Patch(checked{}))...)
	}
	if err != nil {
		return nil, errors.New(strings.TrimSpace(err.Error()))
	}
	if flat.problem != "" {
		return nil, errors.New(flat.problem)
	}
	tree, err := parser.Parse(source) // the source, because compiling changes the tree
	if err != nil {
		return nil, err
	}
	seen := &mentions{root: root}
	ast.Walk(&tree.Node, seen)
	return &Condition{program: program, source: source, Claims: seen.named(), Open: seen.open()}, nil
}

// flatness finds constructs that could take long. A condition may look at each claim only a fixed
// number of times.
type flatness struct{ root, problem string }

// Visit implements ast.Visitor.
func (f *flatness) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value == "$env" {
			f.problem = "names $env; all there is are " + f.root
		}
	case *ast.BinaryNode:
		if n.Operator == ".." {
			f.problem = "has a range (..), which conditions do not need"
		}
		if _, fixed := n.Right.(*ast.StringNode); n.Operator == "matches" && !fixed {
			f.problem = "matches a pattern that is not written in it"
		}
	case *ast.PredicateNode:
		inner := &insideLoop{}
		ast.Walk(&n.Node, inner)
		f.problem = cmp.Or(inner.problem, f.problem)
	}
}

// insideLoop permits only expressions about the element (#).
type insideLoop struct{ problem string }

// Visit implements ast.Visitor.
func (l *insideLoop) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.PredicateNode:
		l.problem = "has a loop inside a loop"
	case *ast.IdentifierNode:
		if n.Value == "int" || n.Value == "float" {
			return
		}
		l.problem = fmt.Sprintf("names %s inside a loop, where only # can be used", n.Value)
	}
}

// Holds reports whether the condition is true for the claims. A failing condition is false. A
// condition is also false if it uses a claim that the token only references. Otherwise a user with
// more groups than fit into a token would pass as a member of none.
func (c *Condition) Holds(claims map[string]any) bool {
	if slices.ContainsFunc(elsewhere(claims), func(name string) bool { return strings.Contains(c.source, name) }) {
		return false
	}
	machine := vm.VM{MemoryBudget: memoryBudget}
	out, err := machine.Run(c.program, map[string]any{"claims": claims})
	truth, ok := out.(bool)
	return err == nil && ok && truth
}

// elsewhere returns the claims that exist but are not in the token (OpenID Connect Core §5.6.2).
// Entra has a short form for groups.
func elsewhere(claims map[string]any) (names []string) {
	references, _ := claims["_claim_names"].(map[string]any)
	names = slices.Collect(maps.Keys(references))
	if claim.True(claims, "hasgroups") {
		names = append(names, "groups")
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || present(claims[name]) })
}

// present reports whether a claim has a value. An empty list beside a reference to the full list
// does not count.
func present(value any) bool {
	empty, ok := value.([]any)
	return value != nil && (!ok || len(empty) > 0)
}
