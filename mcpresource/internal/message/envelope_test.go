package message

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func toolCall(name string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `"}}`
}

// TestIncompleteMessages: security L4, and mutation hole 18.
func TestIncompleteMessages(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		why        string // "" if it passes
	}{
		{"params by position", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["danger_zone"]}`,
			"params is not an object"},
		{"params that are text", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"danger_zone"}`,
			"params is not an object"},
		{"null for none", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}`, ""},
		{"a call of nothing", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, "without a name"},
		{"a call of null", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`, "without a name"},
		{"a call without a name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}`,
			"without a name"},
		{"a call of an empty name", toolCall(""), "without a name"},
		{"a prompt without a name", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{}}`, "without a name"},
		{"a method hidden in a prototype",
			`{"jsonrpc":"2.0","id":1,"__proto__":{"method":"tools/call","params":{"name":"danger_zone"}}}`,
			"__proto__"},
		{"a name hidden in one",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","__proto__":{"name":"danger_zone"}}}`,
			"__proto__"},
		{"one that is written with an escape", `{"jsonrpc":"2.0","id":1,"result":{},"\u005f_proto__":{}}`,
			"__proto__"},
		{"a prototype in a tool's own arguments is the tool's",
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"__proto__":{}}}}`, ""},
		{"neither request nor response", `{"jsonrpc":"2.0","id":1}`, "neither"},
		{"a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, ""},
		{"an error", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`, ""},
		{"an empty method", `{"jsonrpc":"2.0","id":1,"method":"","result":{}}`, "method is not a string"},
		{"a method that is null", `{"jsonrpc":"2.0","id":1,"method":null,"result":{}}`, "method is not a string"},
	} {
		_, err := Parse([]byte(tt.body))
		if (err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("RS-43 %s: got %v, want %q", tt.name, err, tt.why)
		}
	}
}

// TestDepth: mutation hole 2. Each row is valid JSON, so that only the depth limit rejects it.
func TestDepth(t *testing.T) {
	arrays := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, tt := range []struct {
		name, value string // the first is within depth levels
		ok          bool
	}{
		{"200 arrays", arrays(maxDepth), true}, {"201 arrays", arrays(maxDepth + 1), false},
		{"200 objects", objects(maxDepth), true}, {"201 objects", objects(maxDepth + 1), false},
		{"siblings do not add up", "[" + strings.Repeat("[],{},", 300) + "1]", true},
		{"brackets in text do not count", `["` + strings.Repeat("[{", 300) + `"]`, true},
		{"nor behind an escaped quotation mark", `["\"` + strings.Repeat("[{", 300) + `"]`, true},
		{"what follows an escaped backslash does", `["\\",` + arrays(maxDepth) + `]`, false},
		{"nor do closing ones in text take away", `["` + strings.Repeat("]}", 300) + `",` + arrays(maxDepth) + `]`,
			false},
	} {
		if !json.Valid([]byte(tt.value)) {
			t.Fatalf("%s is no JSON", tt.name)
		}
		if err := checkDepth([]byte(tt.value)); (err == nil) != tt.ok ||
			err != nil && !strings.Contains(err.Error(), "too deeply") {
			t.Errorf("RS-51 %s: got %v", tt.name, err)
		}
		for what, err := range map[string]error{ // each is one level deeper than the value
			"in a body": func() error {
				_, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":` + unwrap(tt.value) + `}`))
				return err
			}(),
			"in arguments": func() error {
				_, err := Arguments(json.RawMessage(`{"a":` + unwrap(tt.value) + `}`))
				return err
			}(),
		} {
			if (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "too deeply") {
				t.Errorf("RS-51 %s, %s: got %v", tt.name, what, err)
			}
		}
	}
}

// unwrap removes one level of a value.
func unwrap(value string) string {
	if inner, ok := strings.CutPrefix(value, `{"a":`); ok {
		return strings.TrimSuffix(inner, "}")
	}
	if inner := value[1 : len(value)-1]; json.Valid([]byte(inner)) {
		return inner
	}
	return value // siblings are far from the limit, or in an array that stays
}

// FuzzEnvelope: for accepted text, a decoder that folds case and one that does not agree.
func FuzzEnvelope(f *testing.F) {
	f.Add(toolCall("read"))
	f.Add(`{"method":"a","Method":"b"}`)
	f.Add(`{"method":"resources/read","params":{"uri":"x","URI":"y"}}`)
	f.Add(`[{"method":"ping"}]`)
	f.Add(`{"id":1,"method":"Tools/Call","params":{"name":"read"}}`)
	f.Add(`{"id":1,"method":"tool\u017f/call","params":{"name":"read"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		e, err := Parse([]byte(body))
		if err != nil || strings.HasPrefix(strings.TrimLeft(body, " \t\r\n"), "[") {
			return
		}
		var folding struct {
			Method *string
			Params json.RawMessage
		}
		if err := json.Unmarshal([]byte(body), &folding); err != nil {
			if folding.Method == nil || *folding.Method != e.Messages[0].Method {
				return // another member is malformed; the server rejects it, too
			}
		}
		if folding.Method != nil && *folding.Method != e.Messages[0].Method {
			t.Errorf("%q: one reads %q, the other %q", body, *folding.Method, e.Messages[0].Method)
		}
		var params struct{ Name, URI *string }
		if json.Unmarshal(folding.Params, &params) != nil {
			return
		}
		name := params.Name
		if strings.HasPrefix(e.Messages[0].Method, "resources/") {
			name = params.URI
		}
		if name != nil && e.Messages[0].Method != "" && *name != e.Messages[0].Name {
			t.Errorf("%q: one reads %q, the other %q", body, *name, e.Messages[0].Name)
		}
	})
}

// FuzzArguments: a policy sees the same arguments as any decoder that accepts the text.
func FuzzArguments(f *testing.F) {
	for _, in := range objects {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := Arguments(json.RawMessage(in), "path")
		if err != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader([]byte(in)))
		d.UseNumber()
		var want map[string]any
		if err := d.Decode(&want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v (%v)", in, got, want, err)
		}
	})
}
