package gosdk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// spy records the keys that a store receives.
type spy struct {
	*mcp.MemoryEventStore
	mu   sync.Mutex
	keys map[string]bool
}

func (s *spy) Open(ctx context.Context, session, stream string) error {
	s.mu.Lock()
	s.keys[session] = true
	s.mu.Unlock()
	return s.MemoryEventStore.Open(ctx, session, stream)
}

func (s *spy) SessionClosed(ctx context.Context, session string) error {
	s.mu.Lock()
	delete(s.keys, session)
	s.mu.Unlock()
	return s.MemoryEventStore.SessionClosed(ctx, session)
}

func (s *spy) seen() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.keys {
		keys = append(keys, k)
	}
	return keys
}

func newSpy() *spy {
	return &spy{MemoryEventStore: mcp.NewMemoryEventStore(nil), keys: map[string]bool{}}
}

func TestEvents(t *testing.T) {
	store := newSpy()
	r := newRig(t, &Options{Sessions: mcp.StreamableHTTPOptions{EventStore: store}})
	session := r.initialize(t, "alice-mcp")
	first := r.ask(t, "alice-mcp",
		ask{body: `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"open","arguments":{}}}`,
			headers: hdr("Mcp-Session-Id", session)})
	_, after, _ := strings.Cut(first.text, "id: ")
	event, _, _ := strings.Cut(after, "\n")
	resume := func(token string) reply {
		return r.ask(t, token,
			ask{method: http.MethodGet, headers: hdr("Mcp-Session-Id", session, "Last-Event-ID", event)})
	}
	t.Run("RS-115 RS-129 a stream of a POST is resumed by GET", func(t *testing.T) {
		if got := resume("alice-mcp"); got.status != 200 || !strings.Contains(got.text, "alice mcp") {
			t.Errorf("got %d %s", got.status, got.text)
		}
	})
	t.Run("RS-116 RS-112 another person resumes nothing", func(t *testing.T) {
		if got := resume("bob-mcp"); got.status != 404 || strings.Contains(got.text, "alice") {
			t.Errorf("got %d %s", got.status, got.text)
		}
	})
	t.Run("RS-113 nor does a caller without a token", func(t *testing.T) {
		if got := r.ask(t, "x",
			ask{method: http.MethodGet,
				headers: hdr("Authorization", "-", "Mcp-Session-Id", session, "Last-Event-ID",
					event)}); got.status != 401 {
			t.Errorf("got %d", got.status)
		}
	})
	t.Run("SP-16 RS-116 the store sees keys that carry the caller, and two callers never the same", func(t *testing.T) {
		bobs := r.initialize(t, "bob-mcp")
		keys := store.seen()
		for owner, id := range map[string]string{
			r.principal("alice").Person(): session, r.principal("bob").Person(): bobs,
		} {
			if !slices.Contains(keys, eventKey(owner, id)) {
				t.Errorf("got %v", keys)
			}
		}
		if eventKey("alice", session) == eventKey("bob", session) {
			t.Error("one key for two")
		}
	})
	t.Run("SP-16 without the guard in front it holds too", func(t *testing.T) {
		e := &events{inner: store, sessions: r.adapter.sessions}
		ctx := mcpresource.NewContext(t.Context(), r.principal("bob", "mcp"))
		if got, err := collect(e.After(ctx, session, strings.Split(event, "_")[0], -1)); err == nil || len(got) > 0 {
			t.Errorf("got %q %v", got, err)
		}
		ctx = mcpresource.NewContext(t.Context(), r.principal("alice", "mcp"))
		if got, err := collect(e.After(ctx, session, strings.Split(event, "_")[0], -1)); err != nil || len(got) == 0 {
			t.Errorf("the owner: got %q %v", got, err)
		}
	})
	t.Run("RS-110 RS-111 after DELETE there is nothing left", func(t *testing.T) {
		if got := r.ask(t, "alice-mcp",
			ask{method: http.MethodDelete, headers: hdr("Mcp-Session-Id", session)}); got.status != 204 {
			t.Errorf("got %d", got.status)
		}
		if got := resume("alice-mcp"); got.status != 404 {
			t.Errorf("got %d", got.status)
		}
		if r.adapter.sessions.version(session) != "" ||
			slices.Contains(store.seen(), eventKey(r.principal("alice").Person(), session)) {
			t.Error("it is still known")
		}
	})
}

func collect(seq iter.Seq2[[]byte, error]) (all []string, err error) {
	for b, e := range seq {
		if e != nil {
			return all, e
		}
		all = append(all, string(b))
	}
	return all, nil
}

// TestSessionOfNobody: a session opened by a public method belongs to the first caller who uses it.
func TestSessionOfNobody(t *testing.T) {
	s := newSessions(newRig(t, nil).guard)
	as := func(name string) context.Context {
		return mcpresource.NewContext(t.Context(), &mcpresource.Principal{Subject: name})
	}
	key := s.open(t.Context(), "id")
	if got := s.open(as("alice"), "id"); got != key {
		t.Errorf("SP-14: the key has changed")
	}
	if _, ok := s.owned(as("bob"), "id"); ok {
		t.Error("SP-14: a second owner")
	}
	if _, ok := s.owned(as("alice"), "id"); !ok {
		t.Error("SP-14: the owner is shut out")
	}
}

