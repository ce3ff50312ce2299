package lists

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// open is a View that hides names beginning with "secret".
func open(_ Kind, name string, _ []byte) bool { return !strings.HasPrefix(name, "secret") }

func all(Kind, string, []byte) bool { return true }

func answer(result string) string { return `{"jsonrpc":"2.0","id":1,"result":` + result + `}` }

// through returns the filtered text when it arrives in parts of n bytes.
func through(text string, stream bool, n int, shows View) (string, error) {
	var from io.Reader = strings.NewReader(text)
	if n > 0 {
		from = &parts{from, n}
	}
	b, err := io.ReadAll(Body(io.NopCloser(from), stream, shows, nil))
	return string(b), err
}

type parts struct {
	io.Reader
	n int
}

func (p *parts) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(p.n, len(b))]) }

// both lists cases for a body and for a stream with one event.
var both = []struct{ name, in, want string }{
	{
		"an entry goes",
		`{"tools":[{"name":"a"},{"name":"secret"},{"name":"b"}]}`,
		`{"tools":[{"name":"a"},{"name":"b"}]}`,
	},
	{"the first goes", `{"tools": [ {"name":"secret"} , {"name":"b"} ] }`, `{"tools": [  {"name":"b"} ] }`},
	{"the last goes", `{"tools":[{"name":"a"}, {"name":"secret"} ]}`, `{"tools":[{"name":"a"} ]}`},
	{"all go", `{"tools":[{"name":"secret"},{"name":"secret2"}],"nextCursor":"x"}`, `{"tools":[],"nextCursor":"x"}`},
	{
		"unknown members stay",
		`{"x":[1, {"tools":[{"name":"secret"}]}],"tools":[{"x":{"name":"secret"},"name":"a","y":1e3}],"z":{}}`,
		"",
	},
	{"the cursor stays", `{"nextCursor":"se\u0063ret==","tools":[],"_meta":{"tools":["secret"]}}`, ""},
	{
		"prompts",
		`{"prompts":[{"name":"secret"},{"name":"p","arguments":[{"name":"secret"}]}]}`,
		`{"prompts":[{"name":"p","arguments":[{"name":"secret"}]}]}`,
	},
	{
		"resources",
		`{"resources":[{"uri":"secret","name":"a"},{"uri":"b","name":"secret"}]}`,
		`{"resources":[{"uri":"b","name":"secret"}]}`,
	},
	{
		"templates",
		`{"resourceTemplates":[{"uriTemplate":"secret{x}"},{"uriTemplate":"b"}]}`,
		`{"resourceTemplates":[{"uriTemplate":"b"}]}`,
	},
	{"a key in another case is the list to some clients", `{"TOOLS":[{"name":"secret"}]}`, `{"TOOLS":[]}`},
	{"an escaped key", `{"\u0074ools":[{"n\u0061me":"secr\u0065t"}]}`, `{"\u0074ools":[]}`},
	{
		"two lists of one name",
		`{"tools":[{"name":"a"}],"tools":[{"name":"secret"}]}`,
		`{"tools":[{"name":"a"}],"tools":[]}`,
	},
	{"two names", `{"tools":[{"name":"secret","name":"a"},{"name":7,"name":"a"}]}`, `{"tools":[]}`},
	{"a name in another case", `{"tools":[{"name":"a","Name":"secret"}]}`, `{"tools":[]}`},
	{
		"no name",
		`{"tools":[{"title":"secret"},"secret",7,[{"name":"a"}],null,{"name":{"name":"a"}},{"name":""}]}`,
		`{"tools":[]}`,
	},
	{"a name that decoders differ about", `{"tools":[{"name":"a\u0000"},{"name":"\ud800"}]}`, `{"tools":[]}`},
	{"members of a prototype", `{"tools":[{"name":"a","__proto__":{"name":"secret"}}]}`, `{"tools":[]}`},
	{
		"quotes and brackets in strings",
		`{"tools":[{"name":"a","d":"\\\"}],{\\"},{"name":"secret","d":"]"}]}`,
		`{"tools":[{"name":"a","d":"\\\"}],{\\"}]}`,
	},
	{
		"what is public becomes private",
		`{"cacheScope":"public","ttlMs":5,"tools":[{"name":"a","cacheScope":"public"}]}`,
		`{"cacheScope":"private","ttlMs":5,"tools":[{"name":"a","cacheScope":"public"}]}`,
	},
	{
		"another result",
		`{"content":[{"type":"text","text":"tools"}],"structuredContent":{"tools":[{"name":"secret"}]}}`,
		"",
	},
	{"a list that is none", `{"tools":{"name":"secret"}}`, ""},
}

