// Package condition judges claims, which are others', by expressions, which are the operator's, and
// bounds what that costs. Providers (allow, scope_rules) and trust entries (match) use one language.
//
//	condition.go  the language
//	mentions.go   what an expression looks at
//	arguments.go  the same language over the arguments of a call
//	numbers.go    how it computes
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

// Bounds of a condition. It is the operator's, but the claims that it runs over are not:
// without loops inside loops and ranges, its time is bounded by their size.
const (
	maxExpression = 4096 // bytes
	maxNodes      = 512
	memoryBudget  = 1 << 16 // values
)

// functions are those that a condition may call, besides int and float: none makes large values of small ones, and
// each depends on the claims alone.
var functions = []string{
	"all", "none", "any", "one", "filter", "count", "len", "lower", "upper", "trim", "split", "indexOf", "hasPrefix",
	"hasSuffix",
	"string", "get", "first", "last", "keys", "values", "max", "min", "type",
}

// Condition is a compiled expression over claims.
type Condition struct {
	program *vm.Program
	source  string
	// Claims are those that it looks at, among them EveryClaim where it names one by a value.
	Claims []string
	// Open are the claims of which it is enough that nothing is told of them to make a part of the
	// expression true: a rule that shuts out for what a claim says lets in without it.
	Open []string
}

// Compile makes an expression ready. Its error says what is wrong, to the operator.
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
	_, err := expr.Compile(source, options...) // its types, as it was written
	if err == nil {
		program, err = expr.Compile(source, append(options, expr.Patch(checked{}))...)
	}
	if err != nil {
		return nil, errors.New(strings.TrimSpace(err.Error()))
	}
	if flat.problem != "" {
		return nil, errors.New(flat.problem)
	}
	tree, err := parser.Parse(source) // as it was written: compiling changes it
	if err != nil {
		return nil, err
	}
	seen := &mentions{root: root}
	ast.Walk(&tree.Node, seen)
	return &Condition{program: program, source: source, Claims: seen.named(), Open: seen.open()}, nil
}

// flatness finds what could take long: in all, a condition looks at each claim a fixed
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

// insideLoop permits what is about the element (#) alone.
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

// Holds reports whether the condition is true of the claims. What fails is not true, and
// neither is what looks at a claim that is kept from us: a person who is in more groups than a
// token names would else be in none of those that are shut out.
func (c *Condition) Holds(claims map[string]any) bool {
	if slices.ContainsFunc(elsewhere(claims), func(name string) bool { return strings.Contains(c.source, name) }) {
		return false
	}
	machine := vm.VM{MemoryBudget: memoryBudget}
	out, err := machine.Run(c.program, map[string]any{"claims": claims})
	truth, ok := out.(bool)
	return err == nil && ok && truth
}

// elsewhere are the claims that exist, but that a provider does not tell here (OpenID Connect
// Core §5.6.2); Entra has a short form for groups.
func elsewhere(claims map[string]any) (names []string) {
	references, _ := claims["_claim_names"].(map[string]any)
	names = slices.Collect(maps.Keys(references))
	if claim.True(claims, "hasgroups") {
		names = append(names, "groups")
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" || present(claims[name]) })
}

// present reports whether a claim says anything: an empty list beside a reference to a full
// one does not.
func present(value any) bool {
	empty, ok := value.([]any)
	return value != nil && (!ok || len(empty) > 0)
}
