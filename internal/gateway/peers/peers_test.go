package peers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const resource = "https://mcp.example.com/notes"

var alice = &mcpresource.Principal{
	Issuer: "https://auth.example.com", Subject: "alice", ClientID: "app", Scopes: []string{"notes"},
	Claims: json.RawMessage(`{"acr":"phr","act":{"sub":"helper"}}`),
}

// table is an in-memory table of replicas.
type table struct {
	mu  sync.Mutex
	all map[string]storage.Replica
	err error
}

func (d *table) SeeReplica(_ context.Context, r storage.Replica) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all[r.ID] = r
	return nil
}

func (d *table) ForgetReplica(_ context.Context, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, id)
	return nil
}

func (d *table) Replicas(context.Context, time.Time) (out []storage.Replica, schema int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.all {
		out = append(out, r)
	}
	return out, 0, d.err
}

func key(n byte) []byte { return []byte(strings.Repeat(string('a'+rune(n)), secrets.KeySize)) }

// replica is a replica that serves a handler.
type replica struct {
	*Peers
	site *Site
	at   string
	end  func(time.Duration)
	log  *logtest.Buffer
}

// quick returns a clock that advances at each call, so that every request may read the table.
func quick() func() time.Time {
	var mu sync.Mutex
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(readEvery)
		return now
	}
}

// start starts a replica with master keys, the primary first.
func start(tb testing.TB, d *table, id string, h http.Handler, keys ...[]byte) *replica {
	tb.Helper()
	ring, err := secrets.NewRing(keys...)
	if err != nil {
		tb.Fatal(err)
	}
	r := &replica{log: &logtest.Buffer{}}
	now := quick()
	log := slog.New(slog.NewTextHandler(r.log, nil))
	r.Peers, err = New(Config{Self: id, Ring: ring, Store: d, Now: now, Logger: log})
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	r.site, r.at = r.Site(resource, 1000, h), l.Addr().String()
	r.end = r.Serve(l)
	tb.Cleanup(func() { r.end(0) })
	_ = d.SeeReplica(tb.Context(), storage.Replica{ID: id, Name: id, PeerAddress: r.at, SeenAt: now()})
	return r
}

func newTable() *table { return &table{all: map[string]storage.Replica{}} }

// pass sends a request for a holder's session to r, as r's guard would accept it.
func (r *replica) pass(
	ctx context.Context, method, session, body string, p *mcpresource.Principal,
) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(mcpresource.NewContext(ctx, p), method, "/", nil)
	req.Header = http.Header{
		"Authorization": {"Bearer secret"}, "Cookie": {"a=b"}, "Accept": {"text/event-stream"},
		"Content-Type": {"application/json"}, mcp.HeaderSession: {session}, mcp.HeaderLastEvent: {"x_1"},
	}
	w := httptest.NewRecorder()
	to := Request{Holder: r.site.Elsewhere(session), Body: []byte(body)}
	if method == http.MethodPost {
		to.Calls = []json.RawMessage{json.RawMessage("7")}
	}
	r.site.Forward(w, req, to)
	return w
}

