package condition

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/expr-lang/expr/vm"
)

// Arguments is a compiled expression over the arguments of a call of a tool, which are the client's: it says what is
// to be guarded. So what cannot be told is true here, and not false as of claims.
type Arguments struct{ c *Condition }

// CompileArguments makes an expression over arguments ready. Its error says what is wrong, to the operator.
func CompileArguments(source string) (*Arguments, error) {
	c, err := compile(source, "arguments")
	if err != nil {
		return nil, err
	}
	return &Arguments{c}, nil
}

// Names are the arguments that it looks at by name.
func (a *Arguments) Names() []string { return a.c.Claims }

// MayHold reports whether the expression is true of the arguments, or fails, as over one that is missing or of another
// type. Numbers among them are json.Number.
func (a *Arguments) MayHold(arguments map[string]any) bool {
	plain, err := numbers(arguments)
	if err != nil {
		return true
	}
	machine := vm.VM{MemoryBudget: memoryBudget}
	out, err := machine.Run(a.c.program, map[string]any{"arguments": plain})
	truth, ok := out.(bool)
	return err != nil || !ok || truth
}

// numbers returns a value whose numbers can be compared: what has no fraction and is not too large is an int.
func numbers(value any) (any, error) {
	switch v := value.(type) {
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, errors.New("a number is too large")
		}
		return f, nil
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = numbers(v[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			var err error
			if out[k], err = numbers(v[k]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}
