package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/gateway/lists"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var (
	alice = &mcpresource.Principal{Issuer: "https://auth.example.com", Subject: "alice", ClientID: "app"}
	bob   = &mcpresource.Principal{Issuer: "https://auth.example.com", Subject: "bob", ClientID: "app"}
)

// site is a server with HTTP clients.
type site struct {
	*Server
	t   *testing.T
	url string
	log *logtest.Buffer
}

// waiting counts the unanswered calls.
func (l *link) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

func serve(t *testing.T, mode string, c Config) *site {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.Command, c.Env = []string{self}, append(c.Env, "TEST_PROGRAM="+mode)
	return serveCommand(t, c)
}

func serveCommand(t *testing.T, c Config) *site {
	t.Helper()
	log := &logtest.Buffer{}
	c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c.environ = append(os.Environ(), "MCP_AUTHD_SECRET_KEY=secret", "PASSED=yes", "LC_ALL=C")
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := map[string]*mcpresource.Principal{"": alice, "bob": bob}[r.Header.Get("Who")]
		if scope := r.Header.Get("Scope"); scope != "" {
			with := *p
			with.Scopes = oauth.Scopes{scope}
			p = &with
		}
		if client := r.Header.Get("Client"); client != "" {
			with := *p
			with.ClientID = client
			p = &with
		}
		s.ServeHTTP(w, r.WithContext(mcpresource.NewContext(r.Context(), p)))
	}))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close(); s.Close() })
	return &site{s, t, h.URL, log}
}

// answer is a response with all of its events.
type answer struct {
	status int
	header http.Header
	body   string
	events []event
}

type event struct{ id, data string }

func (s *site) ask(ctx context.Context, method, body string, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Del(header[i]); header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	return http.DefaultClient.Do(req)
}

func (s *site) do(ctx context.Context, method, body string, header ...string) (*answer, error) {
	resp, err := s.ask(ctx, method, body, header...)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	a := &answer{status: resp.StatusCode, header: resp.Header, body: b.String()}
	for part := range strings.SplitSeq(a.body, "\n\n") {
		var e event
		for line := range strings.SplitSeq(part, "\n") {
			if v, ok := strings.CutPrefix(line, "id: "); ok {
				e.id = v
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				e.data = v
			}
		}
		if e != (event{}) {
			a.events = append(a.events, e)
		}
	}
	return a, err
}

// hear reads a session's stream up to a line that contains words, and returns the lines.
func (s *site) hear(words string, header ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), wait.Bound)
	defer cancel()
	resp, err := s.ask(ctx, http.MethodGet, "", header...)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("the stream: %v %+v", err, resp)
	}
	defer resp.Body.Close()
	var said strings.Builder
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		if strings.Contains(lines.Text(), words) {
			return said.String()
		}
	}
	s.t.Fatalf("the stream ends without %q: %v\n%s", words, lines.Err(), &said)
	return ""
}

// mark makes the program send a resource update on a session's stream.
func (s *site) mark(uri string, header ...string) {
	s.t.Helper()
	s.post(`{"jsonrpc":"2.0","id":"mark","method":"resources/subscribe","params":{"uri":"`+uri+`"}}`, header...)
}

func (s *site) post(body string, header ...string) *answer {
	s.t.Helper()
	a, err := s.do(s.t.Context(), http.MethodPost, body, header...)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// open opens a session and returns its headers.
func (s *site) open(version string, header ...string) []string {
	s.t.Helper()
	a := s.post(
		fmt.Sprintf(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"sampling":{}},"clientInfo":{"name":"t","version":"1"}}}`,
			version), header...,
	)
	id := a.header.Get("Mcp-Session-Id")
	if a.status != 200 || id == "" || !strings.Contains(a.body, `"protocolVersion":"`+version+`"`) {
		s.t.Fatalf("initialize: %d %s\n%s", a.status, a.body, s.log)
	}
	header = append(header, "Mcp-Session-Id", id)
	if version >= "2025-06-18" {
		header = append(header, "Mcp-Protocol-Version", version)
	}
	if a := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, header...); a.status != 202 ||
		a.body != "" {
		s.t.Fatalf("initialized: %d %s", a.status, a.body)
	}
	return header
}

func toolCall(id, tool, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q%s}}`, id, tool, more)
}