// TestForward: RU-08: the holder gets the accepted request and its caller, but no credential.
func TestForward(t *testing.T) {
	var got *http.Request
	var body string
	var who *mcpresource.Principal
	d := newTable()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		got, body = r, string(b)
		who, _ = mcpresource.FromContext(r.Context())
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "no=no")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, "answer")
	})
	a, b := start(t, d, "rep_a", nil, key(0)), start(t, d, "rep_b", h, key(0))
	w := a.pass(t.Context(), http.MethodPost, b.site.Session("s"), "hello", alice)
	if w.Code != http.StatusAccepted || w.Body.String() != "answer" || w.Header().Get("Content-Type") == "" ||
		w.Header().Get("Set-Cookie") != "" {
		t.Errorf("RU-08: got %d %q %v", w.Code, w.Body, w.Header())
	}
	if body != "hello" || !Passed(got.Context()) || got.Header.Get("Authorization")+got.Header.Get("Cookie") != "" ||
		got.Header.Get(mcp.HeaderLastEvent) != "x_1" || got.Method != http.MethodPost {
		t.Errorf("RU-08: the holder got %q %+v", body, got)
	}
	if who == nil || who.Key() != alice.Key() || string(who.Claims) != string(alice.Claims) ||
		!who.Scopes.Has("notes") || len(who.Actors()) != 1 {
		t.Errorf("RU-08: the holder takes the caller for %+v", who)
	}
	a.pass(t.Context(), http.MethodDelete, b.site.Session("s"), "", nil)
	if who != nil || got.Method != http.MethodDelete {
		t.Errorf("RU-08: no peer taken for %+v", who)
	}
	t.Run("RU-08 what is too long is refused on each side", func(t *testing.T) {
		if w := a.pass(t.Context(), http.MethodPost, b.site.Session("s"), strings.Repeat("x", 1001), alice); w.Code !=
			http.StatusRequestEntityTooLarge {
			t.Errorf("got %d", w.Code)
		}
		long := *alice
		long.Claims = json.RawMessage(`"` + strings.Repeat("x", maxHeader/2) + `"`)
		if w := a.pass(t.Context(), http.MethodPost, b.site.Session("s"), "", &long); w.Code != http.StatusBadGateway {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
	t.Run("RU-08 only the holder that a session names serves it", func(t *testing.T) {
		req, err := a.request(t.Context(), http.MethodGet, "rep_b", pathSession)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(headerResource, resource)
		req.Header.Set(mcp.HeaderSession, "s.rep_a")
		resp, err := a.transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("got %s", resp.Status)
		}
	})
}

// TestElsewhere: RU-08: an id that cannot be a replica ID is not looked up.
func TestElsewhere(t *testing.T) {
	a := start(t, newTable(), "rep_a", nil, key(0))
	for session, want := range map[string]string{
		a.site.Session("s"): "", "s": "", "": "", "s.": "", "s.rep_b": "rep_b", "s.rep_b.rep_c": "", "s.rep b": "",
		"s.127.0.0.1:80": "", "s.é": "", "s." + strings.Repeat("x", 65): "",
	} {
		if got := a.site.Elsewhere(session); got != want {
			t.Errorf("RU-08: %q: got %q, want %q", session, got, want)
		}
	}
}

// TestHolderAway: RU-08: if the holder has ended, the answer is 404. If it runs but is unreachable,
// the answer is an error that explains this.
func TestHolderAway(t *testing.T) {
	for name, c := range map[string]struct {
		away   func(t *testing.T, d *table, b *replica)
		status int
		says   string
	}{
		"it has stopped": {func(t *testing.T, d *table, b *replica) {
			b.end(0)
			_ = d.ForgetReplica(t.Context(), "rep_b")
		}, 404, "Open a new session"},
		"it was killed": {func(_ *testing.T, _ *table, b *replica) { b.end(0) }, 404, "Open a new session"},
		"another has got its address": {func(t *testing.T, d *table, b *replica) {
			r := d.all["rep_b"]
			r.PeerAddress = start(t, d, "rep_c", nil, key(0)).at
			_ = d.SeeReplica(t.Context(), r)
		}, 404, "Open a new session"},
		"it has another key": {func(t *testing.T, d *table, _ *replica) {
			start(t, d, "rep_b", nil, key(1))
		}, 503, "mcp-authd doctor"},
		"its address is of another program": {func(t *testing.T, d *table, _ *replica) {
			other := httptest.NewTLSServer(nil)
			t.Cleanup(other.Close)
			r := d.all["rep_b"]
			r.PeerAddress = other.Listener.Addr().String()
			_ = d.SeeReplica(t.Context(), r)
		}, 503, "mcp-authd doctor"},
		"it has that key, but this one's not": {func(t *testing.T, d *table, _ *replica) {
			start(t, d, "rep_b", nil, key(2))
		}, 503, "mcp-authd doctor"},
		"it has no listener": {func(t *testing.T, d *table, _ *replica) {
			r := d.all["rep_b"]
			r.PeerAddress = ""
			_ = d.SeeReplica(t.Context(), r)
		}, 503, "mcp-authd doctor"},
		"the store is away": {func(_ *testing.T, d *table, _ *replica) {
			d.err = io.ErrUnexpectedEOF
		}, 503, "cannot reach"},
	} {
		t.Run("RU-08 "+name, func(t *testing.T) {
			d := newTable()
			a, b := start(t, d, "rep_a", nil, key(0), key(2)), start(t, d, "rep_b", nil, key(0))
			c.away(t, d, b)
			w := a.pass(t.Context(), http.MethodPost, "s.rep_b", "{}", alice)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) ||
				!strings.Contains(w.Body.String(), `"id":7`) {
				t.Errorf("got %d %s, want %d with %q\n%s", w.Code, w.Body, c.status, c.says, a.log)
			}
		})
	}
}

