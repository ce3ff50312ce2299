package stdio

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// TestSharedTasks checks that only its caller learns the id of a task, which gives access to the
// result, and that tasks cannot be listed.
func TestSharedTasks(t *testing.T) {
	task := func(s *site, header ...string) {
		t.Helper()
		if a := s.post(toolCall("1", "task", `,"arguments":{"who":"alice"}`), header...); a.status != 200 ||
			!strings.Contains(a.body, `"result":{}`) {
			t.Fatalf("the task was not begun: %d %s", a.status, a.body)
		}
	}
	alone := serve(t, "good", Config{})
	own := alone.open("2025-11-25")
	task(alone, own...)
	alone.hear("task of alice", own...)
	s := serve(t, "good", Config{Shared: true})
	mine, theirs := s.open("2025-11-25"), s.open("2025-11-25", "Who", "bob")
	task(s, mine...)
	s.mark("x://later", theirs...)
	if body := s.hear("x://later", theirs...); strings.Contains(body, "task of alice") {
		t.Errorf("bob hears of alice's task: %s", body)
	}
	if a := s.post(`{"jsonrpc":"2.0","id":2,"method":"tasks/list"}`, theirs...); !strings.Contains(a.body, "-32601") {
		t.Errorf("bob lists tasks: %s", a.body)
	}
	a := s.post(
		`{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`,
	)
	if strings.Contains(a.body, `"tasks"`) || !strings.Contains(a.body, `"tools"`) {
		t.Errorf("RS-136: tasks are advertised and not carried: %s", a.body)
	}
}

// TestSharedLate checks that log messages of a cancelled call do not reach another caller.
func TestSharedLate(t *testing.T) {
	s := serve(t, "good", Config{Shared: true})
	mine, theirs := s.open("2025-11-25"), s.open("2025-11-25", "Who", "bob")
	late := make(chan struct{})
	go func() {
		defer close(late)
		s.do(context.Background(), http.MethodPost, toolCall(`"l"`, "late", `,"arguments":{"who":"alice"}`), mine...)
	}()
	wait.Until(t, "alice waits", func() bool { return s.sessionOf(mine).link.waiting() == 1 })
	s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}`, mine...)
	<-late
	a := s.post(toolCall("1", "release", ""), theirs...) // the program logs for alice's call while bob waits
	if a.status != http.StatusOK || strings.Contains(a.body, "secret of alice") {
		t.Errorf("bob has what alice's call logs: %d %s", a.status, a.body)
	}
}

// TestSharedPending checks that one user's calls do not block other users.
func TestSharedPending(t *testing.T) {
	s := serve(t, "good", Config{Shared: true, MaxPending: 8})
	mine, theirs := s.open("2025-11-25"), s.open("2025-11-25", "Who", "bob")
	l := s.sessionOf(theirs).link
	begun := func() int64 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.last
	}
	for i := range 20 {
		before := begun()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.do(ctx, http.MethodPost, toolCall(fmt.Sprint(i), "hang", ""), theirs...)
		}()
		wait.Until(t, "the call is begun or refused", func() bool {
			select {
			case <-done:
				return true
			default:
				return begun() > before
			}
		})
		cancel()
		<-done
	}
	if a := s.post(toolCall("1", "echo", ""), mine...); a.status != 200 {
		t.Errorf("alice gets %d: %s", a.status, a.body)
	}
}

// TestQueueBytes checks that the queue of a program that does not read is limited.
func TestQueueBytes(t *testing.T) {
	s := serve(t, "unread", Config{})
	l := newLink(&s.c, false)
	if err := s.connect(alice, l, &session{server: s.Server, done: make(chan struct{})}); err != nil {
		t.Fatal(err)
	}
	defer l.close()
	note, size := frame{Method: "notifications/x", Params: []byte(`"` + strings.Repeat("x", 4<<20) + `"`)}, 0
	for range 12 {
		if l.send(note) == nil {
			size += 4 << 20
		}
	}
	if size > 32<<20 {
		t.Errorf("%d MiB are kept for a program that does not read", size>>20)
	}
}

// TestEnding checks that programs that end slowly cannot exceed the limits.
func TestEnding(t *testing.T) {
	s := serve(t, "deaf", Config{MaxPerCaller: 2, MaxProcesses: 8})
	most := 0
	for i := range 12 {
		s.post(fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`, i,
		))
		s.mu.Lock()
		most = max(most, s.total)
		s.mu.Unlock()
	}
	if most > 4 {
		t.Errorf("%d processes of one caller, want at most twice 2", most)
	}
}

// TestApplications checks that a user with many registered applications counts as one user.
func TestApplications(t *testing.T) {
	s := serve(t, "good", Config{MaxPerCaller: 2, MaxProcesses: 8})
	for i := range 6 {
		p := *alice
		p.ClientID = fmt.Sprint("app", i)
		r, w := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`),
			httptest.NewRecorder()
		s.ServeHTTP(w, r.WithContext(mcpresource.NewContext(t.Context(), &p)))
	}
	live := func() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.sessions) }
	if n := live(); n > 2 {
		t.Errorf("one person has %d processes, want 2", n)
	}
}

func post(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	return r
}

// TestCloseWhileAProgramIsAsked checks that a program that does not answer cannot delay Close.
func TestCloseWhileAProgramIsAsked(t *testing.T) {
	s := serve(t, "unread", Config{})
	body, header := modernCall("1", "tools/list", "", "")
	go func() { _, _ = s.do(context.Background(), http.MethodPost, body, header...) }()
	wait.Until(t, "it is started", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.total == 1 })
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.Close()
	}()
	select {
	case <-closed:
	case <-time.After(wait.Bound):
		t.Fatal("the program keeps the gateway from stopping")
	}
}

// TestEndedBeforeItBegan checks that a session is not registered if its program has already ended.
// Otherwise it would never be removed.
func TestEndedBeforeItBegan(t *testing.T) {
	s := serve(t, "good", Config{})
	x := newSession(s.Server, newID(), alice)
	x.close()
	if err := s.keep(x); !errors.Is(err, errEnded) || len(s.sessions) != 0 {
		t.Errorf("got %v, and %d sessions", err, len(s.sessions))
	}
	s.sessions[x.id] = x
	x.idle.last = time.Time{}
	if s.makeRoom("") {
		t.Error("a session without a program makes room for one")
	}
}
