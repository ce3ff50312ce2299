package authserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// readOnly is a store on a full disk: reads work.
type readOnly struct {
	Store
	full   atomic.Bool
	writes atomic.Int64
}

func (s *readOnly) Writable(ctx context.Context) error {
	s.writes.Add(1)
	if s.full.Load() {
		return errors.New("database or disk is full (13)")
	}
	return s.Store.Writable(ctx)
}

// TestReadyMeansWritable checks that a store that cannot be written is not ready, and that checks
// cost at most one write a second (issue 11, 4.3).
func TestReadyMeansWritable(t *testing.T) {
	var store *readOnly
	r := newRig(t, func(c *Config) { store = &readOnly{Store: c.Store}; c.Store = store })
	r.probe.now = r.now
	ask := func() int { return r.person().get("/readyz").status }
	ready := func() { // the store may need longer than the probe waits; asks until it answers
		t.Helper()
		wait.Success(t, "the server is ready", func() error {
			if got := ask(); got != http.StatusOK {
				return fmt.Errorf("got %d:\n%s", got, r.log.String())
			}
			return nil
		})
	}
	before := store.writes.Load()
	for range 20 {
		ask()
	}
	ready()
	if got := store.writes.Load() - before; got != 1 {
		t.Errorf("more than 20 questions in one moment were %d writes", got)
	}
	store.full.Store(true)
	if got := ask(); got != http.StatusOK {
		t.Errorf("within the second: got %d", got)
	}
	r.advance(probeEvery)
	if got := ask(); got != http.StatusServiceUnavailable {
		t.Errorf("on a full disk: got %d", got)
	}
	if !strings.Contains(r.log.String(), "the store cannot be written: database or disk is full") {
		t.Errorf("the log does not say why:\n%s", r.log.String())
	}
	store.full.Store(false)
	r.advance(probeEvery)
	ready()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r.advance(time.Minute)
	if err := r.probe.ask(gone); err != nil {
		t.Errorf("a caller that leaves decides for others: %v", err)
	}
}

// stuck is a store that hangs until it is released, whatever happens to its caller.
type stuck struct {
	Store
	hangs    atomic.Bool
	asked    atomic.Int64
	released chan struct{}
}

func (s *stuck) Ready(ctx context.Context) error {
	s.asked.Add(1)
	if s.hangs.Load() {
		<-s.released
	}
	return s.Store.Ready(ctx)
}

// TestReadinessOfAStoreThatHangs checks that a hanging store is reported, with one check for any
// number of requests (operations L).
func TestReadinessOfAStoreThatHangs(t *testing.T) {
	store := &stuck{released: make(chan struct{})}
	r := newRig(t, func(c *Config) { store.Store = c.Store; c.Store = store })
	store.hangs.Store(true)
	before := store.asked.Load()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got := r.person().get("/readyz").status; got != http.StatusServiceUnavailable {
				t.Errorf("got %d", got)
			}
		})
	}
	wg.Wait()
	if got := store.asked.Load() - before; got != 1 {
		t.Errorf("%d questions were put to the store, want 1", got)
	}
	if !strings.Contains(r.log.String(), errNoAnswer.Error()) {
		t.Errorf("the log does not say why:\n%s", r.log.String())
	}
	store.hangs.Store(false)
	close(store.released)
	wait.Until(t, "the server is ready again", func() bool { return r.person().get("/readyz").status == http.StatusOK })
}

// Operations L: each caller gets the error about a hanging store after one second.
func TestReadinessIsToldWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		p := &probe{ready: hangs, now: time.Now}
		for late := range 4 { // the check continues, and each of these comes a moment later
			wait.Advance(time.Duration(late) * 100 * time.Millisecond)
			began := time.Now()
			if err := p.ask(t.Context()); !errors.Is(err, errNoAnswer) {
				t.Errorf("got %v, want %v", err, errNoAnswer)
			}
			if took := time.Since(began); took != time.Second {
				t.Errorf("it took %s, want a second", took)
			}
		}
		wait.Advance(probeTimeout) // so that the query ends
	})
}

// TestIssuerChanged checks that a changed issuer is logged once.
func TestIssuerChanged(t *testing.T) {
	r := newRig(t)
	const warning = "the issuer has changed"
	if strings.Contains(r.log.String(), warning) {
		t.Error("warned at the first start")
	}
	again := r.cfg.Config
	again.Issuer = "https://new.example"
	for range 2 {
		if _, err := Assemble(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(r.log.String(), warning); got != 1 ||
		!strings.Contains(r.log.String(), `"issuer":"https://new.example","before":"`+r.http.URL) {
		t.Errorf("warned %d times:\n%s", got, r.log.String())
	}
}

var _ storage.Housekeeping = (*readOnly)(nil)
