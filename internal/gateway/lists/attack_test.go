package lists

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestOfOtherRequests checks that lists are found by their place, whatever request a message
// answers.
func TestOfOtherRequests(t *testing.T) {
	for name, head := range map[string]string{
		"the id of another request": `{"jsonrpc":"2.0","id":99,`,
		"no id":                     `{"jsonrpc":"2.0",`,
		"an id of null":             `{"jsonrpc":"2.0","id":null,`,
		"an id that is a list":      `{"id":[{"result":{"tools":[1]}}],`,
		"two ids":                   `{"id":1,"id":2,`,
		"an error as well":          `{"id":1,"error":{"code":1,"message":"no"},`,
		"a method as well":          `{"id":1,"method":"ping","params":{"tools":[{"name":"x"}]},`,
		"another version":           `{"jsonrpc":"3.0","id":1,`,
		"two results":               `{"id":1,"result":{"tools":[]},"Result":{},`,
	} {
		in := head + `"result":{"tools":[{"name":"secret"},{"name":"a"}]}}`
		want := head + `"result":{"tools":[{"name":"a"}]}}`
		if got, err := through(in, false, 0, open); got != want || err != nil {
			t.Errorf("RS-218 %s: got %s, %v, want %s", name, got, err, want)
		}
		if got, err := through("data: "+in+"\n\n", true, 0, open); got != "data: "+want+"\n\n" || err != nil {
			t.Errorf("RS-218 %s in a stream: got %s, %v, want %s", name, got, err, want)
		}
	}
}

// TestNamesInDoubt checks names with several readings: invalid UTF-8 and repeated members.
func TestNamesInDoubt(t *testing.T) {
	for name, entry := range map[string]string{
		"a byte that begins nothing":         "{\"name\":\"a\xff\"}",
		"a character that is cut":            "{\"name\":\"a\xe2\x82\"}",
		"an overlong form":                   "{\"name\":\"\xc1\xa1\"}",
		"a surrogate in UTF-8":               "{\"name\":\"a\xed\xa0\x80\"}",
		"beyond Unicode":                     "{\"name\":\"\xf4\x90\x80\x80\"}",
		"behind an escape":                   "{\"name\":\"\\u0061\xff\"}",
		"in the key":                         "{\"name\":\"a\",\"na\xffme\":\"secret\"}",
		"the name twice":                     `{"name":"a","name":"a"}`,
		"the name twice, once escaped":       `{"name":"a","\u006eame":"secret"}`,
		"the name twice, once in other case": `{"NAME":"secret","name":"a"}`,
		"a name of another type as well":     `{"name":"a","name":{"name":"secret"}}`,
		"an escape that is none":             `{"name":"\q"}`,
		"a replacement character by escape":  `{"name":"\ufffd"}`,
		"half a pair of surrogates":          `{"name":"\ud83dx"}`,
		"a name that is too long":            `{"name":"` + strings.Repeat("a", maxText+1) + `"}`,
	} {
		in, want := answer(`{"tools":[`+entry+`,{"name":"b"}]}`), answer(`{"tools":[{"name":"b"}]}`)
		for _, n := range []int{0, 1, 2} {
			if got, err := through(in, false, n, all); got != want || err != nil {
				t.Errorf("RS-218 %s, in parts of %d: got %q, %v, want %q", name, n, got, err, want)
			}
		}
	}
}

// TestEveryBoundary checks that the caller sees the same wherever the connection splits a stream
// into two or three parts.
func TestEveryBoundary(t *testing.T) {
	list := `{"jsonrpc":"2.0","id":1,"result":{"cacheScope":"public","tools":[{"name":"secr\u0065t","d":"\\\"}]"},` +
		`{"name":"é","x":{"name":"secret"}},{"name":"secret"}],"tools":[{"name":"secret"}]}}`
	shown := `{"jsonrpc":"2.0","id":1,"result":{"cacheScope":"private","tools":[` +
		`{"name":"é","x":{"name":"secret"}}],"tools":[]}}`
	lined := "{\"result\":{\"tools\":[\r\ndata: {\"name\":\r\ndata:\"secret\"},\r\ndata: {\"name\":\"b\"}]}}"
	in := "\ufeff: hi\r\nid: 1\r\ndata: " + list + "\r\n\r\nevent: message\ndata:" + list + "\n\n" +
		"data: " + lined + "\r\n\r\n"
	want := ":\nid: 1\ndata: " + shown + "\n\nevent: message\ndata:" + shown + "\n\n" +
		"data: {\"result\":{\"tools\":[\ndata: {\"name\":\"b\"}]}}\n\n"
	cut := func(at ...int) string {
		var from []io.Reader
		last := 0
		for _, i := range append(at, len(in)) {
			from = append(from, strings.NewReader(in[last:i]))
			last = i
		}
		got, err := io.ReadAll(Body(io.NopCloser(io.MultiReader(from...)), true, open, nil))
		if err != nil {
			t.Fatalf("RS-218: cut at %d: %v", at, err)
		}
		return string(got)
	}
	for i := range len(in) + 1 {
		if got := cut(i); got != want {
			t.Fatalf("RS-218: cut at %d:\ngot  %q\nwant %q", i, got, want)
		}
		for j := i; j <= len(in); j += 23 {
			if got := cut(i, j); got != want {
				t.Fatalf("RS-218: cut at %d and %d:\ngot  %q\nwant %q", i, j, got, want)
			}
		}
	}
	if got := func() string { s, _ := through(in, true, 1, open); return s }(); got != want {
		t.Errorf("RS-218: byte by byte:\ngot  %q\nwant %q", got, want)
	}
}

