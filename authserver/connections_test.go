package authserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// deadlineWriter records the read deadlines that a handler sets.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	set []time.Time
}

// SetReadDeadline is called by http.ResponseController.
func (w *deadlineWriter) SetReadDeadline(at time.Time) error {
	w.set = append(w.set, at)
	return nil
}

// Security M4: every request with a body has a deadline, also for unknown paths and methods, and on
// every listener.
func TestEveryBodyHasADeadline(t *testing.T) {
	r := newRig(t)
	management := http.NewServeMux()
	management.HandleFunc("GET /healthz", r.Healthz)
	for name, site := range map[string]Site{"the server": {}, "another handler": {Handler: management}} {
		h := r.httpServer(site, t.Context()).Handler
		for _, request := range []string{
			"POST /nothing-here", "PUT /healthz", "GET /authorize", "DELETE /.well-known/nothing", "POST /mcp/other",
		} {
			var method, path string
			fmt.Sscan(request, &method, &path)
			w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
			body, _ := io.Pipe() // sends nothing
			req := httptest.NewRequest(method, path, body)
			h.ServeHTTP(w, req)
			if len(w.set) == 0 || w.set[0].IsZero() || time.Until(w.set[0]) > bodyTimeout {
				t.Errorf("%s: %s has the deadlines %v, want one within %s", name, request, w.set, bodyTimeout)
			}
		}
	}
	w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
	timely(http.NotFoundHandler(), time.Second).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if len(w.set) != 0 {
		t.Errorf("a request without a body, which may be a stream, has the deadlines %v", w.set)
	}
}

// pipes is a listener with in-memory connections, so that their deadlines use the clock of a
// synctest bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l pipes) Close() error {
	close(l.done)
	return nil
}

func (pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (l pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	l.conns <- server
	return client, nil
}

// Security M4: a connection whose announced body does not come is closed; a stream after its body
// is not.
func TestUnsentBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := http.NewServeMux()
		mux.HandleFunc("POST /stream", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(2 * bodyTimeout):
				fmt.Fprint(w, "still there")
			}
		})
		l := pipes{make(chan net.Conn), make(chan struct{})}
		s := &http.Server{Handler: timely(mux, bodyTimeout)}
		go func() { _ = s.Serve(l) }()
		defer s.Close()
		for _, request := range []string{"POST /nothing-here", "PUT /stream"} {
			conn, _ := l.dial(t.Context(), "", "")
			defer conn.Close()
			began := time.Now()
			fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", request)
			_ = conn.SetReadDeadline(began.Add(2 * bodyTimeout))
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Errorf("%s: the connection is open still: %v", request, err)
			}
			if took := time.Since(began); took < bodyTimeout {
				t.Errorf("%s: the connection was closed after %s, before %s", request, took, bodyTimeout)
			}
		}
		c := &http.Client{Transport: &http.Transport{DialContext: l.dial, DisableKeepAlives: true}}
		resp, err := c.Post("http://x/stream", "text/plain", io.MultiReader(strings.NewReader("x")))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); string(got) != "still there" {
			t.Errorf("the stream ended with %q, %v", got, err)
		}
	})
}

// Security M4: a listener has a maximum number of connections, and idle ones keep no client out.
func TestConnectionsAreBounded(t *testing.T) {
	release := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /quick", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") })
	mux.HandleFunc("GET /slow", func(http.ResponseWriter, *http.Request) { <-release })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const limit = 4
	bound := newConnections(limit, nil)
	s := &http.Server{Handler: mux, ConnState: bound.changed, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	dial := func(request string) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprint(conn, request)
		return conn
	}
	quick := func() error {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
		resp, err := c.Get("http://" + l.Addr().String() + "/quick")
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	settled := func(open, idle int) {
		t.Helper()
		wait.Success(t, "the connections have settled", func() error {
			bound.mu.Lock()
			o, i := bound.open, 0
			for _, g := range bound.crowds {
				i += g.Len()
			}
			bound.mu.Unlock()
			if o != open || i != idle {
				return fmt.Errorf("%d are open and %d idle, want %d and %d", o, i, open, idle)
			}
			return nil
		})
	}
	var silent []net.Conn
	for range 3 * limit {
		silent = append(silent, dial("GET /never-ends HTTP/1.1\r\n"))
	}
	settled(limit, limit)
	if err := quick(); err != nil {
		t.Errorf("silent connections keep others out: %v", err)
	}
	_ = silent[0].SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := silent[0].Read(make([]byte, 1)); err == nil {
		t.Error("the longest idle connection is open still")
	}
	settled(limit-1, limit-1) // the quick one has closed its own
	for range limit {
		dial("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	settled(limit, 0)
	if err := quick(); err == nil {
		t.Error("more requests are under way than there may be connections")
	}
	settled(limit, 0)
	close(release)
	settled(limit, limit)
	if err := quick(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
