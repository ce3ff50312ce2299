package toolcall

import (
	"encoding/json"
	"strings"
	"testing"
)

// argumentSchema is a tool's input schema as frameworks generate it.
const argumentSchema = `{"type": "object", "properties": {
	"text": {"type": "string"},
	"amount": {"type": "number"},
	"count": {"type": "integer"},
	"sure": {"type": "boolean"},
	"tags": {"type": "array", "items": {"type": "string"}},
	"to": {"$ref": "#/$defs/Party"},
	"limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
	"note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
	"both": {"type": ["string", "integer"]},
	"level": {"enum": [1, 2, 3]},
	"color": {"enum": ["red", "blue"]},
	"fixed": {"const": 7},
	"free": {"description": "anything"},
	"loop": {"$ref": "#/$defs/Loop"},
	"far": {"$ref": "https://example.com/schema.json"},
	"nothing": true
}, "$defs": {"Party": {"type": "object"}, "Loop": {"$ref": "#/$defs/Loop"}}}`

// TestArguments checks that an argument is a string if the tool accepts one, and JSON otherwise.
func TestArguments(t *testing.T) {
	var schema any
	if err := json.Unmarshal([]byte(argumentSchema), &schema); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ pair, want string }{
		{"text=5", `{"text":"5"}`},
		{`text=say "yes"=no`, `{"text":"say \"yes\"=no"}`},
		{"text=", `{"text":""}`},
		{"amount=250", `{"amount":250}`},
		{"amount=1.50", `{"amount":1.50}`},
		{"amount=1e3", `{"amount":1e3}`},
		{"count=12345678901234567890", `{"count":12345678901234567890}`},
		{"sure=true", `{"sure":true}`},
		{`tags=["a","b"]`, `{"tags":["a","b"]}`},
		{`to={"name":"Bob"}`, `{"to":{"name":"Bob"}}`},
		{"limit=5", `{"limit":5}`},
		{"limit=null", `{"limit":null}`},
		{"note=null", `{"note":"null"}`},
		{"both=5", `{"both":"5"}`},
		{"level=2", `{"level":2}`},
		{"color=red", `{"color":"red"}`},
		{"fixed=7", `{"fixed":7}`},
		{"free=5", `{"free":"5"}`},
		{"loop=5", `{"loop":"5"}`},
		{"far=5", `{"far":"5"}`},
		{"nothing=5", `{"nothing":"5"}`},
		{"unknown=5", `{"unknown":"5"}`},
	} {
		a, err := ReadArguments([]string{tt.pair}, "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.of(schema)
		if b, _ := json.Marshal(got); err != nil || string(b) != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.pair, b, err, tt.want)
		}
	}
	for pair, want := range map[string]string{
		"amount=much": `the argument amount must be JSON of type number, not "much"`,
		"sure=yes":    `of type boolean, not "yes"`,
		"to=Bob":      `of type object, not "Bob"`,
		"limit=":      `of type integer or null, not ""`,
	} {
		a, err := ReadArguments([]string{pair}, "")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := a.of(schema); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v", pair, got, err)
		}
	}
	a, err := ReadArguments([]string{"text=5", "x=1"}, `{"amount": 1.0, "free": {"a": null}}`)
	if err != nil {
		t.Fatal(err)
	}
	for of, want := range map[string]any{
		`{"amount":1.0,"free":{"a":null},"text":"5","x":"1"}`:  schema,
		`{"amount":1.0,"free":{"a":null},"text":"5","x":"1"} `: nil,
	} {
		got, err := a.of(want)
		if b, _ := json.Marshal(got); err != nil || string(b) != strings.TrimSpace(of) {
			t.Errorf("got %s, %v", b, err)
		}
	}
}

func TestArgumentsThatAreNone(t *testing.T) {
	for _, tt := range []struct {
		pairs        []string
		object, want string
	}{
		{[]string{"x"}, "", `the argument "x" is not name=value`},
		{[]string{"=x"}, "", `the argument "=x" is not name=value`},
		{[]string{"x=1", "x=2"}, "", `the argument "x" is given twice`},
		{[]string{"x=1"}, `{"x":1}`, `the argument "x" is given twice`},
		{nil, "[1]", "the arguments [1] are no JSON object"},
		{nil, "null", "the arguments null are no JSON object"},
		{nil, "{", "the arguments { are no JSON object"},
	} {
		if _, err := ReadArguments(tt.pairs, tt.object); err == nil || err.Error() != tt.want {
			t.Errorf("%v %s: got %v, want %s", tt.pairs, tt.object, err, tt.want)
		}
	}
}