// TestListen checks streams of 2026-07-28.
func TestListen(t *testing.T) {
	var server *mcp.Server
	started, stopped := make(chan struct{}, 1), make(chan error, 1)
	r := newRig(t, nil, func(s *mcp.Server) {
		server = s
		mcp.AddTool(s, &mcp.Tool{Name: "wait"},
			func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				started <- struct{}{}
				<-ctx.Done()
				stopped <- ctx.Err()
				return nil, nil, ctx.Err()
			})
	})
	open := func(ctx context.Context, body, method, name string) *http.Response {
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+"/mcp", strings.NewReader(body))
		for k, v := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Authorization": "Bearer alice-mcp", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method,
			"Mcp-Name": name,
		} {
			if v != "" {
				req.Header.Set(k, v)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	listen := modern("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	t.Run("RS-164 closing the stream cancels the call", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-started; cancel() }()
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+"/mcp",
			strings.NewReader(modern("tools/call", `"name":"wait","arguments":{}`)))
		for k, v := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Authorization": "Bearer alice-mcp", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
			"Mcp-Name": "wait",
		} {
			req.Header.Set(k, v)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
		select {
		case <-stopped:
		case <-time.After(time.Minute):
			t.Error("it goes on")
		}
	})
	t.Run("RS-168 RS-163 RS-161 acknowledged, then told of changes", func(t *testing.T) {
		resp := open(t.Context(), listen, "subscriptions/listen", "")
		if resp.Header.Get("X-Accel-Buffering") != "no" {
			t.Error("proxies may hold it back")
		}
		read := reader(resp)
		if got := next(t, read); !strings.Contains(got, "acknowledged") {
			t.Errorf("got %s", got)
		}
		server.AddTool(&mcp.Tool{Name: "new", InputSchema: anyObject}, okTool)
		if got := next(t, read); !strings.Contains(got, "notifications/tools/list_changed") ||
			!strings.Contains(got, "subscriptionId") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RS-169 Close ends a subscription with its result", func(t *testing.T) {
		read := reader(open(t.Context(), listen, "subscriptions/listen", ""))
		next(t, read)
		if err := r.adapter.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := next(t, read); !strings.Contains(got, `"result"`) || !strings.Contains(got, "subscriptionId") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RS-114 Close ends sessions", func(t *testing.T) {
		session := r.initialize(t, "alice-mcp")
		if err := r.adapter.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.ask(t, "alice-mcp",
			ask{body: listTools, headers: hdr("Mcp-Session-Id", session)}); got.status != 404 {
			t.Errorf("got %d", got.status)
		}
	})
}

func reader(resp *http.Response) <-chan string {
	out := make(chan string, 20)
	go func() {
		defer close(out)
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				out <- data
			}
		}
	}()
	return out
}

// TestDisconnect: RS-75 up to 2025-11-25 a lost connection does not cancel the call, and its result
// can be resumed.
func TestDisconnect(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	r := newRig(t, nil, func(s *mcp.Server) {
		mcp.AddTool(s, &mcp.Tool{Name: "late"},
			func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				close(started)
				<-release
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "here after all"}}}, nil,
					ctx.Err()
			})
	})
	session := r.initialize(t, "alice-mcp")
	ctx, drop := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+"/mcp",
		strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"late","arguments":{}}}`))
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Authorization": "Bearer alice-mcp", "Mcp-Session-Id": session,
	} {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	event := ""
	for lines := bufio.NewScanner(resp.Body); event == "" && lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			event = id
		}
	}
	<-started
	drop()
	resp.Body.Close()
	close(release)
	wait.Success(t, "the result is there", func() error {
		got := r.ask(t, "alice-mcp",
			ask{method: http.MethodGet, headers: hdr("Mcp-Session-Id", session, "Last-Event-ID", event)})
		if !strings.Contains(got.text, "here after all") {
			return fmt.Errorf("got %d %s", got.status, got.text)
		}
		return nil
	})
}

// TestSessionOfPerson: another application of the same user continues the session.
func TestSessionOfPerson(t *testing.T) {
	for owner, want := range map[mcpresource.SessionOwner]int{
		mcpresource.OwnerPerson: 200, mcpresource.OwnerClient: 404,
	} {
		var r *rig
		r = newRigOf(t, func(c *mcpresource.Config) {
			c.SessionOwner = owner
			c.Validator = mcpresource.ValidatorFunc(
				func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
					parts := strings.Split(c.Token, "-")
					p := r.principal(parts[0], parts[1:]...)
					p.ClientID = strings.Join(parts[1:], "+") // a different application for each set of scopes
					return p, nil
				})
		}, nil)
		session := r.initialize(t, "alice-mcp")
		call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"secret","arguments":{}}}`
		if status, body, _ := r.post(t, "alice-mcp-deep", "2025-11-25", session, call); status != want ||
			want == 200 && !strings.Contains(body, "alice mcp deep") {
			t.Errorf("RS-112: got %d %s, want %d", status, body, want)
		}
		if status, body, _ := r.post(t, "bob-mcp-deep", "2025-11-25", session, call); status != 404 {
			t.Errorf("RS-112 another person: got %d %s", status, body)
		}
	}
}

