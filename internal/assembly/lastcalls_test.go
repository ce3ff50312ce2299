package assembly

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// notes is a store that collects noted calls.
type notes struct {
	mu      sync.Mutex
	fail    error
	written []map[string]storage.ToolCall
}

func (n *notes) NoteCalls(_ context.Context, calls map[string]storage.ToolCall) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written = append(n.written, calls)
	return n.fail
}

func (n *notes) writes() []map[string]storage.ToolCall {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.written
}

const ourIssuer = "https://auth.example.com"

func taking(store storage.LastCalls) *lastCalls {
	return &lastCalls{
		issuer: ourIssuer, store: store, correct: func(t time.Time) time.Time { return t.Add(time.Hour) },
		log: slog.New(slog.DiscardHandler), calls: map[string]storage.ToolCall{},
	}
}

// called returns an answered call with one of our grants.
func called(grant, tool string, at time.Time) mcpresource.CallEvent {
	return mcpresource.CallEvent{
		Time: at, Method: "tools/call", Name: tool, Outcome: mcpresource.OutcomeOK,
		Principal: &mcpresource.Principal{Issuer: ourIssuer, Claims: json.RawMessage(`{"gid":"` + grant + `"}`)},
	}
}

// TestLastCalls checks which call counts as the last one of a grant, and which names are shown
// (PE-09).
func TestLastCalls(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const grant = "grt_1"
	ended := func(o mcpresource.Outcome) mcpresource.CallEvent {
		e := called(grant, "read", at)
		e.Outcome = o
		return e
	}
	by := func(p *mcpresource.Principal) mcpresource.CallEvent {
		e := called(grant, "read", at)
		e.Principal = p
		return e
	}
	listing := called(grant, "", at)
	listing.Method = "tools/list"
	foreigner := called(grant, "read", at).Principal
	foreigner.Issuer = "https://other.example"
	named := func(tool string) map[string]storage.ToolCall {
		return map[string]storage.ToolCall{grant: {Tool: tool, At: at.Add(time.Hour)}} // by the clock of the store
	}
	nothing := map[string]storage.ToolCall{}
	for name, c := range map[string]struct {
		event mcpresource.CallEvent
		want  map[string]storage.ToolCall
	}{
		"a call":                     {called(grant, "read", at), named("read")},
		"that failed":                {ended(mcpresource.OutcomeError), named("read")},
		"that was cut short":         {ended(mcpresource.OutcomeEnded), named("read")},
		"that the guard refused":     {ended(mcpresource.OutcomeInsufficientScope), nothing},
		"that was one too many":      {ended(mcpresource.OutcomeLimited), nothing},
		"another method":             {listing, nothing},
		"without a token":            {by(nil), nothing},
		"of a client for itself":     {by(&mcpresource.Principal{Issuer: ourIssuer}), nothing},
		"of another issuer":          {by(foreigner), nothing},
		"every character of a name":  {called(grant, "Notes.search_all-2", at), named("Notes.search_all-2")},
		"the longest name":           {called(grant, strings.Repeat("x", 64), at), named(strings.Repeat("x", 64))},
		"a name that is too long":    {called(grant, strings.Repeat("x", 65), at), named("")},
		"a sentence for the person":  {called(grant, "Your account is closed. Call 555-0100", at), named("")},
		"a name with a line":         {called(grant, "read\n", at), named("")},
		"another direction of text":  {called(grant, "read\u202ednes", at), named("")},
		"a name that is no name":     {called(grant, "", at), named("")},
		"a name that looks like one": {called(grant, "rеad", at), named("")}, // a Cyrillic letter
	} {
		t.Run(name, func(t *testing.T) {
			l := taking(&notes{})
			l.take(t.Context(), c.event)
			if fmt.Sprint(l.calls) != fmt.Sprint(c.want) {
				t.Errorf("got %v, want %v", l.calls, c.want)
			}
		})
	}
	t.Run("the later one counts, in whichever order they end", func(t *testing.T) {
		l := taking(&notes{})
		for _, e := range []mcpresource.CallEvent{
			called(grant, "first", at), called(grant, "last", at.Add(2*time.Second)),
			called(grant, "slow", at.Add(time.Second)),
		} {
			l.take(t.Context(), e)
		}
		if got := l.calls[grant].Tool; got != "last" {
			t.Errorf("got %q, want last", got)
		}
	})
	t.Run("no more grants wait than there is room for", func(t *testing.T) {
		l := taking(&notes{})
		for i := range maxUnnoted + 5 {
			l.take(t.Context(), called(fmt.Sprint("grt_", i), "read", at))
		}
		l.take(t.Context(), called("grt_0", "later", at.Add(time.Second)))
		if len(l.calls) != maxUnnoted || l.calls["grt_0"].Tool != "later" {
			t.Errorf("got %d grants, want %d; the waiting grant has called %q", len(l.calls), maxUnnoted,
				l.calls["grt_0"].Tool)
		}
	})
}

