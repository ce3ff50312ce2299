package traces

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-authd/mcp-authd/internal/span"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/collector"
)

// rig is a server with traces and a collector.
type rig struct {
	*collector.Collector
	traces *Traces
	server http.Handler
	mu     sync.Mutex
	told   map[string]int
	log    strings.Builder
}

func newRig(t *testing.T, c Config, h http.Handler) *rig {
	t.Helper()
	r := &rig{Collector: collector.New(t), told: map[string]int{}}
	c.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
	c.Endpoint = r.URL
	if c.Issuer == "" {
		c.Issuer = "http://localhost:8414"
	}
	c.Told = func(result string, n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.told[result] += n
	}
	var err error
	if r.traces, err = New(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.traces.Close)
	r.server = r.traces.Handler(h)
	return r
}

func (r *rig) ask(target string, header http.Header) *httptest.ResponseRecorder {
	in, w := httptest.NewRequest(http.MethodGet, target, nil), httptest.NewRecorder()
	maps.Copy(in.Header, header)
	r.server.ServeHTTP(w, in)
	return w
}

// sent closes the traces and returns the exported spans by name.
func (r *rig) sent() map[string]collector.Span {
	r.traces.Close()
	out := map[string]collector.Span{}
	for _, s := range r.Spans() {
		out[s.Name] = s
	}
	return out
}

const (
	theirTrace  = "0af7651916cd43dd8448eb211c80319c"
	theirParent = "00-" + theirTrace + "-b7ad6b7169203331-01"
)

// TestServerSpans checks that spans follow the HTTP conventions and contain no path, query, header
// or error text (OB-08).
func TestServerSpans(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /link/{token}", func(w http.ResponseWriter, r *http.Request) {
		ctx, end := span.Begin(r.Context(), "sign")
		span.Did(ctx, "Keys", time.Now(), time.Millisecond, errors.New("SECRET of the database"))
		end(nil)
		w.WriteHeader(http.StatusTeapot)
	})
	r := newRig(t, Config{Sample: 1, Headers: map[string]string{"Api-Key": "k"}}, mux)
	r.ask("/link/SECRET?code=SECRET", http.Header{
		"Traceparent": {theirParent}, "Baggage": {"who=SECRET"}, "User-Agent": {"SECRET"}, "Cookie": {"a=SECRET"},
	})
	r.ask("/healthz", nil)
	all := r.sent()
	server, sign, keys := all["GET /link/{token}"], all["sign"], all["Keys"]
	want := map[string]string{
		"http.request.method": "GET", "http.route": "/link/{token}", "url.scheme": "http",
		"http.response.status_code": "418",
	}
	if !maps.Equal(server.Attributes, want) || server.Kind != "SPAN_KIND_SERVER" || server.Service != "mcp-authd" {
		t.Errorf("got %+v, want the attributes %v", server, want)
	}
	if len(all) != 3 || server.Trace != theirTrace || server.Parent != "b7ad6b7169203331" ||
		sign.Parent != server.ID || keys.Parent != sign.ID || keys.Trace != theirTrace || !keys.Failed {
		t.Errorf("got %+v", all)
	}
	if text := fmt.Sprint(r.Spans()); strings.Contains(text, "SECRET") {
		t.Errorf("got %s, which contains the sent text", text)
	}
	if r.Header().Get("Api-Key") != "k" || r.told[Sent] != 3 {
		t.Errorf("got %v, and %v", r.Header(), r.told)
	}
}