// result returns the last event as the answer to a call.
func (a *answer) result(t *testing.T) map[string]any {
	t.Helper()
	raw := a.body
	if len(a.events) > 0 {
		raw = a.events[len(a.events)-1].data
	}
	var m struct {
		Result map[string]any `json:"result"`
	}
	if err := json.Unmarshal([]byte(raw), &m); err != nil || m.Result == nil {
		t.Fatalf("no result: %d %s", a.status, a.body)
	}
	return m.Result
}

func TestRefused(t *testing.T) {
	s := serve(t, "good", Config{})
	old, session := s.open("2025-03-26"), s.open("2025-11-25")
	id := session[1]
	cases := []struct {
		name, method, body string
		header             []string
		status             int
		want               string
	}{
		{"RS-109: no session", "POST", toolCall("1", "echo", ""), nil, 400, "Mcp-Session-Id"},
		{"RS-110: an unknown session", "POST", toolCall("1", "echo", ""), []string{"Mcp-Session-Id", "x"}, 404,
			"not found"},
		{"RS-112: somebody else's session", "POST", toolCall("1", "echo", ""),
			[]string{"Mcp-Session-Id", id, "Who", "bob"}, 404, "not found"},
		{"RS-112: somebody else's stream", "GET", "", []string{"Mcp-Session-Id", id, "Who", "bob"}, 404, "not found"},
		{"RS-112: somebody else's session, to delete", "DELETE", "", []string{"Mcp-Session-Id", id, "Who", "bob"},
			404, "not found"},
		{"RS-103: wrong type", "POST", toolCall("1", "echo", ""), append(session[:4:4], "Content-Type", "text/plain"),
			415, "application/json"},
		{"RS-102: nothing acceptable", "POST", toolCall("1", "echo", ""),
			append(session[:4:4], "Accept", "text/html"), 406, "Accept"},
		{"RS-102: no stream acceptable", "GET", "", append(session[:4:4], "Accept", "application/json"), 406, "Accept"},
		{"RS-103: no JSON", "POST", "{", session, 400, "-32700"},
		{"RS-67: null is no id", "POST", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, session, 400, "-32700"},
		{"RS-67: nor is a number with a fraction", "POST", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, session, 400,
			"-32700"},
		{"RS-68: a response with result and error", "POST", `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`,
			session, 400, "-32700"},
		{"RS-121: a batch of 2025-11-25", "POST", "[" + toolCall("1", "echo", "") + "]", session, 400, "-32600"},
		{"RS-118: initialize in a batch", "POST", `[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}]`, nil,
			400, "initialize"},
		{"RS-118: initialize again", "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, session,
			400, "initialized"},
		{"RS-119: requests and responses in one batch", "POST",
			"[" + toolCall("1", "echo", "") + `,{"jsonrpc":"2.0","id":1,"result":{}}]`, old, 400, "-32600"},
		{"RS-119: an empty batch", "POST", "[]", old, 400, "-32700"},
		{"RS-122: an invalid version", "POST", toolCall("1", "echo", ""),
			[]string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "1.0"}, 400, "version"},
		{"RS-124: another version than the session's", "POST", toolCall("1", "echo", ""),
			[]string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-06-18"}, 400, "version"},
		{"RS-115: events of no stream", "GET", "", append(session[:4:4], "Last-Event-Id", "x_1"), 400, "kept"},
		{"RS-115: an invalid id", "GET", "", append(session[:4:4], "Last-Event-Id", "own"), 400, "kept"},
		{"RS-66: another method", "PUT", "", session, 405, "method"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, err := s.do(t.Context(), c.method, c.body, c.header...)
			if err != nil {
				t.Fatal(err)
			}
			if a.status != c.status || !strings.Contains(a.body, c.want) ||
				!strings.HasPrefix(a.body, `{"jsonrpc":"2.0","id":`) {
				t.Errorf("got %d %s, want %d with %q", a.status, a.body, c.status, c.want)
			}
		})
	}
}

