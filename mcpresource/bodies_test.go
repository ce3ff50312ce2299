package mcpresource

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/limits"
)

// stalled is a body that yields left bytes, and then blocks until release.
type stalled struct {
	left    int
	arrived chan<- int // receives once at the end of the body
	release <-chan struct{}
	once    sync.Once
}

func (s *stalled) Read(b []byte) (int, error) {
	if s.left == 0 {
		s.once.Do(func() { s.arrived <- 1 })
		<-s.release
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(b), s.left)
	for i := range b[:n] {
		b[i] = ' '
	}
	s.left -= n
	return n, nil
}

func post(h http.Handler, token string, body io.Reader) int {
	req, w := httptest.NewRequest(http.MethodPost, resource, body), httptest.NewRecorder()
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	h.ServeHTTP(w, req)
	return w.Code
}

// TestUnreadBodies: security M3.
func TestUnreadBodies(t *testing.T) {
	wait := func(t *testing.T, h http.Handler, token string, n, bytes int) (release func()) {
		t.Helper()
		arrived, held := make(chan int), make(chan struct{})
		var all sync.WaitGroup
		for range n {
			all.Go(func() { post(h, token, &stalled{left: bytes, arrived: arrived, release: held}) })
		}
		for range n {
			<-arrived
		}
		return func() { close(held); all.Wait() }
	}
	t.Run("RS-189 a request is under way before its body is read", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Limits.Concurrent, c.Audit = 3, nil })
		release := wait(t, r.h, "alice", 3, 10)
		if got := post(r.h, "alice", strings.NewReader(tool("read"))); got != 429 {
			t.Errorf("the fourth: got %d, want 429", got)
		}
		if got := post(r.h, "bob", strings.NewReader(tool("read"))); got != 200 {
			t.Errorf("another person: got %d, want 200", got)
		}
		release()
		if left := limits.UsageOf(r.c.Bodies); r.load.underway.Len() != 0 || left.Total != 0 || len(left.Of) != 0 {
			t.Errorf("still counted: %v, %v", r.load.underway.Len(), left.Of)
		}
	})
	t.Run("RS-189 documented: 200 at once unless told otherwise", func(t *testing.T) { // mutation hole 18
		r := newRig(t, func(c *Config) { c.Audit = nil })
		release := wait(t, r.h, "alice", 200, 1)
		defer release()
		if got := post(r.h, "alice", strings.NewReader(tool("read"))); got != 429 {
			t.Errorf("the 201st: got %d, want 429", got)
		}
	})
	t.Run("RS-51 the bytes of one caller have a bound", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.MaxBodyBytes, c.Bodies, c.Audit = 1000, NewBodies(4000), nil })
		release := wait(t, r.h, "alice", 1, 900)
		if got := post(r.h, "alice", strings.NewReader(tool("read")+strings.Repeat(" ", 100))); got != 429 {
			t.Errorf("got %d, want 429", got)
		}
		if got := post(r.h, "bob", strings.NewReader(tool("read"))); got != 200 {
			t.Errorf("another person: got %d, want 200", got)
		}
		release()
		if got := post(r.h, "alice", strings.NewReader(tool("read"))); got != 200 {
			t.Errorf("after they went: got %d, want 200", got)
		}
	})
	t.Run("RS-51 and those of all together", func(t *testing.T) {
		shared := NewBodies(4000)
		other := newRig(t, func(c *Config) { c.MaxBodyBytes, c.Bodies, c.Audit = 1000, shared, nil })
		r := newRig(t, func(c *Config) { c.MaxBodyBytes, c.Bodies, c.Audit = 1000, shared, nil })
		// Each gets a quarter of the bytes that the others leave: 1000, 750, 575, 450, and 350.
		defer wait(t, r.h, "alice", 1, 999)()
		defer wait(t, r.h, "bob", 1, 700)()
		defer wait(t, r.h, "poor", 1, 500)()
		defer wait(t, r.h, "", 1, 400)() // ping is public
		if got := post(other.h, "admin", strings.NewReader(tool("read")+strings.Repeat(" ", 400))); got != 503 {
			t.Errorf("more than the rest: got %d, want 503", got)
		}
		if got := post(other.h, "admin", strings.NewReader(tool("read"))); got != 200 {
			t.Errorf("a small body: got %d, want 200", got)
		}
		if held := limits.UsageOf(shared).Total; held > 4000 {
			t.Errorf("%d bytes are held", held)
		}
	})
	t.Run("RS-51 a body counts for as long as its request runs", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.MaxBodyBytes, c.Bodies, c.Audit = 1000, NewBodies(4000), nil })
		body := tool("read") + strings.Repeat(" ", 900)
		r.next = func(http.ResponseWriter, *http.Request) {
			r.next = nil
			if got := post(r.h, "alice", strings.NewReader(body)); got != 429 {
				t.Errorf("got %d, want 429", got)
			}
		}
		post(r.h, "alice", strings.NewReader(body))
	})
	t.Run("a bound that lets no body in is refused", func(t *testing.T) {
		_, err := New(Config{
			Resource: resource, AuthorizationServers: []string{authServer}, Validator: Local(nil),
			Bodies: NewBodies(1 << 20),
		})
		if err == nil || !strings.Contains(err.Error(), "MaxBodyBytes") {
			t.Errorf("got %v", err)
		}
	})
}