// TestContextOfCallers checks that invalid trace headers are ignored and not echoed (RS-213).
func TestContextOfCallers(t *testing.T) {
	long := strings.Repeat("a", 10_000)
	for name, tt := range map[string]struct {
		header http.Header
		theirs bool
	}{
		"a parent":           {http.Header{"Traceparent": {theirParent}}, true},
		"10,000 characters":  {http.Header{"Traceparent": {theirParent + long}}, false},
		"a version to come":  {http.Header{"Traceparent": {"01" + theirParent[2:] + "-" + long}}, false},
		"two of them":        {http.Header{"Traceparent": {theirParent, theirParent}}, false},
		"zeros":              {http.Header{"Traceparent": {"00-" + strings.Repeat("0", 32) + theirParent[35:]}}, false},
		"a state of 10,000":  {http.Header{"Traceparent": {theirParent}, "Tracestate": {"a=" + long}}, true},
		"baggage of 10,000":  {http.Header{"Traceparent": {theirParent}, "Baggage": {"a=" + long}}, true},
		"a cookie of 10,000": {http.Header{"Cookie": {"mcp-authd-trace=" + theirParent + long}}, false},
	} {
		r := newRig(t, Config{Sample: 1}, http.NotFoundHandler())
		w := r.ask("/x", tt.header)
		s := r.sent()["GET"]
		if got := s.Trace == theirTrace; got != tt.theirs || s.ID == "" {
			t.Errorf("%s: got the trace %s, want theirs: %v", name, s.Trace, tt.theirs)
		}
		answer, _ := io.ReadAll(w.Result().Body)
		text := fmt.Sprint(w.Header(), string(answer), r.Spans(), r.log.String())
		if strings.Contains(text, long[:16]) {
			t.Errorf("%s: got %s", name, text)
		}
	}
}

// TestSample checks that callers cannot select traces by the flag, a chosen ID or a repeated one,
// and that servers with the same key select the same traces (OB-08).
func TestSample(t *testing.T) {
	const n = 400
	kept := func(c Config, parent func(i int) string) (out []string) {
		r := newRig(t, c, http.NotFoundHandler())
		for i := range n {
			r.ask("/x", http.Header{"Traceparent": {parent(i)}})
		}
		r.traces.Close()
		for _, s := range r.Spans() {
			out = append(out, s.Trace)
		}
		slices.Sort(out)
		return out
	}
	about := func(name string, got, of int) {
		if got < of/4 || got > of*3/4 {
			t.Errorf("%s: got %d of %d spans, want about a half", name, got, of)
		}
	}
	half := Config{Sample: 0.5, Key: []byte("one key")}
	low := func(flag string) func(int) string {
		return func(i int) string {
			return fmt.Sprintf("00-0af7651916cd43dd%016x-b7ad6b7169203331-%s", i+1, flag)
		}
	}
	first := kept(half, low("00"))
	about("ids that begin with zeros, none wanted", len(first), n)
	if again := kept(half, low("01")); !slices.Equal(again, first) {
		t.Errorf("got %d and %d, want the same traces by the same key", len(again), len(first))
	}
	if other := kept(Config{Sample: 0.5, Key: []byte("another")}, low("01")); slices.Equal(other, first) {
		t.Error("another key chooses the same traces")
	}
	same := len(kept(half, func(int) string { return low("01")(7) }))
	about("one id again and again, after the first hundred", same-min(same, perTrace.Burst)*same/n, n-perTrace.Burst)
	if same == 0 || same == n {
		t.Errorf("one id again and again: got %d of %d", same, n)
	}
}

// TestSampleIsNotTold checks that the cookie hides whether the trace is sent (OB-08).
func TestSampleIsNotTold(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/authorize", func(http.ResponseWriter, *http.Request) {})
	r := newRig(t, Config{Sample: 0.5}, mux)
	for i := range 50 {
		w := r.ask(fmt.Sprintf("/authorize?code_challenge=%d", i), nil)
		for _, c := range w.Result().Cookies() {
			if parent, _, _ := strings.Cut(c.Value, "."); !strings.HasSuffix(parent, "-01") {
				t.Fatalf("got %s", parent)
			}
		}
	}
}

