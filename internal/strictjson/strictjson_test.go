package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// members returns an object with n members "n0", "n1" and so on, followed by others.
func members(n int, others ...string) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`"n%d":%d`, i, i))
	}
	for _, name := range others {
		out = append(out, `"`+name+`":true`)
	}
	return "{" + strings.Join(out, ",") + "}"
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestCheck(t *testing.T) {
	exact := Limits{Names: Exact}
	duplicate := errors.New("any duplicate")
	for _, tt := range []struct {
		name, text string
		limits     Limits
		want       error
	}{
		{"an object", `{"a":{"b":[1,{"c":"]}"}]},"d":null} `, Limits{}, nil},
		{"the same name in other objects", `{"a":{"a":[{"a":1},{"a":2}]}}`, Limits{}, nil},
		{"a number", `1`, Limits{}, nil},
		{"a string that contains quotes", `{"a":"\"\\","b":1}`, Limits{}, nil},
		{"nothing", ``, Limits{}, ErrSyntax},
		{"two values", `{}{}`, Limits{}, ErrSyntax},
		{"text after the value", `{} x`, Limits{}, ErrSyntax},
		{"an open object", `{"a":1`, Limits{}, ErrSyntax},
		{"a byte order mark", "\ufeff{}", Limits{}, ErrSyntax},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", Limits{}, ErrSyntax},
		{"invalid UTF-8, exact", "{\"a\":\"\xff\"}", exact, ErrSyntax},

		{"a name twice", `{"a":1,"a":2}`, exact, duplicate},
		{"by an escape", `{"a":1,"\u0061":2}`, exact, duplicate},
		{"in an object", `{"x":{"a":1,"a":2}}`, exact, duplicate},
		{"in an array", `{"x":[0,[{"a":1,"a":2}]]}`, exact, duplicate},
		{"after a nested object", `{"a":{"b":1},"a":2}`, exact, duplicate},
		{"among many", members(40, "n39"), exact, duplicate},
		{"at the change from few to many", members(16, "n0"), exact, duplicate},
		{"among many that are nested", `[` + members(40) + `,` + members(40, "x", "x") + `]`, exact, duplicate},
		{"F1: nested, in another case", `{"x":{"name":1,"Name":2}}`, Limits{}, duplicate},
		{"F1: nested, by U+017F", `{"x":[{"description":1,"de` + "\u017f" + `cription":2}]}`, Limits{}, duplicate},
		{"F1: nested, by an escaped U+212A", `{"x":{"keys":1,"\u212aeys":2}}`, Limits{}, duplicate},
		{"by the Turkish letters", `{"id":1,"` + "\u0130" + `d":2}`, Limits{}, duplicate},
		{"in another case among many", members(40, "N39"), Limits{}, duplicate},
		{"by U+212A among many", members(40, "key", "\u212aey"), Limits{}, duplicate},
		{"in another case, exact", `{"x":{"name":1,"Name":2,"` + "\u212a" + `":3,"k":4}}`, exact, nil},

		{"__proto__", `{"__proto__":1}`, Limits{}, ErrProto},
		{"__proto__, nested, exact", `[{"__pr\u006fto__":1}]`, exact, ErrProto},
		{"a pair of surrogates", `{"a":"\ud83d\ude00"}`, Limits{}, nil},
		{"half of a pair", `{"a":["\ud83d"]}`, Limits{}, ErrText},
		{"half of a pair in a name", `{"\ude00":1}`, Limits{}, ErrText},
		{"half of a pair, exact", `{"a":"\ud83d"}`, exact, nil},
		{"two halves that decode to one name", `{"\ud83d":1,"\ud83e":1}`, exact, duplicate},

		{"as many bytes as permitted", `[1]`, Limits{Bytes: 3}, nil},
		{"more bytes", `[1] `, Limits{Bytes: 3}, ErrLarge},
		{"as deep as permitted", nested(3), Limits{Depth: 3}, nil},
		{"deeper", nested(4), Limits{Depth: 3}, ErrLarge},
		{"as deep as the default", nested(100), Limits{}, nil},
		{"deeper than the default", nested(101), Limits{}, ErrLarge},
		{"brackets in a string", `["` + nested(200) + `\"["]`, Limits{}, nil},
		{"as many values as permitted", `[1,{"a":2}]`, Limits{Values: 3}, nil},
		{"more values", `[1,{"a":2}]`, Limits{Values: 2}, ErrLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Check([]byte(tt.text), tt.limits)
			if twice := (*DuplicateError)(nil); errors.As(err, &twice) {
				err = duplicate
			}
			if err != tt.want {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestFold checks that names which encoding/json decodes into the same field fold to the same text.
func TestFold(t *testing.T) {
	for r := range unicode.MaxRune {
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if !Same(string(r), string(other)) || fold(string(r)) != fold(string(other)) {
				t.Errorf("%U and %U fold differently", r, other)
			}
		}
	}
	if Same("name", "nome") || Same("a", "ä") {
		t.Error("different names are the same")
	}
}

func TestDecode(t *testing.T) {
	var v struct {
		A struct{ B int }
	}
	if err := Decode([]byte(`{"A":{"B":1}}`), &v, Limits{}); err != nil || v.A.B != 1 {
		t.Errorf("got %v, %v", v, err)
	}
	for _, text := range []string{
		`{"A":{"B":1,"b":2}}`, `{"A":{"C":1}}`, `{"A":1}`, `{"A":{}} {}`, "{\"A\":{\"\xff\":1}}",
	} {
		if err := Decode([]byte(text), &v, Limits{}); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
	n, err := Value([]byte(`[12345678901234567890]`), Limits{})
	if s := fmt.Sprint(n); err != nil || s != "[12345678901234567890]" {
		t.Errorf("got %s, %v", s, err)
	}
}

func TestSplit(t *testing.T) {
	got, err := Object([]byte(` { "a" : [1, "}"] ,"b":"c"}`), Limits{})
	if s := fmt.Sprintf("%s", got); err != nil || s != `[{a [1, "}"]} {b "c"}]` || string(got.Get("b")) != `"c"` ||
		got.Get("c") != nil {
		t.Errorf("got %s, %v", s, err)
	}
	if _, err := Object([]byte(`[]`), Limits{}); err != ErrKind {
		t.Errorf("got %v, want %v", err, ErrKind)
	}
	for _, text := range []string{`{"Name":1}`, `{"na\u004de":1}`, `{"name":1,"name":2}`} {
		if _, err := Split([]byte(text), Exact, "name"); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

// FuzzCheck compares Check with the decoder of the standard library, and checks that no text makes
// Split panic.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{
		`{"a":1,"b":[{"c":"]}"},-1.5e9,null]}`,
		`{"a":1,"a":2}`, `{"a":1`, `{"a"`, `{"a":"\`, `{"`, `{,`, `[}`, `{"a" 1}`,
		members(40, "n1"), `{"\ud800":1,"\ud801":2}`, "{\"\xff\":1}", `{"s":1,"` + "\u017f" + `":2}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = Split(text, Folded, "a")
		l := Limits{Bytes: 10_000, Depth: 50, Names: Exact}
		err := Check(text, l)
		if errors.Is(err, ErrLarge) || errors.Is(err, ErrProto) {
			return
		}
		if want := utf8.Valid(text) && json.Valid(text) && unique(text); (err == nil) != want {
			t.Errorf("%q: got %v, want accepted %v", text, err, want)
		}
		if l.Names = Folded; err != nil && Check(text, l) == nil {
			t.Errorf("%q: the rule Folded accepts more", text)
		}
	})
}

// unique reports whether valid JSON has as many names as its decoded form.
func unique(text []byte) bool {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return false
	}
	written, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && c == ':':
			written++
		}
	}
	return written == count(v)
}

func count(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, member := range v {
			n += count(member)
		}
	case []any:
		for _, element := range v {
			n += count(element)
		}
	}
	return n
}

// TestAllocations checks that known names are not copied.
func TestAllocations(t *testing.T) {
	known := []string{"jsonrpc", "id", "method", "params"}
	text := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read","arguments":{"path":"/a"}}}`)
	if n := testing.AllocsPerRun(100, func() { _, _ = Split(text, Exact, known...) }); n > 1 {
		t.Errorf("Split allocates %v times, want 1", n)
	}
}