// endless is a text that never ends: head once, and then part repeatedly.
type endless struct {
	head, part []byte
	read, at   int
}

func (e *endless) Read(p []byte) (n int, err error) {
	n = copy(p, e.head)
	for e.head = e.head[n:]; n < len(p); {
		k := copy(p[n:], e.part[e.at:])
		n, e.at = n+k, (e.at+k)%len(e.part)
	}
	e.read += n
	return n, nil
}

func (*endless) Close() error { return nil }

// limited ends an endless text with an error, like the connection of a client that has left.
type limited struct {
	*endless
	most int
}

var errGone = errors.New("the client is gone")

func (l limited) Read(p []byte) (int, error) {
	if l.read >= l.most {
		return 0, errGone
	}
	return l.endless.Read(p)
}

// TestEndless checks that a stream never buffers more than one entry, and ends with its client.
func TestEndless(t *testing.T) {
	const size = 6 << 20
	head := `{"jsonrpc":"2.0","id":1,"result":{"tools":[`
	for name, c := range map[string]struct{ head, part string }{
		"tools that are shown":            {head, `{"name":"a","description":"reads"},`},
		"tools that are hidden":           {head, `{"name":"secret"},`},
		"a tool":                          {head + `{"name":"a","description":"`, "x"},
		"a name":                          {head + `{"name":"`, "x"},
		"a name of escapes":               {head + `{"name":"`, `\u0061`},
		"backslashes":                     {head + `{"name":"`, `\\`},
		"a key":                           {head + `{"`, "x"},
		"a key of the result":             {`{"result":{"`, "x"},
		"keys of a tool":                  {head + `{"a":1`, `,"a":1`},
		"white space between tools":       {head + `{"name":"a"}`, " \n\t"},
		"commas":                          {head, ","},
		"brackets":                        {"", "["},
		"braces in a tool":                {head, `{"a":`},
		"lists":                           {`{"result":{"tools":[]`, `,"tools":[{"name":"secret"}]`},
		"results":                         {`{"id":1`, `,"result":{"tools":[{"name":"secret"}]}`},
		"a cacheScope":                    {`{"result":{"cacheScope":"`, "x"},
		"messages in a batch":             {"[", answer(`{"tools":[{"name":"secret"}]}`) + ","},
		"text":                            {"", "x"},
		"stream: events":                  {"", "data: " + answer(`{"tools":[{"name":"secret"}]}`) + "\n\n"},
		"stream: a line of a comment":     {":", "x"},
		"stream: the name of a field":     {"", "x"},
		"stream: lines of one event":      {"data: " + head, "\ndata: "},
		"stream: other lines in a tool":   {"data: " + head + "{", "\nid: 4"},
		"stream: comments between tools":  {"data: " + head, "\n: x"},
		"stream: empty lines":             {"", "\n"},
		"stream: a mark again and again":  {"", byteOrderMark},
		"stream: an event of one message": {"data: " + head, `{"name":"secret","description":"x"},`},
	} {
		from := limited{&endless{head: []byte(c.head), part: []byte(c.part)}, size}
		b := Body(from, strings.HasPrefix(name, "stream"), open, nil).(*body)
		most, p := 0, make([]byte, 16<<10)
		for {
			n, err := b.Read(p)
			if bytes.Contains(p[:n], []byte(`"secret`)) {
				t.Fatalf("RS-218 endless %s: a hidden tool is shown", name)
			}
			held := cap(b.out) + cap(b.gap) + cap(b.entry) + cap(b.text) + cap(b.field) + len(b.name)
			if most = max(most, held); err == nil {
				continue
			}
			if err != errGone && err != ErrMalformed {
				t.Errorf("RS-218 endless %s: got %v, want %v", name, err, errGone)
			}
			break
		}
		if most > 5<<20 {
			t.Errorf("RS-218 endless %s: holds %d bytes of %d", name, most, from.read)
		}
	}
}

// TestNothingWaitsForTheEnd checks that visible entries of an endless list are sent as they arrive.
func TestNothingWaitsForTheEnd(t *testing.T) {
	from := &endless{head: []byte(`{"result":{"tools":[`), part: []byte(`{"name":"secret"},{"name":"a"},`)}
	b, p := Body(from, false, open, nil), make([]byte, 16<<10)
	var got []byte
	for len(got) < 1<<20 {
		n, err := b.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p[:n]...)
	}
	// two tools have 18 and 12 bytes with their commas, and only the second passes
	if from.read > 3*len(got) {
		t.Errorf("RS-218: %d bytes were read for %d that are shown", from.read, len(got))
	}
	if names := bytes.Count(got, []byte(`{"name":"a"}`)); names < 70_000 || bytes.Contains(got, []byte("secret")) {
		t.Errorf("RS-218: %d tools were shown", names)
	}
}
