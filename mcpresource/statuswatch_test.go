package mcpresource

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
)

type stream struct {
	opened time.Time
	done   chan struct{}
	cause  error         // after done
	lasted time.Duration // after done
	leave  func()
}

// streams is a guard whose handler runs until its request ends.
type streams struct {
	*Guard
	mu     sync.Mutex // guards events
	events []Event
}

func newStreams(t *testing.T, s *listServer, v Validator) *streams {
	t.Helper()
	out := &streams{}
	g, err := New(Config{
		Resource: resource, AuthorizationServers: []string{s.URL}, Validator: v, Limits: Limits{Concurrent: -1},
		Audit: func(e Event) {
			out.mu.Lock()
			defer out.mu.Unlock()
			out.events = append(out.events, e)
		}})
	if err != nil {
		t.Fatal(err)
	}
	out.Guard = g
	return out
}

func (g *streams) open(t *testing.T, token string) *stream {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	s := &stream{opened: time.Now(), done: make(chan struct{}), leave: leave}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, resource, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	started := make(chan struct{})
	h := g.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
		s.cause = context.Cause(r.Context())
	}))
	go func() {
		defer close(s.done)
		h.ServeHTTP(w, r)
		s.lasted = time.Since(s.opened)
	}()
	select {
	case <-started:
	case <-s.done: // it may have ended already
		select {
		case <-started:
		default:
			t.Fatalf("not opened: %d", w.Code)
		}
	}
	return s
}