// TestLists: RS-218. Each request sees the list entries that its own token may use, also when it
// resumes a stream.
func TestLists(t *testing.T) {
	shows := func(ctx context.Context, k lists.Kind, name string, _ []byte) bool {
		p, _ := mcpresource.FromContext(ctx)
		return k == lists.Tools && name != "" && p.Scopes.Has("echo")
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, c := range []Config{{Shows: shows}, {Shows: shows, Shared: true}} {
		s := serve(t, "good", c)
		h := s.open("2025-11-25")
		if a := s.post(list, h...); strings.Contains(a.body, `"echo"`) || !strings.Contains(a.body, `"tools":[]`) {
			t.Errorf("a token without the scope is shown %s", a.body)
		}
		a := s.post(list, append(h, "Scope", "echo")...)
		if !strings.Contains(a.body, `"name":"echo"`) {
			t.Errorf("a token with the scope is shown %s", a.body)
		}
		first := a.events[0].id
		if again := s.post("", h...); again.status != 400 {
			t.Fatalf("got %d", again.status)
		}
		r, err := s.do(t.Context(), http.MethodGet, "", append(h, "Last-Event-Id", first)...)
		if err != nil || !strings.Contains(r.body, `"tools":[]`) {
			t.Errorf("a token without the scope that resumes is shown %s, %v", r.body, err)
		}
	}
	s := serve(t, "modern", Config{Shows: shows})
	h := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
	if a := s.post(body, h...); a.status != 200 || !strings.Contains(a.body, `"tools":[]`) {
		t.Errorf("a token without the scope is shown %d %s", a.status, a.body)
	}
	if a := s.post(body, append(h, "Scope", "echo")...); !strings.Contains(a.body, `"name":"echo"`) {
		t.Errorf("a token with the scope is shown %s", a.body)
	}
}

func TestSession(t *testing.T) {
	s := serve(t, "good", Config{})
	h := s.open("2025-11-25")
	t.Run("RS-127: the first event has an id and no data", func(t *testing.T) {
		a := s.post(toolCall(`"q"`, "echo", ""), h...)
		if len(a.events) != 2 || a.events[0].data != "" || !strings.HasSuffix(a.events[0].id, "_0") ||
			!strings.Contains(a.events[1].data, `"id":"q"`) {
			t.Errorf("events %q", a.events)
		}
	})
	t.Run("RS-130: not in a session of 2025-06-18", func(t *testing.T) {
		if a := s.post(toolCall("5", "echo", ""), s.open("2025-06-18")...); len(a.events) != 1 {
			t.Errorf("events %q", a.events)
		}
	})
	t.Run("what the gateway does not know passes as it is", func(t *testing.T) {
		r := s.post(
			`{"jsonrpc":"2.0","id":9007199254740993,"method":"acme/tasks","params":{"task":{"ttl":1.50},"x":[null,"<&>"]}}`,
			h...,
		)
		if last := r.events[len(
			r.events)-1].data; last != `{"jsonrpc":"2.0","id":9007199254740993,"result":{"method":"acme/tasks","params":{"task":{"ttl":1.50},"x":[null,"\u003c\u0026\u003e"]}}}` {
			t.Errorf("got %s", last)
		}
	})
	t.Run("a question of the program comes with the call, and its answer goes back", func(t *testing.T) {
		resp, err := s.ask(t.Context(), http.MethodPost, toolCall("6", "ask", ""), h...)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		hear := func(want string) {
			t.Helper()
			for lines.Scan() {
				if strings.Contains(lines.Text(), want) {
					return
				}
			}
			t.Fatalf("the stream ends without %q: %v", want, lines.Err())
		}
		hear("sampling/createMessage")
		s.post(`{"jsonrpc":"2.0","id":"ask-1","result":{"text":"forty-two"}}`, h...)
		hear("forty-two")
	})
	t.Run("progress and logs come with the call", func(t *testing.T) {
		a := s.post(toolCall("7", "progress", `,"_meta":{"progressToken":"t"},"arguments":{"who":"alice"}`), h...)
		if len(a.events) != 6 || !strings.Contains(a.events[3].data, `"progressToken":"t"`) ||
			!strings.Contains(a.events[4].data, "notifications/message") {
			t.Errorf("events %q", a.events)
		}
	})
	t.Run("RS-117: a batch of 2025-03-26 is answered call by call", func(t *testing.T) {
		old := s.open("2025-03-26")
		a := s.post("["+toolCall("1", "echo", "")+`,{"jsonrpc":"2.0","method":"notifications/x"},`+
			toolCall(`"1"`, "echo", "")+"]", old...)
		if len(a.events) != 2 || a.status != 200 {
			t.Errorf("%d, events %q", a.status, a.events)
		}
		if a := s.post(`[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","method":"notifications/y"}]`,
			old...); a.status != 202 {
			t.Errorf("notifications: %d", a.status)
		}
	})
	t.Run("RS-75: a cancelled call ends, and the program is told its own id", func(t *testing.T) {
		done := make(chan *answer)
		go func() { done <- s.post(toolCall(`"c"`, "hang", ""), h...) }()
		wait.Until(t, "the call waits", func() bool { return s.sessionOf(h).link.waiting() > 0 })
		s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}`, h...)
		if a := <-done; len(a.events) != 1 {
			t.Errorf("events %q", a.events)
		}
	})
	t.Run("RS-111: DELETE ends it", func(t *testing.T) {
		if a, _ := s.do(t.Context(), http.MethodDelete, "", h...); a.status != 204 {
			t.Errorf("got %d", a.status)
		}
		if a := s.post(toolCall("8", "echo", ""), h...); a.status != 404 {
			t.Errorf("afterwards: %d", a.status)
		}
	})
}

func (s *site) sessionOf(header []string) *session {
	for i, h := range header {
		if h == "Mcp-Session-Id" {
			if x := s.find(header[i+1], alice); x != nil {
				return x
			}
			return s.find(header[i+1], bob)
		}
	}
	return nil
}

// TestResume checks that a client that loses the connection can resume, and that no other client
// can.
func TestResume(t *testing.T) {
	s := serve(t, "good", Config{})
	h := s.open("2025-11-25")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		x := s.sessionOf(h)
		wait.Poll(wait.Bound, func() bool { return x.link.waiting() > 0 })
	}()
	_, err := s.do(ctx, http.MethodPost, toolCall("1", "held", ""), h...)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the call was not broken off: %v", err)
	}
	var id string
	x := s.sessionOf(h)
	x.mu.Lock()
	for name := range x.streams {
		if st := x.streams[name]; st.ends && st.calls > 0 {
			id = name
		}
	}
	x.mu.Unlock()
	s.post(`{"jsonrpc":"2.0","method":"notifications/release"}`, h...)
	a, err := s.do(t.Context(), http.MethodGet, "", append(h, "Last-Event-Id", id+"_0")...)
	if err != nil || len(a.events) != 1 || !strings.Contains(a.events[0].data, `"held":true`) ||
		a.events[0].id != id+"_1" {
		t.Errorf("RS-129: got %v, %+v", err, a)
	}
	if a, _ := s.do(t.Context(), http.MethodGet, "",
		append(h, "Last-Event-Id", id+"_0", "Who", "bob")...); a.status != 404 {
		t.Errorf("RS-116: somebody else got %d %s", a.status, a.body)
	}
	if a, _ := s.do(t.Context(), http.MethodGet, "",
		append(s.open("2025-11-25"), "Last-Event-Id", id+"_0")...); a.status != 400 {
		t.Errorf("RS-115: another session got %d %s", a.status, a.body)
	}
}

func TestOwnStream(t *testing.T) {
	s := serve(t, "good", Config{})
	h := s.open("2025-11-25")
	s.post(toolCall("1", "change", ""), h...) // no client is listening yet
	held := func() bool {
		x := s.sessionOf(h)
		x.own.mu.Lock()
		defer x.own.mu.Unlock()
		return x.own.reader != nil
	}
	read := func(mark string, header ...string) string {
		t.Helper()
		s.mark(mark, h...)
		wait.Until(t, "no client reads", func() bool { return !held() })
		return s.hear(mark, append(h, header...)...)
	}
	if body := read("x://first"); strings.Count(body, "list_changed") != 1 {
		t.Errorf("an earlier message is lost, or came twice: %q", body)
	}
	if body := read("x://second"); strings.Contains(body, "list_changed") {
		t.Errorf("RS-106: a message came twice: %q", body)
	}
	if body := read("x://third", "Last-Event-Id", "own_0"); strings.Contains(body, "list_changed") {
		t.Errorf("RS-115: a seen message came again: %q", body)
	}
	wait.Until(t, "no client reads", func() bool { return !held() })
}

// TestByteOrderMark: RS-82. A byte order mark before the first message, as Windows programs write
// it, is skipped.
func TestByteOrderMark(t *testing.T) {
	s := serve(t, "bom", Config{})
	if a := s.post(toolCall("1", "echo", ""), s.open("2025-11-25")...); a.result(t) == nil {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

// TestNewestReader: RU-07. A second GET stream of a session replaces the first, whose client may be
// gone while a proxy holds its connection.
func TestNewestReader(t *testing.T) {
	s := serve(t, "good", Config{})
	h := s.open("2025-11-25")
	x := s.sessionOf(h)
	reader := func() chan struct{} {
		x.own.mu.Lock()
		defer x.own.mu.Unlock()
		return x.own.reader
	}
	first := make(chan *answer, 1)
	go func() {
		a, _ := s.do(t.Context(), http.MethodGet, "", h...)
		first <- a
	}()
	wait.Until(t, "the first reads", func() bool { return reader() != nil })
	held := reader()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	second := make(chan struct{})
	go func() {
		defer close(second)
		s.do(ctx, http.MethodGet, "", h...)
	}()
	if a := <-first; a == nil || a.status != 200 || !strings.HasSuffix(a.body, "retry: 30000\n\n") {
		t.Errorf("the first: got %+v", a)
	}
	wait.Until(t, "the second reads", func() bool { return reader() != nil && reader() != held })
	cancel()
	<-second
}

// TestReadersThatFight: RU-07. A reader that has replaced another stays for a while, unless its
// client disconnects.
func TestReadersThatFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newStream("own", 0, &Config{}), time.Now()
		first := s.attach(t.Context())
		second := s.attach(t.Context())
		if <-first; time.Since(began) != 0 {
			t.Errorf("the first is replaced after %s", time.Since(began))
		}
		third := s.attach(t.Context())
		if <-second; time.Since(began) != readerStays {
			t.Errorf("the second is replaced after %s", time.Since(began))
		}
		time.AfterFunc(time.Second, func() { s.detach(third) })
		if s.attach(t.Context()); time.Since(began) != readerStays+time.Second {
			t.Errorf("the fourth begins after %s", time.Since(began))
		}
	})
}

func TestIsolation(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, "good", Config{Dir: dir, PassEnv: []string{"PASSED"}, Env: []string{"GIVEN=1"}})
	h, other := s.open("2025-11-25"), s.open("2025-11-25", "Who", "bob")
	mine, theirs := s.post(toolCall("1", "echo", ""), h...).result(t),
		s.post(toolCall("1", "echo", ""), other...).result(t)
	if mine["pid"] == theirs["pid"] {
		t.Error("RS-89: two people share a process")
	}
	if mine["dir"] != dir {
		t.Errorf("it runs in %v", mine["dir"])
	}
	env := fmt.Sprint(mine["env"])
	for _, want := range []string{"MCP_SUBJECT=alice", "MCP_CLIENT=app", "PASSED=yes", "GIVEN=1", "PATH=", "LC_ALL=C"} {
		if !strings.Contains(env, want) {
			t.Errorf("its environment lacks %s", want)
		}
	}
	if strings.Contains(env, "MCP_AUTHD") {
		t.Errorf("RS-89: it sees the gateway's secrets: %s", env)
	}
	if log := s.log.String(); !strings.Contains(log, "hello xxx") ||
		strings.Contains(log, strings.Repeat("x", maxLogLine)) || !strings.Contains(log, "Welcome") {
		t.Errorf("its standard error is not logged, or without bounds: %.300s", log)
	}
}

// alive reports whether a process runs and is not a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		return !strings.Contains(string(stat), ") Z ")
	}
	if runtime.GOOS == "linux" {
		return false
	}
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}

// TestGroup checks that everything that a program has started ends with the session, even if it
// ignores signals.
func TestGroup(t *testing.T) {
	for _, mode := range []string{"good", "deaf"} {
		s := serve(t, mode, Config{})
		h := s.open("2025-11-25")
		pid := int(s.post(toolCall("1", "echo", ""), h...).result(t)["pid"].(float64))
		child := int(s.post(toolCall("2", "child", ""), h...).result(t)["child"].(float64))
		if !alive(pid) || !alive(child) {
			t.Fatal("they do not run")
		}
		s.do(t.Context(), http.MethodDelete, "", h...)
		wait.Until(t, "both have ended", func() bool { return !alive(pid) && !alive(child) })
	}
}

func TestCrash(t *testing.T) {
	s := serve(t, "good", Config{})
	h := s.open("2025-11-25")
	waiting := make(chan *answer)
	go func() { waiting <- s.post(toolCall(`"w"`, "hang", ""), h...) }()
	wait.Until(t, "the call waits", func() bool { return s.sessionOf(h).link.waiting() > 0 })
	for _, a := range []*answer{s.post(toolCall(`"x"`, "crash", ""), h...), <-waiting} {
		if last := a.events[len(a.events)-1].data; !strings.Contains(last, `"error":{"code":-32603`) {
			t.Errorf("a call of a program that has ended got %s", last)
		}
	}
	wait.Until(t, "RS-110: the session is gone",
		func() bool { return s.post(toolCall("1", "echo", ""), h...).status == 404 })
	a := s.post(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	if a.status != 503 || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, `"id":"i"`) ||
		a.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("a program that ends at once is started again at once: %d %s", a.status, a.body)
	}
	if log := s.log.String(); !strings.Contains(log, "a program has ended by itself") ||
		!strings.Contains(log, "after_ms=") ||
		!strings.Contains(log, "exit status") {
		t.Errorf("the log says nothing of it: %s", log)
	}
	s.open("2025-11-25", "Who", "bob") // only alice is delayed
	wait.Until(t, "it is started again", func() bool {
		return s.post(
			`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`).status == 200
	})
}

// TestSharedCrash: RS-110. When a shared program ends, the streams of all sessions end. All clients
// learn that they must begin again, which restarts the program.
func TestSharedCrash(t *testing.T) {
	s := serve(t, "good", Config{Shared: true})
	ended := make(chan error, 2)
	headers := [][]string{s.open("2025-11-25"), s.open("2025-11-25", "Who", "bob")}
	for _, h := range headers {
		resp, err := s.ask(t.Context(), http.MethodGet, "", h...)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		go func() {
			_, err := io.Copy(io.Discard, resp.Body)
			ended <- err
		}()
	}
	s.post(toolCall("1", "crash", ""), headers[0]...)
	for range headers {
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("a stream ends as a broken connection: %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("a stream of a program that has ended stays open")
		}
	}
	for _, h := range headers {
		wait.Until(t, "the session is gone",
			func() bool { return s.post(toolCall("1", "echo", ""), h...).status == 404 })
	}
	wait.Until(t, "it is started again", func() bool {
		return s.post(
			`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`).status == 200
	})
}

func TestBroken(t *testing.T) {
	s := serve(t, "broken", Config{})
	a := s.post(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	if !strings.Contains(a.body, "-32603") || strings.Contains(a.body, "does not start") {
		t.Errorf("got %d %s", a.status, a.body)
	}
	wait.Until(t, "nothing runs",
		func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.total == 0 && len(s.sessions) == 0 })
	if _, err := New(Config{Command: []string{"/no/such/program"}}); err == nil {
		t.Error("a program that is not there is taken")
	}
}

func TestBounds(t *testing.T) {
	s := serve(t, "good", Config{MaxPerCaller: 2, MaxProcesses: 3, MaxPending: 4, MaxMessage: 64 << 10})
	h := s.open("2025-11-25")
	if a := s.post(toolCall("1", "large", ""), h...); !strings.Contains(a.body, "too large") {
		t.Errorf("a message beyond the limit: %.200s", a.body)
	}
	for i := range 4 {
		go s.do(t.Context(), http.MethodPost, toolCall(fmt.Sprint(i), "hang", ""), h...)
	}
	wait.Until(t, "four wait", func() bool { return s.sessionOf(h).link.waiting() == 4 })
	if a := s.post(toolCall(`"5"`, "echo", ""), h...); a.status != 503 || !strings.Contains(a.body, `"id":"5"`) {
		t.Errorf("a fifth call: %d %s", a.status, a.body)
	}
	idle := s.open("2025-11-25")
	s.open("2025-11-25") // replaces the idle session
	if s.sessionOf(h) == nil || s.sessionOf(idle) != nil {
		t.Error("a busy session was ended for a new one, or an idle one was not")
	}
}

func TestIdle(t *testing.T) {
	s := serve(t, "modern", Config{Idle: 50 * time.Millisecond})
	h := s.open("2025-11-25")
	s.modern("tools/list", "", "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go s.Run(ctx) // starts here, because earlier a session could end while it is being opened
	wait.Until(t, "RS-114: both processes have ended",
		func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.total == 0 })
	if a := s.post(toolCall("1", "echo", ""), h...); a.status != 404 {
		t.Errorf("got %d", a.status)
	}
}

// TestConcurrent checks that 200 concurrent calls each get their own answer and leak nothing.
func TestConcurrent(t *testing.T) {
	before := runtime.NumGoroutine()
	s := serve(t, "good", Config{MaxPending: 500})
	h, shared := s.open("2025-11-25"), serve(t, "good", Config{Shared: true, MaxPending: 500})
	hs := shared.open("2025-11-25")
	var wg sync.WaitGroup
	for n := range 200 {
		wg.Go(func() {
			on, header := s, h
			if n%2 == 0 {
				on, header = shared, hs
			}
			a, err := on.do(t.Context(), http.MethodPost,
				toolCall(fmt.Sprintf(`"n%d"`, n), "echo", fmt.Sprintf(`,"arguments":{"n":%d}`, n)), header...)
			if err != nil {
				t.Error(err)
				return
			}
			last := a.events[len(a.events)-1].data
			if !strings.Contains(last, fmt.Sprintf(`"id":"n%d"`, n)) ||
				!strings.Contains(last, fmt.Sprintf(`"arguments":{"n":%d}`, n)) {
				t.Errorf("call %d got %.300s", n, last)
			}
		})
	}
	wg.Wait()
	var pids []int
	for _, p := range []float64{
		s.post(toolCall("1", "echo", ""), h...).result(t)["pid"].(float64),
		shared.post(toolCall("1", "echo", ""), hs...).result(t)["pid"].(float64),
	} {
		pids = append(pids, int(p))
	}
	s.Close()
	shared.Close()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	wait.Until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+8 })
}
