package clearance

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func digest(t *testing.T, raw string) string {
	t.Helper()
	a, err := ParseArguments([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return fmt.Sprintf("%x", Digest("https://mcp.example/mcp", "erase", a))
}

func TestDigest(t *testing.T) {
	t.Run("RS-217: the order of members does not matter", func(t *testing.T) {
		for a, b := range map[string]string{
			`{"a":1,"b":[{"c":2,"d":3}]}`: ` { "b" : [ {"d":3, "c":2} ] , "a" : 1 } `,
			`{"a":"é"}`:                   `{"\u0061":"\u00e9"}`,
			`{"a":"😀"}`:                   `{"a":"\ud83d\ude00"}`,
			`{"a":"/"}`:                   `{"a":"\/"}`,
			`{}`:                          ` { } `,
		} {
			if digest(t, a) != digest(t, b) {
				t.Errorf("%s and %s: got two digests, want one", a, b)
			}
		}
	})
	t.Run("RS-217: everything else does", func(t *testing.T) {
		seen := map[string]string{}
		for _, raw := range []string{
			``, `{}`, `{"a":1}`,
			`{"a":1.0}`, `{"a":1e0}`, `{"a":1E0}`, `{"a":10e-1}`, `{"a":"1"}`, `{"A":1}`, `{"a":-0}`,
			`{"a":0}`, `{"a":null}`, `{"a":"null"}`, `{"a":true}`, `{"a":"true"}`, `{"a":[]}`, `{"a":{}}`, `{"a":""}`,
			`{"a":[1,2]}`, `{"a":[2,1]}`, `{"a":[[1],2]}`, `{"a":[1,[2]]}`, `{"a":[1],"b":2}`, `{"a":"\u00e9"}`,
			`{"a":"e\u0301"}`, `{"a":" "}`, `{"a":"\u00a0"}`, `{"a":"a"}`, `{"a":"\u0430"}`, `{"a":"a\u200b"}`,
			`{"a":{"b":1}}`, `{"a":{},"b":1}`, `{"ab":1}`, `{"a":"1,\"b\":2"}`, `{"a":1,"b":2}`, `{"a":"\u0000"}`,
		} {
			d := digest(t, raw)
			if before, taken := seen[d]; taken {
				t.Errorf("%s and %s: got one digest, want two", before, raw)
			}
			seen[d] = raw
		}
		a := Arguments{}
		if Digest("r", "ab", a) == Digest("ra", "b", a) || Digest("r", "t", a) == Digest("r", "u", a) {
			t.Error("resource or tool do not count")
		}
	})
}

func TestParseArguments(t *testing.T) {
	many := func(n int) string { return `{"a":[1` + strings.Repeat(",1", n-1) + `]}` }
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	lines := `{"a":"` + strings.Repeat(`\n`, MaxLines) + `","b":"\n"}`
	long := func(n int) string { return `{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` }
	for name, test := range map[string]struct {
		raw  string
		want error
	}{
		"RS-217: a name twice is refused":                {`{"a":1,"a":1}`, ErrNotJSON},
		"RS-217: a name twice by an escape is refused":   {`{"a":1,"\u0061":2}`, ErrNotJSON},
		"RS-217: a name twice within is refused":         {`{"x":[{"a":1,"a":2}]}`, ErrNotJSON},
		"RS-217: a name twice in other case is refused":  {`{"amount":1,"Amount":2}`, ErrNotJSON},
		"RS-217: so is one by a letter that folds":       {`{"x":[{"stock":1,"\u017ftoc\u212a":2}]}`, ErrNotJSON},
		"RS-217: a name in two objects is not twice":     {`{"a":{"A":1}}`, nil},
		"RS-217: members of a prototype are refused":     {`{"x":{"__proto__":{"amount":2}}}`, ErrNotJSON},
		"RS-217: invalid UTF-8 is refused":               {"{\"a\":\"\xff\"}", ErrNotJSON},
		"RS-217: a surrogate in UTF-8 is refused":        {"{\"a\":\"\xed\xa0\x80\"}", ErrNotJSON},
		"RS-217: a lone first half is refused":           {`{"a":"\ud800"}`, ErrNotJSON},
		"RS-217: a lone second half is refused":          {`{"a":"\udc00"}`, ErrNotJSON},
		"RS-217: a lone half in a name is refused":       {`{"\uDBFFx":1}`, ErrNotJSON},
		"RS-217: halves the wrong way round are refused": {`{"a":"\udc00\ud800"}`, ErrNotJSON},
		"RS-217: a half before an escape is refused":     {`{"a":"\ud800\n"}`, ErrNotJSON},
		"RS-217: an escaped backslash is no half":        {`{"a":"\\ud800"}`, nil},
		"RS-217: an array is refused":                    {`[1]`, ErrNotJSON},
		"RS-217: null is refused":                        {`null`, ErrNotJSON},
		"RS-217: two objects are refused":                {`{}{}`, ErrNotJSON},
		"RS-217: no JSON is refused":                     {`{"a":01}`, ErrNotJSON},
		"RS-217: white space alone is refused":           {` `, ErrNotJSON},
		"RS-217: as many values as can be shown":         {many(MaxValues - 1), nil},
		"RS-217: more values are refused":                {many(MaxValues), ErrTooLarge},
		"RS-217: as deep as can be shown":                {deep(MaxDepth - 1), nil},
		"RS-217: deeper ones are refused":                {deep(MaxDepth), ErrTooLarge},
		"RS-217: as long as can be shown":                {long(MaxArguments), nil},
		"RS-217: longer ones are refused":                {long(MaxArguments + 1), ErrTooLarge},
		"RS-217: as many lines as can be shown":          {`{"a":"` + strings.Repeat(`\n`, MaxLines) + `"}`, nil},
		"RS-217: more lines are refused":                 {lines, ErrTooLarge},
		"RS-217: so are more lines in names": {
			`{"` + strings.Repeat(`\n`, MaxLines) + `":"\n"}`, ErrTooLarge,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseArguments([]byte(test.raw)); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestRows(t *testing.T) {
	a, err := ParseArguments([]byte(`{"to":"ann\u202e\u200b","n":[1.0,{"x":null}],"e":{},"l":"a\nb"}`))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, r := range a.Rows() {
		value := ""
		for _, p := range r.Value {
			value += p.Text
			if p.Marked {
				value += "!"
			}
			if p.Break {
				value += "/"
			}
		}
		got += fmt.Sprintf("%d %s %c %q %d\n", r.Depth, r.Label(), r.Kind, value, r.Count)
	}
	const want = `0 to s "annU+202E!U+200B!" 0
0 n a "" 2
1 1 l "1.0" 0
1 2 o "" 1
2 x l "null" 0
0 e o "" 0
0 l s "aU+000A!/b" 0
`
	if got != want {
		t.Errorf("RS-217: rows: got\n%swant\n%s", got, want)
	}
}

func TestPieces(t *testing.T) {
	for r, want := range map[rune]bool{
		'a': true, ' ': true, 'é': true, '中': true, '😀': true, 'ا': true, '"': true, '<': true,
		0: false, '\t': false, 0x7f: false, 0xa0: false, 0xad: false, 0x34f: false, 0x61c: false, 0x115f: false,
		0x1160: false, 0x180e: false, 0x200b: false, 0x200d: false, 0x200e: false, 0x2028: false, 0x202e: false,
		0x2060: false, 0x2066: false, 0x2800: false, 0x3000: false, 0x3164: false, 0xfe0f: false, 0xfeff: false,
		0xffa0: false, 0xfff9: false, 0xe000: false, 0xe0041: false, 0xe0100: false, 0x1d173: false, 0xffff: false,
	} {
		if p := Pieces("x" + string(r)); (len(p) == 1) != want {
			t.Errorf("RS-217: U+%04X: got %+v, want it as it is: %v", r, p, want)
		}
	}
	if p := Pieces("a" + strings.Repeat("\u0301", maxMarks+1)); len(p) != 2 || !p[1].Marked {
		t.Errorf("RS-217: a heap of marks: got %+v", p)
	}
}

func FuzzParseArguments(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,"\ud83d\ude00"]}`, `{"a":1,"a":2}`, `{"a":"\ud800"}`, `{`, ``, `{"\u0000":-0.0e-1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := ParseArguments(raw)
		if err != nil {
			if !errors.Is(err, ErrNotJSON) && !errors.Is(err, ErrTooLarge) {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if !a.Given {
			return
		}
		if rows := a.Rows(); len(rows) > MaxValues {
			t.Fatalf("%d rows", len(rows))
		}
		var any map[string]any
		if err := json.Unmarshal(raw, &any); err != nil || len(any) != len(a.Names) {
			t.Fatalf("%q: encoding/json reads %d members (%v), we %d", raw, len(any), err, len(a.Names))
		}
		// Arguments that are written and parsed again have the same digest.
		text := a.write(nil)
		b, err := ParseArguments(text)
		if err != nil && len(text) <= MaxArguments || err == nil && Digest("r", "t", a) != Digest("r", "t", b) {
			t.Fatalf("%q and %q: %v", raw, text, err)
		}
	})
}

// write writes a value as JSON, members from last to first.
func (v Value) write(out []byte) []byte {
	switch v.Kind {
	case Literal:
		return append(out, v.Text...)
	case String:
		s, _ := json.Marshal(v.Text)
		return append(out, s...)
	}
	ends := "[]"
	if v.Kind == Object {
		ends = "{}"
	}
	out = append(out, ends[0])
	for n := range v.Items {
		i := n
		if n > 0 {
			out = append(out, ',')
		}
		if v.Kind == Object {
			i = len(v.Items) - 1 - n
			name, _ := json.Marshal(v.Names[i])
			out = append(append(out, name...), ':')
		}
		out = v.Items[i].write(out)
	}
	return append(out, ends[1])
}