// TestHolderDiesInStream: RU-08: if the holder ends, a call gets an error, and a listening stream
// ends.
func TestHolderDiesInStream(t *testing.T) {
	begun := make(chan struct{}, 2)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "id: 1\ndata: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // like the end of the process
	})
	for method, want := range map[string]string{
		http.MethodPost: `data: {"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"The server that held this session`,
		http.MethodGet:  "",
	} {
		t.Run("RU-08 "+method, func(t *testing.T) {
			d := newTable()
			a, b := start(t, d, "rep_a", nil, key(0)), start(t, d, "rep_b", h, key(0))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				<-begun
				b.end(0)
			}()
			w := a.pass(t.Context(), method, "s.rep_b", "{}", alice)
			rest, ok := strings.CutPrefix(w.Body.String(), "id: 1\ndata: {}\n\n")
			if w.Code != http.StatusOK || !ok || !strings.Contains(rest, want) || (want == "") != (rest == "") {
				t.Errorf("got %d %q", w.Code, w.Body)
			}
			<-ended // its listener may stay open a moment longer than its connections
			if w := a.pass(t.Context(), method, "s.rep_b", "{}", alice); w.Code != http.StatusNotFound {
				t.Errorf("and then %d %s", w.Code, w.Body)
			}
		})
	}
}

// TestClientLeaves: RU-08: the holder notices immediately when a client disconnects.
func TestClientLeaves(t *testing.T) {
	begun, gone := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-r.Context().Done()
		close(gone)
	})
	d := newTable()
	a := start(t, d, "rep_a", nil, key(0))
	start(t, d, "rep_b", h, key(0))
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-begun
		leave()
	}()
	a.pass(ctx, http.MethodGet, "s.rep_b", "", alice)
	<-gone
}

// TestStreamsAreNotHeld: RU-08: each event reaches the client immediately.
func TestStreamsAreNotHeld(t *testing.T) {
	more := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 2 {
			fmt.Fprint(w, "data: {}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-more
		}
	})
	d := newTable()
	a := start(t, d, "rep_a", nil, key(0))
	start(t, d, "rep_b", h, key(0))
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set(mcp.HeaderSession, "s.rep_b")
		a.site.Forward(w, r, Request{Holder: "rep_b"})
	}))
	defer edge.Close()
	resp, err := http.Get(edge.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for range 2 {
		if !lines.Scan() || lines.Text() != "data: {}" || !lines.Scan() {
			t.Fatalf("RU-08: got %q, %v", lines.Text(), lines.Err())
		}
		more <- struct{}{}
	}
}

// TestCheck: RU-08: each replica knows which others it cannot reach, and logs changes.
func TestCheck(t *testing.T) {
	d := newTable()
	a := start(t, d, "rep_a", nil, key(0))
	start(t, d, "rep_b", nil, key(0))
	if a.Check(t.Context()) || a.Unreached() != "" {
		t.Fatalf("RU-08: got %q", a.Unreached())
	}
	b := d.all["rep_b"]
	start(t, d, "rep_b", nil, key(1))
	a.transport.CloseIdleConnections()
	if !a.Check(t.Context()) || !strings.HasPrefix(a.Unreached(), "rep_b it has another master key") ||
		!strings.Contains(a.log.String(), "another replica cannot be reached") {
		t.Errorf("RU-08: got %q\n%s", a.Unreached(), a.log)
	}
	if a.Check(t.Context()) {
		t.Error("RU-08: it is reported again")
	}
	_ = d.SeeReplica(t.Context(), b)
	if !a.Check(t.Context()) || a.Unreached() != "" || !strings.Contains(a.log.String(), "reached again") {
		t.Errorf("RU-08: got %q\n%s", a.Unreached(), a.log)
	}
	for i := range 200 {
		_ = d.SeeReplica(t.Context(), storage.Replica{
			ID: fmt.Sprintf("rep_%d", i), PeerAddress: "127.0.0.1:1", SeenAt: b.SeenAt.Add(time.Hour),
		})
	}
	if a.Check(t.Context()); a.Unreached() == "" || len(a.Unreached()) > storage.MaxUnreached {
		t.Errorf("RU-08: %d bytes", len(a.Unreached()))
	}
}
