package condition

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
)

// maxNumber limits the length of comparable numbers, in bytes.
const maxNumber = 40

var (
	errDigits = errors.New("a number has too many digits")
	errLarge  = errors.New("a number is too large")
)

// number returns a comparable number: an int if it has no fraction and fits, otherwise a float64. A
// number that would be rounded is an error, because another program may read
// 100.00000000000000000001 as more than 100.
func number(text string) (any, error) {
	if n, err := strconv.Atoi(text); err == nil && n > math.MinInt { // its negative does not fit
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return nil, errLarge
	case len(text) > maxNumber:
		return nil, errDigits
	case f == 0: // its exponent may have any size
		if digits, _, _ := strings.Cut(strings.ToLower(text), "e"); strings.ContainsAny(digits, "123456789") {
			return nil, errDigits
		}
		return f, nil
	}
	exact, ok := new(big.Rat).SetString(text)
	read, okToo := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	if !ok || !okToo || exact.Cmp(read) != 0 {
		return nil, errDigits
	}
	return f, nil
}

// arithmetic is the name of the arithmetic function. No expression can name it.
const arithmetic = "+"

// exact returns functions for arithmetic without misleading results. Overflow to a negative number,
// infinity and NaN are errors, and so are the values that int and float would convert them to.
func exact() []expr.Option {
	return []expr.Option{
		expr.Function(arithmetic, func(p ...any) (any, error) { return compute(p[0].(string), p[1], p[2]) },
			new(func(string, any, any) any)),
		expr.Function("int", func(p ...any) (any, error) { return toInt(p[0]) }, new(func(any) int)),
		expr.Function("float", func(p ...any) (any, error) { return toFloat(p[0]) }, new(func(any) float64)),
	}
}

// checked replaces the operators of an expression with calls of arithmetic.
type checked struct{}

// Visit implements ast.Visitor.
func (checked) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.BinaryNode)
	if !ok || !slices.Contains([]string{"+", "-", "*", "/", "%", "**", "^"}, n.Operator) {
		return
	}
	ast.Patch(node, &ast.CallNode{
		Callee:    &ast.IdentifierNode{Value: arithmetic},
		Arguments: []ast.Node{&ast.StringNode{Value: n.Operator}, n.Left, n.Right},
	})
}

func compute(operator string, a, b any) (any, error) {
	if x, ok := a.(string); ok && operator == "+" {
		if y, ok := b.(string); ok {
			return x + y, nil
		}
	}
	x, whole := a.(int)
	y, wholeToo := b.(int)
	if whole && wholeToo && operator != "/" && operator != "**" && operator != "^" {
		return ofInts(operator, x, y)
	}
	f, err := operand(a)
	g, errToo := operand(b)
	if err := errors.Join(err, errToo); err != nil {
		return nil, err
	}
	return ofFloats(operator, f, g)
}

func ofInts(operator string, a, b int) (any, error) {
	x, y, z := big.NewInt(int64(a)), big.NewInt(int64(b)), new(big.Int)
	switch operator {
	case "+":
		z.Add(x, y)
	case "-":
		z.Sub(x, y)
	case "*":
		z.Mul(x, y)
	case "%":
		if b == 0 {
			return nil, errors.New("a division by zero")
		}
		z.Rem(x, y)
	}
	if n := z.Int64(); z.IsInt64() && n > math.MinInt {
		return int(n), nil
	}
	return nil, errLarge
}

func ofFloats(operator string, a, b float64) (any, error) {
	var c float64
	switch operator {
	case "+":
		c = a + b
	case "-":
		c = a - b
	case "*":
		c = a * b
	case "/":
		c = a / b
	case "**", "^":
		c = math.Pow(a, b)
	default:
		return nil, fmt.Errorf("%s of numbers with a fraction", operator)
	}
	return finite(c)
}

func finite(f float64) (float64, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, errLarge
	}
	return f, nil
}

func operand(value any) (float64, error) {
	switch v := value.(type) {
	case int:
		return float64(v), nil
	case int64:
		return float64(v), nil
	case float64:
		return finite(v)
	}
	return 0, fmt.Errorf("arithmetic with %T", value)
}

func toInt(value any) (int, error) {
	switch v := value.(type) {
	case int:
		return v, nil
	case string:
		return strconv.Atoi(v)
	}
	f, err := operand(value)
	if err != nil || f <= math.MinInt64 || f >= math.MaxInt64 {
		return 0, errors.Join(err, errLarge)
	}
	return int(f), nil
}

func toFloat(value any) (float64, error) {
	if text, ok := value.(string); ok {
		n, err := number(text)
		if err != nil {
			return 0, err
		}
		value = n
	}
	return operand(value)
}