func (s *stream) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func TestStatusStreams(t *testing.T) {
	shared := newSignerServer(t)
	run := func(name string, f func(*testing.T, *listServer)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, newListServer(t, shared)) })
		})
	}
	run("RS-44 RS-98 a stream ends when its token is revoked, without another request",
		func(t *testing.T, s *listServer) {
			s.slow = 100 * time.Millisecond
			g := newStreams(t, s, s.validator(t))
			a, b := g.open(t, s.with(t, 3)), g.open(t, s.with(t, 4))
			wait.Advance(10*time.Minute - time.Second/2)
			if a.ended() || b.ended() {
				t.Fatalf("ended before: %v %v", a.cause, b.cause)
			}
			s.set(3, true)
			revoked := time.Now()
			<-a.done
			if d := time.Since(revoked); d > 15*time.Second || !errors.Is(a.cause, ErrInvalidToken) {
				t.Errorf("ended after %s, %v", d, a.cause)
			}
			if b.ended() {
				t.Error("so did another")
			}
			last := g.events[len(g.events)-1]
			if last.Outcome != "ended" || last.Principal.TokenID == "" || !errors.Is(last.Err, ErrInvalidToken) ||
				len(g.events) != 3 {
				t.Errorf("recorded %+v", last)
			}
			b.leave()
			<-b.done
			wait.Advance(15 * time.Second)
			polls := s.polls.Load()
			if want := int32(10*60/14 + 3); polls > want {
				t.Errorf("asked %d times, want %d at most", polls, want)
			}
			wait.Advance(time.Hour)
			if n := s.polls.Load(); n != polls {
				t.Errorf("asked %d times with nothing open", n-polls)
			}
			if len(g.events) != 3 {
				t.Errorf("a client that leaves is recorded: %+v", g.events)
			}
		})
	run("RS-44 AS-121 a stream ends when the key of its token is withdrawn, whatever the status list says",
		func(t *testing.T, s *listServer) {
			stolen, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			s.rotate(stolen)
			g := newStreams(t, s, s.validator(t))
			forged := s.token(t, "ES256", stolen,
				s.claims("exp", time.Now().Add(1000*time.Hour).Unix(), "status", s.place(3, "0")), "kid", "ES256-2")
			a, b := g.open(t, forged), g.open(t, s.with(t, 3))
			s.rotate(nil)
			wait.Advance(refreshAfter + 3*judgeAgain)
			if !a.ended() || !errors.Is(a.cause, ErrInvalidToken) {
				t.Errorf("goes on: %v", a.cause)
			}
			if b.ended() {
				t.Errorf("so did one of another key: %v", b.cause)
			}
			a.leave()
			b.leave()
		})
	run("RS-44 RS-98 one that is revoked between check and start ends at once", func(t *testing.T, s *listServer) {
		v := s.validator(t)
		p, err := validate(v, s.with(t, 3))
		if err != nil {
			t.Fatal(err)
		}
		s.set(3, true)
		wait.Advance(15 * time.Second)
		expect(t, v, s.with(t, 3), ErrInvalidToken)
		g := newStreams(t, s, ValidatorFunc(func(context.Context, Credential) (*Principal, error) { return p, nil }))
		a := g.open(t, "any")
		<-a.done
		if a.lasted != 0 || !errors.Is(a.cause, ErrInvalidToken) {
			t.Errorf("ended after %s, %v", a.lasted, a.cause)
		}
	})
	run("RS-44 RS-98 a validator around ours changes nothing", func(t *testing.T, s *listServer) {
		own := s.validator(t)
		g := newStreams(t, s, AnyOf(ValidatorFunc(func(ctx context.Context, c Credential) (*Principal, error) {
			p, err := own.Validate(ctx, c)
			if err != nil {
				return nil, err
			}
			mine := *p
			mine.Scopes = append(mine.Scopes, "more")
			return &mine, nil
		})))
		a := g.open(t, s.with(t, 3))
		s.set(3, true)
		<-a.done
		if a.lasted > 15*time.Second || !errors.Is(a.cause, ErrInvalidToken) {
			t.Errorf("ended after %s, %v", a.lasted, a.cause)
		}
	})
	run("RS-44 RS-98 in an outage streams last as long as the list, and end", func(t *testing.T, s *listServer) {
		g := newStreams(t, s, s.validator(t))
		a := g.open(t, s.with(t, 3))
		wait.Advance(time.Minute)
		s.down.Store(true)
		<-a.done
		if a.lasted < 6*time.Minute || a.lasted > 6*time.Minute+15*time.Second || !errors.Is(a.cause, ErrUnavailable) {
			t.Errorf("ended after %s, %v", a.lasted, a.cause)
		}
		if last := g.events[len(g.events)-1]; last.Outcome != "ended" || !errors.Is(last.Err, ErrUnavailable) {
			t.Errorf("recorded %+v", last)
		}
		wait.Advance(time.Minute)
	})
	run("RS-44 RS-98 an outage in between is survived, and a revocation in it is seen after",
		func(t *testing.T, s *listServer) {
			g := newStreams(t, s, s.validator(t))
			a, b := g.open(t, s.with(t, 3)), g.open(t, s.with(t, 4))
			s.down.Store(true)
			wait.Advance(4 * time.Minute)
			s.set(3, true)
			s.down.Store(false)
			wait.Advance(2 * time.Second)
			if !a.ended() || b.ended() {
				t.Errorf("ended: %v, %v", a.ended(), b.ended())
			}
			b.leave()
			<-b.done
		})
	run("RS-98 a stream still ends when its token expires", func(t *testing.T, s *listServer) {
		g := newStreams(t, s, s.validator(t))
		a := g.open(t, s.token(t, "ES256", nil, s.claims("status", s.place(3, "0"))))
		<-a.done
		if a.lasted != time.Hour+token.DefaultSkew || !errors.Is(a.cause, context.DeadlineExceeded) {
			t.Errorf("ended after %s, %v", a.lasted, a.cause)
		}
	})
	run("RS-44 RS-196 a thousand streams are one poll, and not one goroutine more each",
		func(t *testing.T, s *listServer) {
			v := s.validator(t)
			g := newStreams(t, s, v)
			var open []*stream
			before := runtime.NumGoroutine()
			for i := range 1000 {
				open = append(open, g.open(t, s.with(t, i%128)))
			}
			wait.Advance(142 * time.Second)                         // between two checks
			if n := runtime.NumGoroutine() - before; n > 1000+100 { // other goroutines of the process
				t.Errorf("%d goroutines", n)
			}
			if n := s.polls.Load(); n > 12 {
				t.Errorf("asked %d times", n)
			}
			for i := range 128 {
				s.set(i, true)
			}
			wait.Advance(15 * time.Second)
			for i, a := range open {
				if !a.ended() {
					t.Fatalf("%d lasts", i)
				}
			}
		})
	run("RS-44 RS-51 a list with a stream is the last to go, and takes the stream along",
		func(t *testing.T, s *listServer) {
			v := s.validator(t)
			g := newStreams(t, s, v)
			a := g.open(t, s.with(t, 3))
			token := func(n int) string {
				return s.token(t, "ES256", nil, s.claims("status", s.place(3, fmt.Sprint(n))))
			}
			wait.Advance(time.Second)
			for n := range 2 * maxLists {
				expect(t, v, token(n+1), nil)
			}
			if a.ended() {
				t.Errorf("ended: %v", a.cause)
			}
			var more []*stream
			for n := range maxLists {
				wait.Advance(time.Second)
				more = append(more, g.open(t, token(n+1)))
			}
			if <-a.done; !errors.Is(a.cause, ErrUnavailable) {
				t.Errorf("ended: %v", a.cause)
			}
			for _, b := range more {
				if b.ended() {
					t.Errorf("ended: %v", b.cause)
				}
				b.leave()
				<-b.done
			}
		})
}