// TestCallsAreNotedOnceAMinute checks that a process writes once a minute for any number of calls,
// and writes the rest at its end (PE-09).
func TestCallsAreNotedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &notes{}
		l := taking(store)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { l.run(ctx); close(done) }()
		for range 1000 {
			l.take(ctx, called("grt_1", "read", time.Now()))
			l.take(ctx, called("grt_2", "write", time.Now()))
			wait.Advance(50 * time.Millisecond)
		}
		if got := len(store.writes()); got != 0 {
			t.Errorf("after 50 seconds: got %d writes, want none", got)
		}
		wait.Advance(15 * time.Second)
		if got := store.writes(); len(got) != 1 || len(got[0]) != 2 {
			t.Errorf("after a minute: got %v, want one write of two grants", got)
		}
		wait.Advance(3 * time.Minute)
		if got := len(store.writes()); got != 1 {
			t.Errorf("without a call: got %d writes, want the earlier one", got)
		}
		l.take(ctx, called("grt_3", "read", time.Now()))
		stop()
		<-done
		if got := store.writes(); len(got) != 2 || got[1]["grt_3"].Tool != "read" {
			t.Errorf("at the end: got %v, want the rest", got)
		}
	})
}

// TestCallsOfTheDrainAreNoted checks that calls that finish while the server drains are written
// afterwards (PE-09).
func TestCallsOfTheDrainAreNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &notes{}
		s := &Server{sites: new(gateway.Sites), stored: new(storedSites), calls: taking(store)}
		ctx, stop := context.WithCancel(t.Context())
		settle := s.runSites(ctx)
		stop()
		synctest.Wait()
		s.calls.take(ctx, called("grt_1", "read", time.Now()))
		settle()
		if got := store.writes(); len(got) != 1 || got[0]["grt_1"].Tool != "read" {
			t.Errorf("got %v, want the call that ended in the drain", got)
		}
	})
}

// TestCallsGoOnWithoutTheirNotes checks that a failing or hanging database delays no call (PE-09).
func TestCallsGoOnWithoutTheirNotes(t *testing.T) {
	t.Run("it fails", func(t *testing.T) {
		var log bytes.Buffer
		store := &notes{fail: storagetest.ErrInjected}
		l := taking(store)
		l.log = slog.New(slog.NewTextHandler(&log, nil))
		for range 100 {
			l.take(t.Context(), called("grt_1", "read", time.Now()))
		}
		l.write(t.Context())
		l.take(t.Context(), called("grt_2", "read", time.Now()))
		store.fail = nil
		l.write(t.Context())
		if got := store.writes(); len(got) != 2 || len(got[1]) != 1 {
			t.Errorf("got %v, want two writes, the second without the lost calls of the first", got)
		}
		said := log.String()
		if n := strings.Count(said, "level=WARN"); n != 1 || !strings.Contains(said, "injected failure") {
			t.Errorf("got %d lines, want one that names the cause: %s", n, said)
		}
	})
	t.Run("it hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := taking(hanging{})
			l.take(t.Context(), called("grt_1", "read", time.Now()))
			go l.write(t.Context())
			synctest.Wait()
			begun := time.Now()
			l.take(t.Context(), called("grt_2", "read", begun))
			if waited := time.Since(begun); waited != 0 || l.calls["grt_2"].Tool != "read" {
				t.Errorf("a call waited %v", waited)
			}
			wait.Advance(noteTimeout + time.Second) // hanging calls are canceled after that
		})
	})
}

// hanging is a database that does not respond.
type hanging struct{}

func (hanging) NoteCalls(ctx context.Context, _ map[string]storage.ToolCall) error {
	<-ctx.Done()
	return ctx.Err()
}

// BenchmarkLastCalls measures the cost of noting a call.
func BenchmarkLastCalls(b *testing.B) {
	l, e := taking(&notes{}), called("grt_1", "read", time.Now())
	var err error
	e.Principal, err = mcpresource.Local(active{}).Validate(b.Context(), mcpresource.Credential{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		l.take(b.Context(), e)
	}
}

// active is an authorization server that accepts every token.
type active struct{}

func (active) Introspect(context.Context, string) (oauth.Introspection, error) {
	return oauth.Introspection{Active: true, Issuer: ourIssuer, GrantID: "grt_1"}, nil
}