// forgetful is a binder that fails to record sessions.
type forgetful struct{ mcpresource.SessionBinder }

func (forgetful) Open(context.Context, string, mcpresource.Binding) error { return errors.New("away") }

// TestServerWithSessions: RS-109. Whether the server issues session ids is learned only from the
// server's responses, not from the guard's, and not from a missing one.
func TestServerWithSessions(t *testing.T) {
	const open = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	refuses := func(t *testing.T, r *rig) {
		t.Helper()
		status, body, session := r.post(t, "alice-mcp", "2025-11-25", "",
			`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		if status != 400 || session != "" {
			t.Errorf("a request without a session got %d %s, session %q", status, body, session)
		}
	}
	t.Run("after an answer of the guard", func(t *testing.T) {
		r := newRigOf(t, func(c *mcpresource.Config) {
			c.Sessions = forgetful{mcpresource.NewMemorySessions(0)}
		}, nil)
		if status, body, _ := r.post(t, "alice-mcp", "", "", open); status != 503 {
			t.Fatalf("got %d %s", status, body)
		}
		refuses(t, r)
	})
	t.Run("after a client that did not wait", func(t *testing.T) {
		ctx, hangUp := context.WithCancel(t.Context())
		gone := make(chan struct{})
		r := newRig(t, nil, func(s *mcp.Server) {
			s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(c context.Context, method string, req mcp.Request) (mcp.Result, error) {
					result, err := next(c, method, req)
					if method == "initialize" {
						hangUp()
						<-gone
					}
					return result, err
				}
			})
		})
		req := httptest.NewRequest("POST", "/mcp", strings.NewReader(open))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		ctx = mcpresource.NewContext(ctx, r.principal("alice", "mcp"))
		r.handler.ServeHTTP(httptest.NewRecorder(), req.WithContext(ctx))
		close(gone)
		refuses(t, r)
	})
}

// TestNewestReader: RU-07. A second GET stream of a session replaces the first, whose client may
// have gone while a proxy keeps its connection.
func TestNewestReader(t *testing.T) {
	r := newRig(t, nil)
	session := r.initialize(t, "alice-mcp")
	open := func(token string) *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+"/mcp", nil)
		for name, value := range map[string]string{
			"Authorization": "Bearer " + token, "Mcp-Session-Id": session, "Accept": "text/event-stream",
		} {
			req.Header.Set(name, value)
		}
		resp, err := r.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	first := open("alice-mcp")
	if got := open("bob-mcp"); got.StatusCode != 404 {
		t.Errorf("RS-112 another person: got %d", got.StatusCode)
	}
	second := open("alice-mcp")
	if first.StatusCode != 200 || second.StatusCode != 200 {
		t.Fatalf("got %d, then %d", first.StatusCode, second.StatusCode)
	}
	if body, err := io.ReadAll(first.Body); err != nil || !strings.HasSuffix(string(body), "retry: 30000\n\n") {
		t.Errorf("the first stream: %q, %v", body, err)
	}
}

// TestReadersThatFight: RU-07. Two clients that read one stream and return immediately end each
// other at most every five seconds. A reader whose client does not read delays the next one for a
// limited time.
func TestReadersThatFight(t *testing.T) {
	request := func(ctx context.Context) *http.Request {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/mcp", nil)
		r.Header.Set("Mcp-Session-Id", "s")
		return r
	}
	t.Run("RU-07 two clients", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, began := newReaders(), time.Now()
			var served atomic.Int32
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					for time.Since(began) < time.Minute {
						ctx, cancel := context.WithDeadline(t.Context(), began.Add(time.Minute))
						r, done := s.replace(httptest.NewRecorder(), request(ctx))
						if r.Context().Err() == nil {
							served.Add(1)
						}
						<-r.Context().Done()
						done()
						cancel()
					}
				})
			}
			all.Wait()
			if n := served.Load(); n > 15 {
				t.Errorf("%d readers in a minute", n)
			}
			if len(s.byStream) > 0 {
				t.Errorf("%d streams are kept", len(s.byStream))
			}
		})
	})
	t.Run("RU-07 a client that reads nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newReaders()
			_, stuck := s.replace(httptest.NewRecorder(), request(t.Context())) // its handler does not return
			began := time.Now()
			_, done := s.replace(httptest.NewRecorder(), request(t.Context()))
			if waited := time.Since(began); waited != readerWait {
				t.Errorf("the next reader waits for %s", waited)
			}
			done()
			stuck()
		})
	})
}
