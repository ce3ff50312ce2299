package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"
)

// objectByTokens does the same as object with the decoder of the standard library.
func objectByTokens(b []byte) (map[string]string, bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	out := map[string]string{}
	for d.More() {
		t, err := d.Token()
		k, ok := t.(string)
		if _, dup := out[k]; err != nil || !ok || dup {
			return nil, false
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return nil, false
		}
		out[k] = string(v)
	}
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return out, err == io.EOF && utf8.Valid(b)
}

var objects = []string{
	`{}`, ` { } `, `{"a":1}`, "{\t\"a\"\r\n:\n1 ,\"b\" : [1, {\"c\":\"]}\"} ] ,\"d\":null}", `{"a":"\"\\","b":{}}`,
	`{"\u0061":"\ud83d\ude00","é":-1.5e9}`, `{"":""}`, `{"a":{"a":[[],{}]},"b":true}`,
	``, ` `, `{`, `}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{"a":1}}`, `{"a":1}{}`,
	`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `[]`, `"a"`, `1`, `{1:2}`, `{"a":"`, `{"a":"\`, "{\"\xff\":1}",
	`{"\ud800":1}`,
	many(40), many(15, "1"), many(16, "0"), many(17, "16"), many(40, "39"), many(40, "3"), many(40, "a", "a"),
}

// many returns an object with n members "0", "1" and so on, followed by others.
func many(n int, others ...string) string {
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf("%q:%d", fmt.Sprint(i), i))
	}
	for _, name := range others {
		members = append(members, fmt.Sprintf("%q:true", name))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func TestObject(t *testing.T) {
	for _, in := range objects {
		t.Run("RS-103 "+in, func(t *testing.T) { sameObject(t, []byte(in)) })
	}
}

func sameObject(t *testing.T, in []byte) {
	t.Helper()
	want, valid := objectByTokens(in)
	members, err := object(in)
	if (err == nil) != valid {
		t.Fatalf("%q: got %v, want valid %v", in, err, valid)
	}
	got := map[string]string{}
	for _, m := range members {
		got[m.Name] = string(m.Value)
	}
	if err == nil && !maps.Equal(got, want) {
		t.Errorf("%q: got %q, want %q", in, got, want)
	}
}

// FuzzObject compares object with the decoder of the standard library.
func FuzzObject(f *testing.F) {
	for _, in := range objects {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) < 10_000 && checkDepth(in) == nil { // the envelope is limited before
			sameObject(t, in)
		}
	})
}

func BenchmarkObject(b *testing.B) {
	in := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read","arguments":{"text":"` +
		strings.Repeat("lorem ipsum ", 20) + `"}}}`)
	b.Run("walk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := object(in, "method", "params"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("tokens", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := objectByTokens(in); !ok {
				b.Fatal("refused")
			}
		}
	})
}
