package mcpresource

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestCallersAreNoStrangers: RS-196. Only requests without a good token count as those of
// strangers: a caller who is refused an operation is told so, however often.
func TestCallersAreNoStrangers(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Limits.Strangers, c.Limits.Calls.PerSecond = Rate{1, 3}, -1 })
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

// TestBatchBound: RS-103. A batch of a hundred messages passes, and one of more is refused
// before any of them is judged.
func TestBatchBound(t *testing.T) {
	r := newRig(t, nil)
	batch := func(n int) string { return `[` + strings.Repeat(tool("read")+",", n-1) + tool("read") + `]` }
	if w := r.call("alice", batch(100)); w.Code != 200 || len(r.seen) != 1 {
		t.Errorf("a hundred: got %d %s", w.Code, w.Body)
	}
	if _, err := parseBatch([]byte(batch(101))); err == nil || !strings.Contains(err.Error(), "up to 100 messages") {
		t.Errorf("one more: got %v", err)
	}
	if w := r.call("alice", batch(101)); w.Code != 400 || len(r.seen) != 1 {
		t.Errorf("one more: got %d %s", w.Code, w.Body)
	}
}

// TestNeedlessEscapes: RS-194, RFC 3986 §2.3. A character that needs no escape has none: a
// table would take "%61dmin" for another resource than "admin". Rules match "~" in both spellings.
func TestNeedlessEscapes(t *testing.T) {
	for c := byte(1); c < 0x80; c++ {
		needless := '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '.' || c == '_'
		for _, format := range []string{"x://h/a%%%02x", "x://h/a%%%02Xb", "x://h/%%20%%%02x"} {
			uri := fmt.Sprintf(format, c)
			if err := checkURI(uri); errors.Is(err, ErrResourceURI) != needless {
				t.Errorf("%s: got %v, want it refused: %v", uri, err, needless)
			}
		}
	}
}