func TestFilter(t *testing.T) {
	for _, c := range both {
		if c.want == "" {
			c.want = c.in
		}
		in, want := answer(c.in), answer(c.want)
		event := "event: message\nid: 7\ndata: "
		for n := range 40 {
			if got, err := through(in, false, n, open); got != want || err != nil {
				t.Fatalf("RS-218 %s, in parts of %d:\ngot  %s, %v\nwant %s", c.name, n, got, err, want)
			}
			got, err := through(event+in+"\n\n", true, n, open)
			if got != event+want+"\n\n" || err != nil {
				t.Fatalf("RS-218 stream, %s, in parts of %d:\ngot  %s, %v\nwant %s", c.name, n, got, err, want)
			}
		}
		if got, err := through(in, false, 0, all); err != nil || c.name == "unknown members stay" && got != in {
			t.Errorf("RS-218 %s: got %s, %v, want it unchanged", c.name, got, err)
		}
		if got, err := Message([]byte(in), open); string(got) != want || err != nil {
			t.Errorf("RS-218 %s: the message is %s, %v", c.name, got, err)
		}
	}
}

func TestBatch(t *testing.T) {
	in := "[" + answer(`{}`) + ", " + answer(`{"tools":[{"name":"secret"}]}`) + "]"
	want := "[" + answer(`{}`) + ", " + answer(`{"tools":[]}`) + "]"
	if got, err := through(in, false, 0, open); got != want || err != nil {
		t.Errorf("RS-218: each message of a batch: got %s, %v", got, err)
	}
	if got, _ := through("\ufeff "+in, false, 3, open); got != "\ufeff "+want {
		t.Errorf("RS-218: behind a byte order mark: got %s", got)
	}
}

func TestStream(t *testing.T) {
	list, shown := answer(`{"tools":[{"name":"secret"},{"name":"a"}]}`), answer(`{"tools":[{"name":"a"}]}`)
	for _, c := range []struct{ name, in, want string }{
		{"other events", ": hello\n\nid: 1\ndata:\n\ndata: {\"method\":\"x\"}\n\nretry: 3\n\n",
			":\n\nid: 1\ndata:\n\ndata: {\"method\":\"x\"}\n\nretry: 3\n\n"},
		{"text", "event: endpoint\ndata: /messages?a={\"[\n\n", ""},
		{"no space", "data:" + list + "\n\n", "data:" + shown + "\n\n"},
		{
			"carriage returns",
			"data: " + list + "\r\n\r\ndata: " + list + "\r\r",
			"data: " + shown + "\n\ndata: " + shown + "\n\n",
		},
		{"a byte order mark", "\ufeffdata: " + list + "\n\n", "data: " + shown + "\n\n"},
		{
			"several lines", "data: {\"result\":{\"tools\":[\ndata: {\"name\":\n" +
				"data: \"secret\"},\ndata:{\ndata:\"name\":\"a\"}]}}\n\n",
			"data: {\"result\":{\"tools\":[\ndata:{\ndata:\"name\":\"a\"}]}}\n\n",
		},
		{
			"an event after an event",
			"data: " + answer("{}") + "\n\ndata: " + list + "\n\n",
			"data: " + answer("{}") + "\n\ndata: " + shown + "\n\n",
		},
		{"another field", "dat: " + list + "\ndatab: 1\nretry\n\n", ":\n:\nretry:\n\n"},
	} {
		if c.want == "" {
			c.want = c.in
		}
		for n := range 12 {
			if got, err := through(c.in, true, n, open); got != c.want || err != nil {
				t.Fatalf("RS-218 %s, in parts of %d:\ngot  %q, %v\nwant %q", c.name, n, got, err, c.want)
			}
		}
	}
}

