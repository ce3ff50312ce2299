package condition

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestArguments: what is to be guarded is guarded where nothing can be told.
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
		{`arguments.amount > 100`, `{"amount":"5"}`, true},
		{`arguments.amount > 100`, `{"amount":null}`, true},
		{`arguments.amount > 100`, `{}`, true},
		{`arguments.to[0].n == 1`, `{"to":[{"n":1}]}`, true},
		{`arguments.to[0].n == 1`, `{"to":[{"n":2}]}`, false},
		{`arguments.to[0].n == 1`, `{"to":[]}`, true},
		{`arguments.o.force == true`, `{"o":{"other":true}}`, false},
		{`arguments.o.force == true`, `{"o":{"Force":true}}`, true}, // which a decoder may take for force
		{`arguments.o.amount > 100`, `{"o":{"amount":1}}`, false},
		{`arguments.o.amount > 100`, `{"o":{"amount":1,"AMOUNT":1000}}`, true},
		{`any(arguments.o, #.amount > 100)`, `{"o":[{"amount":1,"Amount":1000}]}`, true},
		{`"ask" in arguments.o`, `{"o":{"aſk":1}}`, true},
		{`arguments.force == true`, `{}`, false},
		{`arguments.force`, `{}`, false}, // nothing is not true
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
