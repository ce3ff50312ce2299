package condition

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestArguments checks that an undecidable expression guards the call.
func TestArguments(t *testing.T) {
	for _, tt := range []struct {
		source, arguments string
		want              bool
	}{
		{`arguments.amount > 100`, `{"amount":100}`, false},
		{`arguments.amount > 100`, `{"amount":100.0}`, false},
		{`arguments.amount > 100`, `{"amount":1e2}`, false},
		{`arguments.amount > 100`, `{"amount":101}`, true},
		{`arguments.amount > 100`, `{"amount":100.5}`, true},
		{`arguments.amount > 100`, `{"amount":99999999999999999999}`, true},
		{`arguments.amount > 100`, `{"amount":1e999}`, true},
		{`arguments.amount > 100`, `{"amount":1e20}`, true},
		{`arguments.amount > 100`, `{"amount":100.00000000000000000001}`, true}, // rounded, it would be 100
		{`arguments.amount > 100`, `{"amount":1e-400}`, true},
		{`arguments.amount > 100`, `{"amount":0e-9999999999}`, false},
		{`arguments.amount > 100`, `{"amount":0.1}`, false},
		{`arguments.amount > 100`, `{"amount":12.50}`, false},
		{`arguments.amount > 100`, `{"amount":5e-324}`, false},
		{`arguments.amount > 100`, `{"amount":0.` + strings.Repeat("0", 40) + `}`, true},
		{`arguments.to != 9007199254740993`, `{"to":9007199254740993}`, false},
		{`arguments.to != 9007199254740993`, `{"to":9007199254740993.0}`, true}, // not representable as float64
		{`arguments.a * arguments.b > 100`, `{"a":10,"b":10}`, false},
		{`arguments.a * arguments.b > 100`, `{"a":10,"b":10.5}`, true},
		{`arguments.a * arguments.b > 100`, `{"a":4294967296,"b":4294967296}`, true}, // its low 64 bits are 0
		{`arguments.a + arguments.b > 100`, `{"a":9223372036854775807,"b":1}`, true},
		{`arguments.a - arguments.b > 100`, `{"a":9223372036854775807,"b":-2}`, true},
		{`-arguments.a > 100`, `{"a":-9223372036854775808}`, true},
		{`arguments.a / arguments.b > 100`, `{"a":0,"b":0}`, true}, // NaN is not more than 100
		{`arguments.a * 1e200 - arguments.b * 1e200 > 100`, `{"a":1e200,"b":1e200}`, true},
		{`arguments.a ** 2 > 100`, `{"a":3}`, false},
		{`arguments.a % 2 == 1`, `{"a":4}`, false},
		{`arguments.a % 2 == 1`, `{"a":4.5}`, true},
		{`arguments.a % arguments.b == 1`, `{"a":4,"b":0}`, true},
		{`arguments.a + "/x" == "b/x"`, `{"a":"c"}`, false},
		{`arguments.a + "/x" == "b/x"`, `{"a":1}`, true},
		{`int(arguments.a) > 100`, `{"a":99.5}`, false},
		{`int(arguments.a) > 100`, `{"a":1e20}`, true},
		{`int(arguments.a) > 100`, `{"a":"101"}`, true},
		{`float(arguments.a) > 100`, `{"a":"1e1"}`, false},
		{`float(arguments.a) > 100`, `{"a":"nan"}`, true},
		{`float(arguments.a) > 100`, `{"a":"100.00000000000000000001"}`, true},
		{`float(arguments.a) > 100`, `{"a":true}`, true},
		{`any(arguments.o, int(#.n) * 2 > 100)`, `{"o":[{"n":50},{"n":1}]}`, false},
		{`any(arguments.o, int(#.n) * 2 > 100)`, `{"o":[{"n":51}]}`, true},
		{`arguments.amount > 100`, `{"amount":"5"}`, true},
		{`arguments.amount > 100`, `{"amount":null}`, true},
		{`arguments.amount > 100`, `{}`, true},
		{`arguments.to[0].n == 1`, `{"to":[{"n":1}]}`, true},
		{`arguments.to[0].n == 1`, `{"to":[{"n":2}]}`, false},
		{`arguments.to[0].n == 1`, `{"to":[]}`, true},
		{`arguments.o.force == true`, `{"o":{"other":true}}`, false},
		{`arguments.o.force == true`, `{"o":{"Force":true}}`, true}, // a decoder may treat it as force
		{`arguments.o.amount > 100`, `{"o":{"amount":1}}`, false},
		{`arguments.o.amount > 100`, `{"o":{"amount":1,"AMOUNT":1000}}`, true},
		{`any(arguments.o, #.amount > 100)`, `{"o":[{"amount":1,"Amount":1000}]}`, true},
		{`"ask" in arguments.o`, `{"o":{"aſk":1}}`, true},
		{`arguments.force == true`, `{}`, false},
		{`arguments.force`, `{}`, false}, // null is not true
		{`not (arguments.path startsWith "/tmp/")`, `{"path":"/tmp/x"}`, false},
		{`not (arguments.path startsWith "/tmp/")`, `{"path":"/etc/x"}`, true},
		{`not (arguments.path startsWith "/tmp/")`, `{}`, true},
	} {
		a, err := CompileArguments(tt.source)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(strings.NewReader(tt.arguments))
		d.UseNumber()
		var arguments map[string]any
		if err := d.Decode(&arguments); err != nil {
			t.Fatal(err)
		}
		if got := a.MayHold(arguments); got != tt.want {
			t.Errorf("RS-217 %s of %s: got %t", tt.source, tt.arguments, got)
		}
	}
	a, err := CompileArguments(`arguments.amount > 1 or arguments["to"] == "x"`)
	if err != nil || !slices.Equal(a.Names(), []string{"amount", "to"}) {
		t.Errorf("looks at %v: %v", a.Names(), err)
	}
	for source, want := range map[string]string{
		`claims.amount > 1`: "claims", `arguments.amount >`: "unexpected",
		`any(1..9, # == 1)`: "range",
	} {
		if _, err := CompileArguments(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", source, err)
		}
	}
}