// TestFlow checks that text is passed on before more arrives.
func TestFlow(t *testing.T) {
	from, to := io.Pipe()
	out := Body(from, true, open, nil)
	got := make(chan string)
	go func() {
		for p := make([]byte, 4096); ; {
			n, err := out.Read(p)
			if err != nil {
				close(got)
				return
			}
			got <- string(p[:n])
		}
	}()
	say := func(in, want string) {
		t.Helper()
		go io.WriteString(to, in)
		select {
		case s := <-got:
			if s != want {
				t.Errorf("RS-218: got %q, want %q", s, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("RS-218: %q is held up", in)
		}
	}
	say("data: {\"method\":\"notifications/progress\"}\n\n", "data: {\"method\":\"notifications/progress\"}\n\n")
	say("data: {\"method\":\"half", "data: {\"method\":\"half")
	say("\"}\n\ndata: {\"result\":{\"tools\":[{\"name\":\"secret\"},{\"na", "\"}\n\ndata: {\"result\":{\"tools\":[")
	say("me\":\"a\"},", `{"name":"a"}`)
	to.Close()
}

func TestMalformed(t *testing.T) {
	for name, in := range map[string]string{
		"another bracket":           `{"result":{"tools":[{"name":"a"]}}}`,
		"an end too many":           `{"result":{}}}`,
		"another encoding":          "{\"\x00",
		"an end of the list":        `{"result":{"tools":}]}`,
		"an event ends in the list": "data: {\"result\":{\"tools\":[{\"name\":\"secret\"}\n\ndata: ]}}\n\n",
		"a string over two lines":   "data: {\"result\":{\"tools\":[{\"name\":\"sec\ndata: ret\"}]}}\n\n",
	} {
		got, err := through(in, strings.HasPrefix(in, "data"), 0, open)
		if err != ErrMalformed || strings.Contains(got, "secret") {
			t.Errorf("RS-218 %s: got %q, %v, want %v", name, got, err, ErrMalformed)
		}
	}
	if _, err := through(`{"result":{"tools":[{"name":"a"}`, false, 0, open); err != io.ErrUnexpectedEOF {
		t.Errorf("RS-218 an answer that ends early: got %v, want %v", err, io.ErrUnexpectedEOF)
	}
	broken := Body(io.NopCloser(iotest.ErrReader(io.ErrClosedPipe)), true, open, nil)
	if _, err := io.ReadAll(broken); err != io.ErrClosedPipe {
		t.Errorf("got %v, want the error of the stream", err)
	}
}

// TestLarge checks that a list of 10 MB passes with the memory of one entry, and that an entry that
// is too large does not pass.
func TestLarge(t *testing.T) {
	long := func(name string, n int) string {
		return fmt.Sprintf(`{"name":%q,"description":%q}`, name, strings.Repeat("x", n))
	}
	entries := []string{long("big", 2<<20), long("a", 10)}
	for i := range 1000 {
		entries = append(entries, long([]string{"secret", "b"}[i%2], 10_000))
	}
	in := io.NopCloser(strings.NewReader(answer(`{"tools":[` + strings.Join(entries, ",") + `]}`)))
	b := Body(in, false, open, nil).(*body)
	got, most := 0, 0
	for p := make([]byte, 16<<10); ; {
		n, err := b.Read(p)
		if bytes.Contains(p[:n], []byte("big")) || bytes.Contains(p[:n], []byte("secret")) {
			t.Fatal("RS-218: an entry that is too large, or not permitted, is shown")
		}
		got, most = got+n, max(most, cap(b.out)+cap(b.entry)+cap(b.gap))
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got < 5_000_000 || got > 5_100_000 || most > 4<<20 {
		t.Errorf("RS-218: got %d bytes, held up to %d", got, most)
	}
}

// FuzzMessage checks filtered messages with Go's decoder, which is lenient about keys. Hidden
// entries must not be readable, and a message without hidden entries must be unchanged.
func FuzzMessage(f *testing.F) {
	for _, c := range both {
		f.Add(answer(c.in))
	}
	f.Add("[" + answer(`{"tools":[{"name":"secret"}]}`) + "]")
	f.Fuzz(func(t *testing.T, in string) {
		out, err := Message([]byte(in), open)
		if !json.Valid([]byte(in)) {
			return // no client can read it
		}
		if err != nil {
			if strings.ContainsRune(in, 0) {
				return
			}
			t.Fatalf("%q: %v", in, err)
		}
		if !json.Valid(out) {
			t.Fatalf("%q becomes %q", in, out)
		}
		var seen struct {
			Result struct{ Tools []struct{ Name string } }
		}
		_ = json.Unmarshal(out, &seen)
		for _, tool := range seen.Result.Tools {
			if strings.HasPrefix(tool.Name, "secret") {
				t.Fatalf("%q shows %q", in, out)
			}
		}
		again, err := Message(out, open)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q becomes %q, then %q", in, out, again)
		}
		chunked, err := through(in, false, 3, open)
		if err != nil || !reflect.DeepEqual([]byte(chunked), append([]byte{}, out...)) {
			t.Fatalf("%q in parts is %q, %v", in, chunked, err)
		}
	})
}

// tools returns a list of n tools of typical size: about 700 bytes each.
func tools(n int) []byte {
	var entries []string
	for i := range n {
		entries = append(entries, fmt.Sprintf(`{"name":"tool_%d","title":"Tool %d","description":%q,"inputSchema":{"type":"object",`+
			`"properties":{"query":{"type":"string","description":"what to look for, in the words of the person"},`+
			`"limit":{"type":"integer","minimum":1,"maximum":100,"default":20},"state":{"type":"string","enum":["open","closed","all"]}},`+
			`"required":["query"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}`,
			i, i, strings.Repeat("Searches the issues of a repository. ", 6)))
	}
	return []byte(answer(`{"tools":[` + strings.Join(entries, ",") + `]}`))
}

// BenchmarkFilter measures filtering a list of 500 tools, and decoding it for comparison.
func BenchmarkFilter(b *testing.B) {
	text := tools(500)
	b.Run("filter", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Message(text, open); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			var v any
			if err := json.Unmarshal(text, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