// TestOneSignIn checks that a browser's sign-in is one trace, and another authorization request
// starts another.
func TestOneSignIn(t *testing.T) {
	mux := http.NewServeMux()
	for _, path := range []string{"/authorize", "/login", "/callback/idp"} {
		mux.HandleFunc(path, func(http.ResponseWriter, *http.Request) {})
	}
	r := newRig(t, Config{Sample: 1, Issuer: "https://auth.example.com"}, mux)
	jar := http.Header{}
	for _, target := range []string{
		"/login", // 0: no trace yet
		"/authorize?client_id=a&code_challenge=one", // 1
		"/login", // 2
		"/authorize?client_id=a&code_challenge=one&b", // 3: from the login page
		"/callback/idp?state=s",                       // 4
		"/authorize?client_id=a&code_challenge=two",   // 5
		"/login", // 6
	} {
		for _, c := range r.ask(target, jar).Result().Cookies() {
			if !strings.HasPrefix(c.Name, "__Host-mcp-authd-trace-") || !c.HttpOnly || !c.Secure || c.MaxAge != 600 ||
				c.SameSite != http.SameSiteLaxMode {
				t.Errorf("got the cookie %+v", c)
			}
			jar.Set("Cookie", c.Name+"="+c.Value)
		}
	}
	r.traces.Close()
	var got []string
	for _, s := range r.Spans() {
		got = append(got, s.Trace)
	}
	if len(got) != 7 || slices.Contains(got[1:], got[0]) || got[1] != got[2] || got[1] != got[3] || got[1] != got[4] ||
		got[5] == got[1] || got[5] != got[6] {
		t.Errorf("got the traces %v", got)
	}
}

// TestLibraries checks that a library's spans are not sent, and that ours keep their parent.
func TestLibraries(t *testing.T) {
	r := newRig(t, Config{Sample: 1}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx, s := trace.SpanFromContext(r.Context()).TracerProvider().Tracer("github.com/ory/fosite").
			Start(r.Context(), "Fosite.NewAccessRequest")
		_, end := span.Begin(ctx, "sign")
		end(context.DeadlineExceeded)
		s.RecordError(errors.New("SECRET"))
		s.End()
	}))
	r.ask("/x", nil)
	all := r.sent()
	if len(all) != 2 || all["sign"].Parent != all["GET"].ID || all["sign"].Attributes["error.type"] != "timeout" {
		t.Errorf("got %+v", all)
	}
}

// TestAborted checks that the span of a handler that panics fails, and the panic continues.
func TestAborted(t *testing.T) {
	r := newRig(t, Config{Sample: 1}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler {
				t.Error("the panic was lost")
			}
		}()
		r.ask("/x", nil)
	}()
	if s := r.sent()["GET"]; !s.Failed || s.Attributes["error.type"] != "aborted" {
		t.Errorf("got %+v", s)
	}
}

// TestCollectorAway checks that failed spans are counted and logged once, and that spans beyond the
// queue are dropped without delay (OB-08).
func TestCollectorAway(t *testing.T) {
	r := newRig(t, Config{Sample: 1}, http.NotFoundHandler())
	r.Answer(http.StatusBadRequest)
	r.ask("/x", nil)
	r.traces.Close()
	if r.told[Failed] != 1 || strings.Count(r.log.String(), "spans are not sent") != 1 {
		t.Errorf("got %v, and %s", r.told, &r.log)
	}

	full := newRig(t, Config{Sample: 1}, http.NotFoundHandler())
	full.traces.out.waiting.Store(waiting)
	full.ask("/x", nil)
	if full.told[Dropped] != 1 {
		t.Errorf("got %v, want one that was dropped", full.told)
	}
	full.traces.out.waiting.Store(0)
	full.ask("/x", nil)
	if full.traces.Close(); full.told[Sent] != 1 || full.traces.out.waiting.Load() != 0 {
		t.Errorf("got %v, want one that was sent", full.told)
	}
}

// TestStoreVerbs checks that storage.ErrNotFound does not mark a span as failed.
func TestStoreVerbs(t *testing.T) {
	var verbs func(context.Context, string, time.Time, time.Duration, error)
	r := newRig(t, Config{Sample: 1}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		verbs(r.Context(), "Grant", time.Now(), time.Millisecond, storage.ErrNotFound)
		verbs(r.Context(), "Keys", time.Now(), time.Millisecond, errors.New("disk full"))
	}))
	verbs = r.traces.Store("sqlite")
	verbs(t.Context(), "Housekeeping", time.Now(), time.Second, nil) // outside a request
	r.ask("/x", nil)
	all := r.sent()
	want := map[string]string{"db.system.name": "sqlite", "db.operation.name": "Grant"}
	if len(all) != 3 || !maps.Equal(all["Grant"].Attributes, want) || all["Grant"].Failed || !all["Keys"].Failed ||
		all["Grant"].Kind != "SPAN_KIND_CLIENT" || all["Grant"].Millis != 1 {
		t.Errorf("got %+v", all)
	}
}
