package rules

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestClearanceRules checks which approval a call needs according to the tables.
func TestClearanceRules(t *testing.T) {
	other := func(who ...string) Clearance { return Clearance{By: oauth.ClearanceByOther, Approvers: who} }
	person := Clearance{By: oauth.ClearanceByPerson}
	large := func(op Operation) bool {
		args, err := op.Args("amount")
		n, _ := args["amount"].(json.Number)
		f, _ := n.Float64()
		return err != nil || f > 100
	}
	r := &Rules{
		Base: []string{"mcp"}, Public: []string{"tools/call"}, Tools: map[string][]string{"drop_all": {"admin"}},
		Clearances: map[string]Clearance{
			"drop_*": person, "drop_table": other("olga"), "free": {By: oauth.ClearanceByPerson, When: large},
			"a*": other("olga", "otto"), "*b": other("otto", "oleg"), "c*": person, "*d": other(),
			"e*": other("olga"), "*f": other("otto"),
			"g*": {By: oauth.ClearanceByPerson, When: large}, "*h": other("olga"),
		},
	}
	for _, tt := range []struct {
		tool, args string
		want       Clearance
		public     bool
		deny       bool
	}{
		{tool: "list", public: true},
		{tool: "drop_all", want: person},
		{tool: "drop_table", want: other("olga")},
		{tool: "ab", want: other("otto")},
		{tool: "cd", want: other()},
		{tool: "ef", deny: true, want: Clearance{By: oauth.ClearanceByOther}},
		{tool: "gh", args: `{"amount":1}`, want: other("olga")},
		{tool: "gh", args: `{"amount":101}`, want: other("olga")},
		{tool: "free", args: `{"amount":100}`, public: true},
		{tool: "free", args: `{"amount":100.5}`, want: person},
		{tool: "free", args: `{"amount":1,"Amount":1000}`, want: person},
	} {
		got := r.Require(Operation{Method: "tools/call", Name: tt.tool, Arguments: json.RawMessage(tt.args)})
		got.Clearance.When = nil
		if !reflect.DeepEqual(got.Clearance, tt.want) || IsOpen(got) != tt.public || got.Deny != tt.deny {
			t.Errorf("RS-217 %s %s: got %+v", tt.tool, tt.args, got)
		}
		if !tt.public && !tt.deny && !oauth.Scopes(got.Scopes).Has("mcp") {
			t.Errorf("RS-217 %s: needs %v", tt.tool, got.Scopes)
		}
	}
	if got := r.Require(Operation{Method: "prompts/get", Name: "drop_all"}); DemandsApproval(got.Clearance) {
		t.Errorf("a prompt: %+v", got)
	}
}
