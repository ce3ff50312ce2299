package condition

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
)

// Arguments is a compiled expression over the arguments of a tool call. A client chooses the
// arguments, and the expression says which calls to guard. Therefore an undecidable expression is
// true here, while it is false for claims.
type Arguments struct {
	c     *Condition
	texts texts
}

// CompileArguments compiles an expression over arguments. Its error is for the administrator.
func CompileArguments(source string) (*Arguments, error) {
	c, err := compile(source, "arguments")
	if err != nil {
		return nil, err
	}
	tree, err := parser.Parse(source) // the source, because compiling changes the tree
	if err != nil {
		return nil, err
	}
	a := &Arguments{c: c}
	ast.Walk(&tree.Node, &a.texts)
	return a, nil
}

// texts holds the texts in an expression, including the names of members at any depth.
type texts []string

// Visit implements ast.Visitor.
func (t *texts) Visit(node *ast.Node) {
	if n, ok := (*node).(*ast.StringNode); ok {
		*t = append(*t, n.Value)
	}
}

// foldsInto reports whether a member name differs only in case from a text of the expression. Some
// JSON decoders, such as Go's, treat the two as equal, so the MCP server may see a value that the
// expression does not.
func (t texts) foldsInto(name string) bool {
	return slices.ContainsFunc(t, func(known string) bool { return name != known && strings.EqualFold(name, known) })
}

// Names returns the arguments that the expression accesses by name.
func (a *Arguments) Names() []string { return a.c.Claims }

// MayHold reports whether the expression is true for the arguments or cannot be decided. It cannot
// be decided if it fails, for example because an argument is missing or of another type. The same
// applies if a number, at any depth, has too many digits to compare, or a member name differs only
// in case from a name in the expression. Numbers must be json.Number.
func (a *Arguments) MayHold(arguments map[string]any) bool {
	plain, err := a.texts.numbers(arguments)
	if err != nil {
		return true
	}
	machine := vm.VM{MemoryBudget: memoryBudget}
	out, err := machine.Run(a.c.program, map[string]any{"arguments": plain})
	truth, ok := out.(bool)
	return err != nil || !ok || truth
}

// numbers returns a copy of a value with comparable numbers.
func (t texts) numbers(value any) (any, error) {
	switch v := value.(type) {
	case json.Number:
		return number(v.String())
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = t.numbers(v[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			if t.foldsInto(k) {
				return nil, errors.New("a name differs in case from one that is looked at")
			}
			var err error
			if out[k], err = t.numbers(v[k]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}
