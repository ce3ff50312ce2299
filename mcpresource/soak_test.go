package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

const soakStreams = 1000

// soak is a guarded server whose handler holds streams open, and its clients.
type soak struct {
	t       testing.TB
	lists   *listServer
	jwt     Validator
	guard   *Guard
	server  *httptest.Server
	client  *http.Client
	open    atomic.Int64
	expired atomic.Int64
	revoked atomic.Int64
	left    atomic.Int64
}

// lives is the lifetime of tokens that expire during their streams.
const lives = 3 * time.Second

func newSoak(t testing.TB, guarded bool) *soak {
	s := &soak{t: t, lists: newListServer(t, newSignerServer(t)), client: &http.Client{Transport: &http.Transport{}}}
	s.lists.change = []any{"ttl", 1}
	hold := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, ": open\n\n")
		http.NewResponseController(w).Flush()
		s.open.Add(1)
		<-r.Context().Done()
		switch cause := context.Cause(r.Context()); {
		case errors.Is(cause, ErrInvalidToken):
			s.revoked.Add(1)
		case errors.Is(cause, context.DeadlineExceeded):
			s.expired.Add(1)
		default:
			s.left.Add(1)
		}
		s.open.Add(-1)
	})
	s.server = httptest.NewUnstartedServer(nil)
	address := "http://" + s.server.Listener.Addr().String() + "/mcp"
	expiring := ValidatorFunc(func(_ context.Context, c Credential) (*Principal, error) {
		who, ok := strings.CutPrefix(c.Token, "expires-")
		if !ok {
			return nil, ErrInvalidToken
		}
		return &Principal{
			Issuer: s.lists.URL, Subject: who, ClientID: "soak", Audience: []string{address},
			ExpiresAt: time.Now().Add(lives)}, nil
	})
	s.jwt = s.lists.validator(t, func(c *JWTConfig) { c.CacheSize = 500 }) // full after the first round
	g, err := New(Config{
		Resource: address, AuthorizationServers: []string{s.lists.URL}, ClockSkew: time.Nanosecond,
		Validator: AnyOf(expiring, s.jwt),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.guard, s.server.Config.Handler = g, hold
	if guarded {
		s.server.Config.Handler = g.Handler(hold)
	}
	s.server.Start()
	t.Cleanup(s.server.Close)
	return s
}

// listed signs a user's token with an index in a status list.
func (s *soak) listed(who string, place int, list string) string {
	return s.lists.token(s.t, "ES256", nil,
		s.lists.claims("sub", who, "aud", s.server.URL+"/mcp", "status", s.lists.place(place, list)))
}

// stream opens a stream and reads it to its end.
func (s *soak) stream(ctx context.Context, token string, ready func()) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL+"/mcp", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := s.client.Do(req)
	ready()
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", resp.Status)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // it may end with or without an error
	return nil
}

// round opens a thousand streams, each for another user, and ends each in one of three ways. Each
// round has its own status list, because the guard caches the list of the previous round.
func (s *soak) round(n int) {
	list := fmt.Sprint(n)
	var opening, running sync.WaitGroup
	leaving, leave := context.WithCancel(context.Background())
	defer leave()
	opening.Add(soakStreams)
	start := func(ctx context.Context, token string) {
		running.Go(func() {
			if err := s.stream(ctx, token, opening.Done); err != nil && ctx.Err() == nil {
				s.t.Errorf("a stream: %v", err)
			}
		})
	}
	for i := range soakStreams {
		who := fmt.Sprintf("%d-%d", n, i)
		switch i % 5 {
		case 0, 1:
			start(context.Background(), "expires-"+who)
		case 2, 3:
			start(context.Background(), s.listed(who, i%64, list))
		default:
			start(leaving, s.listed(who, 64, list))
		}
	}
	opening.Wait()
	for i := range 64 {
		s.lists.set(i, true)
	}
	leave()
	running.Wait()
	for i := range 64 {
		s.lists.set(i, false)
	}
}

// settled waits until background work has ended, and returns the goroutines and memory that are
// left.
func (s *soak) settled(goroutines int) (int, uint64) {
	s.client.CloseIdleConnections()
	wait.Poll(wait.Bound, func() bool { return runtime.NumGoroutine() <= goroutines })
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), m.HeapAlloc
}

// kept returns the number of entries that the guard holds for streams.
func (s *soak) kept() int {
	return s.guard.load.underway.Len() + s.guard.sessions.opening.Len()
}

// TestSoak checks that nothing remains after a thousand concurrent streams, expired and revoked
// tokens, and clients that leave. With MCP_AUTHD_SOAK=long it runs for minutes.
func TestSoak(t *testing.T) {
	lane.Long(t, "TestStreams opens and ends a few")
	rounds := 1
	if os.Getenv("MCP_AUTHD_SOAK") == "long" {
		rounds = 40
	}
	s := newSoak(t, true)
	before := runtime.NumGoroutine()
	s.round(0) // warm-up for one-time allocations
	first, flat := s.settled(before + 4)
	t.Logf("%d goroutines and %d KB before, %d and %d KB after the first round", before, 0, first, flat>>10)
	for n := range rounds {
		s.round(n + 1)
		goroutines, heap := s.settled(first)
		t.Logf("round %d: %d goroutines, %d KB", n+1, goroutines, heap>>10)
		if goroutines > first+2 {
			buf := make([]byte, 1<<16)
			t.Fatalf("RS-98 RS-51: %d goroutines are left, %d before:\n%s", goroutines, first,
				buf[:runtime.Stack(buf, true)])
		}
		if n := s.kept(); n != 0 {
			t.Fatalf("RS-51: %d things of streams that ended are kept", n)
		}
		if heap > flat+2<<20 {
			t.Fatalf("RS-51: %d KB are in use after round %d, %d KB after the first", heap>>10, n+1, flat>>10)
		}
	}
	all := int64(soakStreams * (rounds + 1))
	if e, r, l, o := s.expired.Load(), s.revoked.Load(), s.left.Load(), s.open.Load(); e != all*2/5 || r != all*2/5 ||
		l != all/5 || o != 0 {
		t.Errorf("RS-98 RS-44: of %d streams %d ended with their token, %d by revocation, %d by the client, %d are open",
			all, e, r, l, o)
	}
}

// BenchmarkOpenStream measures the memory of one open stream including connection, client and
// server, with and without a guard.
func BenchmarkOpenStream(b *testing.B) {
	for name, guarded := range map[string]bool{"guarded": true, "bare": false} {
		b.Run(name, func(b *testing.B) {
			s := newSoak(b, guarded)
			var bytes, goroutines float64
			rounds := 0
			for b.Loop() {
				before, heap := s.settled(runtime.NumGoroutine())
				ctx, leave := context.WithCancel(context.Background())
				var opening, running sync.WaitGroup
				opening.Add(soakStreams)
				for i := range soakStreams {
					token := s.listed(fmt.Sprint(i), 64, "0")
					running.Go(func() { _ = s.stream(ctx, token, opening.Done) })
				}
				opening.Wait()
				during, more := s.settled(0x7fffffff)
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				bytes += float64(more-heap) / soakStreams
				goroutines += float64(during-before) / soakStreams
				rounds++
				leave()
				running.Wait()
			}
			b.ReportMetric(bytes/float64(rounds), "heap-B/stream")
			b.ReportMetric(goroutines/float64(rounds), "goroutines/stream")
		})
	}
}
