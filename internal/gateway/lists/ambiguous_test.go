package lists

import (
	"strings"
	"testing"
)

// TestPrototypes: EN-10. JavaScript may read the members of __proto__ as members of the enclosing object.
func TestPrototypes(t *testing.T) {
	const list = `{"tools":[{"name":"secret"}]}`
	for name, in := range map[string]string{
		"in a result":          `{"id":1,"result":{"__proto__":` + list + `}}`,
		"in a message":         `{"id":1,"__proto__":{"result":` + list + `}}`,
		"in another prototype": `{"id":1,"__proto__":{"__proto__":{"result":` + list + `}}}`,
		"in a task":            `{"id":1,"result":{"task":{"__proto__":{"taskId":"secret"}}}}`,
		"with an escape":       `{"id":1,"result":{"__pr\u006fto__":` + list + `}}`,
		"in a batch":           `[{"id":1,"result":{}},{"id":2,"result":{"__proto__":` + list + `}}]`,
	} {
		for n := range 12 {
			if got, err := through(in, false, n, open); err != ErrMalformed || strings.Contains(got, "secret") {
				t.Errorf("EN-10 %s, in parts of %d: got %q, %v, want %v", name, n, got, err, ErrMalformed)
			}
			event := "data: " + in + "\n\n"
			if got, err := through(event, true, n, open); err != ErrMalformed || strings.Contains(got, "secret") {
				t.Errorf("EN-10 %s, in a stream, in parts of %d: got %q, %v, want %v", name, n, got, err, ErrMalformed)
			}
		}
		if got, err := Message([]byte(in), open); err != ErrMalformed {
			t.Errorf("EN-10 %s: the message is %q, %v, want %v", name, got, err, ErrMalformed)
		}
	}
	deep := `{"id":1,"result":{"content":[],"structuredContent":{"__proto__":` + list + `}}}`
	if got, err := through(deep, false, 0, open); got != deep || err != nil {
		t.Errorf("EN-10 outside of any list: got %q, %v", got, err)
	}
}

// TestLinesAlone: EN-10. Some clients parse each data line as a message.
func TestLinesAlone(t *testing.T) {
	const message, begun = `{"id":1,"result":{"tools":[{"name":"secret"}]}}`, `{"id":1,"result":{"taskId":"secret"}}`
	for name, in := range map[string]string{
		"behind a text":        "data: hello\ndata: " + message + "\n\n",
		"a task behind a text": "data: hello\ndata: " + begun + "\n\n",
		"behind white space":   "data: hello\ndata: \t" + message + "\n\n",
		"behind a mark":        "data: hello\ndata: \ufeff" + message + "\n\n",
		"behind an empty line": "data:\ndata: hello\ndata: " + message + "\n\n",
		"behind another field": "data: hello\nid: 1\ndata: " + message + "\n\n",
		"a batch":              "data: hello\ndata: [" + message + "]\n\n",
		"in a member":          "data: {\"x\":\ndata: " + message + "\ndata: }\n\n",
		"in a result":          "data: {\"result\":{\"x\":\ndata: " + message + "\ndata: }}\n\n",
		"in an entry": "data: {\"result\":{\"tools\":[{\"name\":\"a\",\"x\":\ndata: " +
			message + "\ndata: }]}}\n\n",
		"an entry that is a message": "data: {\"result\":{\"tools\":[\ndata: " +
			`{"name":"a","id":1,` + message[1:] + "\ndata: ]}}\n\n",
		"a batch in a batch": "data: [\ndata: [" + message + "]\ndata: ]\n\n",
	} {
		for n := range 12 {
			got, err := through(in, true, n, open)
			if err != ErrMalformed || strings.Contains(got, `"secret"`+"}]}}") || strings.Contains(got, `"secret"}}`) {
				t.Errorf("EN-10 %s, in parts of %d: got %q, %v, want %v", name, n, got, err, ErrMalformed)
			}
		}
	}
	for name, in := range map[string]string{
		"a text": "data: hello\ndata: {\"a\":1}\n\n",
		"a message that is indented": "data: {\ndata:  \"id\": 1,\ndata:  \"result\": {\ndata:   \"tools\": [\ndata:    {\ndata:" +
			"     \"name\": \"a\"\ndata:    }\ndata:   ]\ndata:  }\ndata: }\n\n",
		"a batch of lines": "data: [\ndata: " + answer(`{"tools":[{"name":"a"}]}`) +
			",\ndata: " + answer("{}") + "\ndata: ]\n\n",
	} {
		for n := range 12 {
			if got, err := through(in, true, n, open); got != in || err != nil {
				t.Errorf("EN-10 %s, in parts of %d: got %q, %v, want it as it was", name, n, got, err)
			}
		}
	}
}
