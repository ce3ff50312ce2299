package secrets

import (
	"strings"
	"testing"
	"time"
)

// TestIDsSortByTheirTime checks that row keys grow with time (operations.md M4): byte order is time
// order for any random part. An ID must never start like a command-line flag.
func TestIDsSortByTheirTime(t *testing.T) {
	start := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	last := ""
	for _, step := range []time.Duration{
		0, time.Millisecond, 63 * time.Millisecond, 64 * time.Millisecond, time.Second, time.Hour, 24 * time.Hour,
		365 * 24 * time.Hour, 100 * 365 * 24 * time.Hour,
	} {
		for range 50 {
			got := id(start.Add(step))
			if len(got) != 22 || strings.HasPrefix(got, "-") {
				t.Fatalf("got %q, want 22 characters, the first no hyphen", got)
			}
			if got[:8] < last {
				t.Fatalf("after %v: got %q, which sorts before %q", step, got, last)
			}
			last = got[:8]
			if at, ok := TimeOf("grt_" + got); !ok || !at.Equal(start.Add(step)) {
				t.Fatalf("after %v: TimeOf got %v, %v", step, at, ok)
			}
		}
	}
}

// TestTokens checks that each of the 43 characters of a token is random, for 256 bits in total
// (AS-04, OAuth 2.1 7.7).
func TestTokens(t *testing.T) {
	var seen [TokenSize]map[byte]bool
	for range 200 {
		random, ok := strings.CutPrefix(Token("x_"), "x_")
		if !ok || len(random) != TokenSize {
			t.Fatalf("got %q", random)
		}
		for i := range random {
			if seen[i] == nil {
				seen[i] = map[byte]bool{}
			}
			seen[i][random[i]] = true
		}
	}
	for i, s := range seen {
		if want := 32; i < TokenSize-1 && len(s) < want { // the last has only 4 bits
			t.Errorf("character %d had %d values in 200 tokens, want %d and more", i, len(s), want)
		}
	}
}

func TestIDsOfOneMomentDiffer(t *testing.T) {
	now, seen := time.Now(), make(map[string]bool)
	for range 10_000 {
		seen[id(now)] = true
	}
	if len(seen) != 10_000 {
		t.Errorf("got %d ids, want 10000", len(seen))
	}
}
