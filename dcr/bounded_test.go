package dcr

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// TestBounded: a full map makes room, and keeps three quarters of what it has.
func TestBounded(t *testing.T) {
	b := newBounded[int](100)
	for i := range 100 {
		b.put(fmt.Sprint(i), i)
	}
	if b.put("7", 8); len(b.entries) != 100 {
		t.Errorf("a new value for an old key leaves %d entries, want 100", len(b.entries))
	}
	if b.put("new", 1); len(b.entries) != 76 {
		t.Errorf("one more leaves %d entries, want 76", len(b.entries))
	}
	if v, ok := b.get("new"); v != 1 || !ok {
		t.Errorf("the newest is %d, %v", v, ok)
	}
}

// TestLimiterIsBounded: AS-144. The memory of the limit is bounded; networks whose allowance
// is whole again are forgotten first, and those of a flood not all at once: else ten thousand
// networks would give every other one its allowance back.
func TestLimiterIsBounded(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	l := newLimiter(Limits{PerMinute: 60, Burst: 2}, func() time.Time { return now })
	take := func(from, to int) {
		t.Helper()
		for i := range to - from {
			if err := l.take(origin{networks: []string{fmt.Sprint(from + i)}}, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	take(0, maxNetworks)
	if take(maxNetworks, maxNetworks+1); len(l.buckets) != maxNetworks*3/4+1 {
		t.Errorf("one network more leaves %d, want %d", len(l.buckets), maxNetworks*3/4+1)
	}
	clear(l.buckets)
	take(0, maxNetworks-100)
	now = now.Add(time.Minute)
	take(maxNetworks-100, maxNetworks)
	take(maxNetworks, maxNetworks+1)
	for i := range maxNetworks + 1 {
		if _, ok := l.buckets[fmt.Sprint(i)]; ok != (i >= maxNetworks-100) {
			t.Fatalf("network %d: counted %v", i, ok)
		}
	}
}

// TestNewRefusesPolicies: AS-166. A policy that cannot be meant stops the start.
func TestNewRefusesPolicies(t *testing.T) {
	for _, tt := range []struct {
		trust TrustPolicy
		want  string
	}{
		{TrustPolicy{Others: "perhaps"}, `"perhaps" is not one of`},
		{TrustPolicy{Deny: []string{"*"}}, `dcr: Config.Documents.Trust: `},
	} {
		if err := (Documents{Trust: tt.trust}).check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.trust, err, tt.want)
		}
	}
}

// TestKeptCounts: AS-145. What is too large for a row counts as nothing, and the rest by its size.
func TestKeptCounts(t *testing.T) {
	for size, want := range map[int]int{1: 1, storedUnit - 1: 1, storedUnit: 2, maxStored: 5} {
		if units, err := kept(storage.Client{Name: strings.Repeat("x", size)}); units != want || err != nil {
			t.Errorf("%d bytes: got %d, %v, want %d", size, units, err, want)
		}
	}
	units, err := kept(storage.Client{Name: strings.Repeat("x", maxStored+1)})
	if units != 0 || err == nil || !strings.Contains(err.Error(), "more than 8192 bytes") {
		t.Errorf("too large: got %d, %v", units, err)
	}
}
