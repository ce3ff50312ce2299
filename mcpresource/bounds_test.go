package mcpresource

import (
	"errors"
	"strings"
	"testing"
)

// TestCallersAreNoStrangers: RS-196. Only requests without a valid token count as strangers. A
// caller who is refused an operation keeps getting that answer.
func TestCallersAreNoStrangers(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Limits.Strangers, c.Limits.Calls.PerSecond = Rate{PerSecond: 1, Burst: 3}, -1 })
	for i := range 10 {
		if w := r.call("alice", tool("write_file")); w.Code != 403 {
			t.Fatalf("refusal %d: got %d %s, want 403", i, w.Code, w.Body)
		}
		if w := r.call("alice", `nonsense`); w.Code != 400 {
			t.Fatalf("refusal %d: got %d %s, want 400", i, w.Code, w.Body)
		}
	}
	for i, want := range []int{401, 401, 401, 429} {
		if w := r.call("junk", tool("read")); w.Code != want {
			t.Errorf("stranger %d: got %d, want %d", i, w.Code, want)
		}
	}
	r = newRig(t, func(c *Config) { c.Limits.Strangers.PerSecond = -1 })
	for i := range 2000 {
		if w := r.call("junk", tool("read")); w.Code != 401 {
			t.Fatalf("without a limit, stranger %d: got %d", i, w.Code)
		}
	}
}

// TestBatchBound: RS-103. A batch of a hundred messages passes. A larger one is refused before any
// message is checked.
func TestBatchBound(t *testing.T) {
	r := newRig(t, nil)
	batch := func(n int) string { return `[` + strings.Repeat(tool("read")+",", n-1) + tool("read") + `]` }
	if w := r.call("alice", batch(100)); w.Code != 200 || len(r.seen) != 1 {
		t.Errorf("a hundred: got %d %s", w.Code, w.Body)
	}
	if w := r.call("alice", batch(101)); w.Code != 400 || len(r.seen) != 1 {
		t.Errorf("one more: got %d %s", w.Code, w.Body)
	}
	if err := r.events[len(r.events)-1].Err; !errors.Is(err, ErrAmbiguousBody) ||
		!strings.Contains(err.Error(), "at most 100 messages") {
		t.Errorf("one more: got %v", err)
	}
}
