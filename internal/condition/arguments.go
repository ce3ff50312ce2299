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

// Arguments is a compiled expression over the arguments of a call of a tool, which are the client's: it says what is
// to be guarded. So what cannot be told is true here, and not false as of claims.
type Arguments struct {
	c     *Condition
	texts texts
}

// CompileArguments makes an expression over arguments ready. Its error says what is wrong, to the operator.
func CompileArguments(source string) (*Arguments, error) {
	c, err := compile(source, "arguments")
	if err != nil {
		return nil, err
	}
	tree, err := parser.Parse(source) // as it was written: compiling changes it
	if err != nil {
		return nil, err
	}
	a := &Arguments{c: c}
	ast.Walk(&tree.Node, &a.texts)
	return a, nil
}

// texts are those that an expression names, among them the names of members at any depth.
type texts []string

// Visit implements ast.Visitor.
func (t *texts) Visit(node *ast.Node) {
	if n, ok := (*node).(*ast.StringNode); ok {
		*t = append(*t, n.Value)
	}
}

// foldsInto reports whether a name of a member differs from one that the expression goes by in case alone. Some
// decoders, as that of Go, take the two for one, so that the MCP server may see what the expression does not.
func (t texts) foldsInto(name string) bool {
	return slices.ContainsFunc(t, func(known string) bool { return name != known && strings.EqualFold(name, known) })
}

// Names are the arguments that it looks at by name.
func (a *Arguments) Names() []string { return a.c.Claims }

// MayHold reports whether the expression is true of the arguments, or fails, as over one that is missing or of another
// type, or whether at any depth a number has more digits than can be compared, or a member a name that it goes by in
// other case. Numbers among them are json.Number.
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

// numbers returns a value whose numbers can be compared.
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