// TestUnreadBodiesRace checks that after many concurrent requests nothing stays counted.
func TestUnreadBodiesRace(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.MaxBodyBytes, c.Bodies, c.Audit, c.Limits.Concurrent, c.Limits.Calls.PerSecond = 2000, NewBodies(8000), nil,
			10, -1
	})
	var peak atomic.Int64
	h := r.Protect(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		peak.Store(max(peak.Load(), limits.UsageOf(r.c.Bodies).Total))
		if req.ContentLength%7 == 0 {
			panic(http.ErrAbortHandler)
		}
	}))
	gone := make(chan struct{})
	close(gone)
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			defer func() { recover() }()
			token := []string{"alice", "bob", "admin", "", "nonsense"}[i%5]
			if i%3 == 0 {
				post(h, token, &stalled{left: rand.IntN(3000), arrived: make(chan int, 1), release: gone})
				return
			}
			post(h, token, strings.NewReader(tool("read")+strings.Repeat(" ", rand.IntN(2500))))
		})
	}
	all.Wait()
	left := limits.UsageOf(r.c.Bodies)
	if left.Total != 0 || len(left.Of) != 0 || r.load.underway.Len() != 0 || peak.Load() > 8000 {
		t.Errorf("got %d bytes of %v, %v under way, %d at most", left.Total, left.Of, r.load.underway.Len(),
			peak.Load())
	}
}

// TestApplicationsArePersons: security L6.
func TestApplicationsArePersons(t *testing.T) {
	t.Run("RS-189 the rate", func(t *testing.T) {
		r := newRig(t, func(c *Config) { through(c); c.Limits.Calls = Rate{PerSecond: 1, Burst: 3} })
		for i, want := range []int{200, 200, 200, 429} {
			if w := r.call(fmt.Sprint("alice@app", i), tool("read")); w.Code != want {
				t.Errorf("application %d: got %d, want %d", i, w.Code, want)
			}
		}
	})
	t.Run("RS-189 the sessions", func(t *testing.T) {
		r := newRig(t, func(c *Config) { through(c); c.MaxSessions = 2 })
		r.next = opensSessions
		for i, want := range []int{200, 200, 429} {
			if w := r.call(fmt.Sprint("alice@app", i), initialize); w.Code != want {
				t.Errorf("application %d: got %d, want %d", i, w.Code, want)
			}
		}
	})
	t.Run("a machine is its client", func(t *testing.T) {
		a, b := &Principal{Issuer: authServer, ClientID: "a"}, &Principal{Issuer: authServer, ClientID: "b"}
		if a.Person() == b.Person() || a.Person() == (&Principal{Issuer: authServer, Subject: "a"}).Person() {
			t.Error("two callers are one")
		}
	})
}
