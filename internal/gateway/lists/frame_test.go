package lists

import (
	"errors"
	"strings"
	"testing"
)

// readers maps programs to the way they split an event stream into lines. All of them end a line at
// a line feed.
var readers = map[string]func(string) []string{
	"the standard": func(s string) []string { // WHATWG HTML §9.2.6
		return strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	},
	"the Go SDK":        func(s string) []string { return strings.Split(s, "\n") },
	"Python splitlines": func(s string) []string { return strings.FieldsFunc(s, endsLine) }, // httpx-sse before 0.4.2
}

func endsLine(r rune) bool { return strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r) }

// TestReadersAgree checks that the filter finds every list that any of the readers finds.
func TestReadersAgree(t *testing.T) {
	hidden := answer(`{"tools":[{"name":"secret"}]}`)
	for name, in := range map[string]string{
		"a carriage return in a message":         "data: {\"id\":1,\"result\":\r{\"tools\":[{\"name\":\"secret\"}]}}\n\n",
		"a carriage return behind a member":      "data: {\"id\":1,\r\"result\":{\"tools\":[{\"name\":\"secret\"}]}}\n\n",
		"a carriage return in a comment":         ":\rx: \rdata\n\n",
		"a mark in front of an unknown field":    "\ufeffdata: {}\n\n\ufeffdata: " + hidden + "\n\n",
		"a field with white space":               "data : " + hidden + "\n\n",
		"a field in other case":                  "DATA: " + hidden + "\n\n",
		"a body that is no stream":               hidden,
		"a line feed in a comment, as an escape": `: \ndata: ` + hidden + "\n\n",
	} {
		got, err := through(in, true, 0, open)
		if strings.ContainsAny(got, "\r") || strings.Contains(got, "secret") ||
			err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("RS-218 %s: got %q, %v", name, got, err)
		}
	}
	for _, end := range "\v\f\x1c\x1d\x1e\u0085\u2028\u2029" {
		twice := string(end) + string(end)
		inner := twice + "data: " + hidden + twice
		for name, in := range map[string]string{
			"a comment":              ": x" + inner + "\n\n",
			"an id":                  "id: x" + inner + "\n\n",
			"the name of an event":   "event: x" + inner + "\n\n",
			"the time to wait":       "retry: 1" + inner + "\n\n",
			"an unknown field":       "x: 1" + inner + "\n\n",
			"a line without a colon": "x" + twice + "data" + "\n\n",
			"text":                   "data: x" + inner + "\n\n",
			"a message":              "data: {\"a\":[" + inner + "]}\n\n",
			"the end of a message":   "data: {}" + inner + "\n\n",
		} {
			for n := range 4 {
				got, err := through(in, true, n, open)
				if err != nil && !errors.Is(err, ErrMalformed) {
					t.Fatalf("RS-218 U+%04X in %s: got %v, want %v", end, name, err, ErrMalformed)
				}
				for reader, lines := range readers {
					for _, line := range lines(got) {
						if strings.HasPrefix(line, "data:") && strings.Contains(line, "secret") {
							t.Errorf("RS-218 U+%04X in %s, in parts of %d: %s reads %q", end, name, n, reader, line)
						}
					}
				}
			}
		}
	}
	const said = "id: a-1_\t~\ndata: {\"text\":\"a\u2028b\u0085\"}\n\n"
	if got, err := through(said, true, 0, open); got != said || err != nil {
		t.Errorf("RS-218 within a string: got %q, %v", got, err)
	}
}

// TestLenientReaders checks that text that only some decoders accept as JSON ends the response
// before any of it is shown.
func TestLenientReaders(t *testing.T) {
	for name, in := range map[string]string{
		"other quotes":       `{'result':{'tools':[{'name':'secret'}]}}`,
		"other quotes later": `{"id":1,'result':{"tools":[{"name":"secret"}]}}`,
		"a bare name":        `{result:{"tools":[{"name":"secret"}]}}`,
		"a bare name later":  `{"id":1,"result":{tools:[{"name":"secret"}]}}`,
		"a comment":          `{"id":1,/*"*/"result":{"tools":[{"name":"secret"}]}/*"*/}`,
		"a comment deep":     `{"id":{"x":1/*"*/},"result":{"tools":[{"name":"secret"}]},"y":{/*"*/}}`,
		"a line comment":     "{\"id\":1,#\"\n\"result\":{\"tools\":[{\"name\":\"secret\"}]}}",
		"another separator":  `{"id"=1;"result"={"tools":[{"name":"secret"}]}}`,
		"a mark within":      "{\ufeff\"result\":{\"tools\":[{\"name\":\"secret\"}]}}",
	} {
		for _, stream := range []bool{false, true} {
			text := in
			if stream {
				text = "data: " + strings.ReplaceAll(in, "\n", "\ndata: ") + "\n\n"
			}
			for n := range 3 {
				got, err := through(text, stream, n, open)
				if !errors.Is(err, ErrMalformed) || strings.Contains(got, "secret") {
					t.Errorf("RS-218 %s, stream %v: got %q, %v, want %v", name, stream, got, err, ErrMalformed)
				}
			}
		}
	}
	numbers := answer(`{"x":[NaN,-Infinity,1.5E+3,true,false,null],"tools":[]}`)
	if got, err := through(numbers, false, 0, open); got != numbers || err != nil {
		t.Errorf("RS-218 numbers of Python: got %s, %v", got, err)
	}
}