// TestRevokedStream uses real time and a real connection.
func TestRevokedStream(t *testing.T) {
	s := newListServer(t, newSignerServer(t))
	s.change = []any{"ttl", 1}
	as := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, err := s.RoundTrip(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Header().Set("ETag", resp.Header.Get("ETag"))
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body)
	}))
	defer as.Close()
	s.URL = as.URL
	v, err := NewJWTValidator(JWTConfig{Issuer: s.URL, JWKSURL: s.URL + "/jwks"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{
		Resource: "http://127.0.0.1/mcp", AuthorizationServers: []string{s.URL}, Validator: v,
		Limits: Limits{Concurrent: -1, Calls: Rate{PerSecond: 1e9}},
	})
	if err != nil {
		t.Fatal(err)
	}
	rs := httptest.NewServer(g.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if r.Method == http.MethodGet {
			io.WriteString(w, ": open\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})))
	defer rs.Close()
	token := s.token(t, "ES256", nil, s.claims("aud", "http://127.0.0.1/mcp", "status", s.place(3, "0")))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ask := func(method string) *http.Response {
		r, _ := http.NewRequestWithContext(ctx, method, rs.URL+"/mcp", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	// The delay is checked above, with a fake clock.
	t.Run("RS-44 RS-98 a stream and a remembered token are cut", func(t *testing.T) {
		resp := ask(http.MethodGet)
		lines := bufio.NewReader(resp.Body)
		if line, err := lines.ReadString('\n'); resp.StatusCode != 200 || err != nil {
			t.Fatalf("got %d %q %v", resp.StatusCode, line, err)
		}
		if resp := ask(http.MethodDelete); resp.StatusCode != 200 {
			t.Errorf("before: got %d", resp.StatusCode)
		}
		s.set(3, true)
		io.Copy(io.Discard, lines)
		if ctx.Err() != nil {
			t.Fatal("the stream has not ended")
		}
		if resp := ask(http.MethodDelete); resp.StatusCode != 401 {
			t.Errorf("after: got %d", resp.StatusCode)
		}
	})
}

// BenchmarkGuardStatus measures a whole request with a cached token, with and without a status list
// entry.
func BenchmarkGuardStatus(b *testing.B) {
	s := newListServer(b, newSignerServer(b))
	v := s.validator(b)
	r := newRig(b, func(c *Config) {
		c.AuthorizationServers, c.Validator, c.Audit, c.Now = []string{s.URL}, v, nil, time.Now
		c.Limits.Calls.PerSecond = 1e9
	})
	r.h = r.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, token := range map[string]string{"none": s.token(b, "ES256", nil, s.claims()), "listed": s.with(b, 3)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if w := r.call(token, tool("read")); w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

// TestStreamWithoutStatus: if the validator sees revocations without a status list, an open stream
// still ends.
func TestStreamWithoutStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var verdict atomic.Pointer[error]
		var asked atomic.Int32
		v := ValidatorFunc(func(context.Context, Credential) (*Principal, error) {
			asked.Add(1)
			if err := verdict.Load(); err != nil {
				return nil, *err
			}
			return &Principal{
				Issuer: "https://as.example.com", Subject: "alice", ClientID: "c", Audience: []string{resource},
				ExpiresAt: time.Now().Add(time.Hour)}, nil
		})
		g := &streams{}
		guard, err := New(Config{
			Resource: resource, AuthorizationServers: []string{"https://as.example.com"}, Validator: v,
			Limits: Limits{Concurrent: -1, Calls: Rate{PerSecond: 1e9}},
		})
		if err != nil {
			t.Fatal(err)
		}
		g.Guard = guard
		s := g.open(t, "token")
		wait.Advance(time.Minute)
		verdict.Store(&ErrUnavailable)
		wait.Advance(time.Minute)
		if s.ended() {
			t.Fatalf("RS-44: an outage ends a stream: %v", s.cause)
		}
		verdict.Store(&ErrInvalidToken)
		at := time.Now()
		<-s.done
		if d := time.Since(at); d > judgeAgain || !errors.Is(s.cause, ErrInvalidToken) {
			t.Errorf("RS-44 RS-98: ended after %s, %v", d, s.cause)
		}
		n := asked.Load()
		wait.Advance(time.Hour)
		if more := asked.Load() - n; more != 0 {
			t.Errorf("asked %d times with nothing open", more)
		}
	})
}
