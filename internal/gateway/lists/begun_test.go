package lists

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// chunks returns one chunk of a response per Read.
type chunks []string

// Read implements io.Reader.
func (p *chunks) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	if (*p)[0] = (*p)[0][n:]; (*p)[0] == "" {
		*p = (*p)[1:]
	}
	return n, nil
}

// TestTasksThatAreNotShown checks that a client whose task is hidden gets an error in the form of
// the response, if no part of it has been sent.
func TestTasksThatAreNotShown(t *testing.T) {
	const refusal = `{"error":1}`
	seen := map[string]int{}
	view := func(k Kind, name string, _ []byte) bool {
		seen[name]++
		return k != Begun || name == "mine"
	}
	read := func(stream bool, instead func() []byte, text ...string) (string, error) {
		p := chunks(text)
		b, err := io.ReadAll(Body(io.NopCloser(&p), stream, view, instead))
		return string(b), err
	}
	for name, tt := range map[string]struct {
		stream     bool
		text, want string // "|" ends a Read
	}{
		"2026-07-28": {
			false, `{"id":1,"result":{"resultType":"task","taskId":"t","status":"working"}}`, refusal,
		},
		"2025-11-25": {
			false, `{"id":1,"result":{"task":{"taskId":"t"},"_meta":{"x":["}"]}}}`, refusal,
		},
		"the id is last":      {false, `{"result":{"tools":[{"name":"a"}],"taskId":"t"},"id":1}`, refusal},
		"white space around":  {false, " \n{\"result\":{\"taskId\":\"t\"}}\n ", " \n" + refusal + "\n "},
		"what follows later":  {false, `{"result":{"taskId":"t","a":|"b","tools":[|{"name":|"x"}]|,"c":{}}|}`, refusal},
		"a name that is none": {false, `{"result":{"taskId":"\ud800"}}`, refusal},
		"a second name":       {false, `{"result":{"taskId":"t","task":{"taskId":"mine"},"taskId":"u"}}`, refusal},
		"one of a batch": {false, `[{"result":{"taskId":"mine"}},{"result":{"taskId":"t"}},{"id":3}]`,
			`[{"result":{"taskId":"mine"}},` + refusal + `,{"id":3}]`},
		"an event of several": {
			true, "data: {\"method\":\"x\"}\n\nid: 7\ndata: {\"result\":{\"taskId\":\"t\"}}\n\ndata: {\"id\":2}\n\n",
			"data: {\"method\":\"x\"}\n\nid: 7\ndata: " + refusal + "\n\ndata: {\"id\":2}\n\n",
		},
		"an event of two parts": {
			true, "data: {\"result\":{\"taskId\":\"t\",|\"a\":\"b\"}}\n\ndata: {\"id\":2}\n\n",
			"data: " + refusal + "\n\ndata: {\"id\":2}\n\n",
		},
		"data of two lines": {
			true, "data: {\"result\":{\"taskId\":\"t\",\ndata: \"a\":\"b\"}}\n\ndata: {\"id\":2}\n\n",
			"data: " + refusal + "\ndata: \n\ndata: {\"id\":2}\n\n",
		},
	} {
		t.Run("RS-132 "+name, func(t *testing.T) {
			clear(seen)
			got, err := read(tt.stream, func() []byte { return []byte(refusal) }, strings.Split(tt.text, "|")...)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
			if seen["u"] > 0 || name == "a second name" && seen["mine"] > 0 {
				t.Error("a task of an answer that is refused was asked for")
			}
			if got, err := read(tt.stream, nil, strings.ReplaceAll(tt.text, "|", "")); !errors.Is(err, ErrRefused) ||
				strings.Contains(got, `"t"`) {
				t.Errorf("with nothing to put there: got %q, %v", got, err)
			}
		})
	}
	t.Run("RS-132 what has gone on cannot be taken back: the answer ends", func(t *testing.T) {
		got, err := read(false, func() []byte { return []byte(refusal) }, `{"id":1,`, `"result":{"taskId":"t"}}`)
		if !errors.Is(err, ErrRefused) || got != `{"id":1,` {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("RS-132 no other answer waits", func(t *testing.T) {
		p := chunks{`{"id":1,`, `"result":{"con`, `tent":[]}}`}
		body := Body(io.NopCloser(&p), false, view, func() []byte { return []byte(refusal) })
		for _, want := range []string{`{"id":1,`, `"result":{"con`, `tent":[]}}`} {
			b := make([]byte, 100)
			if n, err := body.Read(b); err != nil || string(b[:n]) != want {
				t.Errorf("got %q, %v, want %q", b[:n], err, want)
			}
		}
	})
}
