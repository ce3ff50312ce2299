package dcr

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestLimiterIsBounded: AS-144. The memory of the limiter is bounded, and a flood of networks does
// not reset the allowance of a network that has used it up.
func TestLimiterIsBounded(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	l := newLimiter(Limits{PerMinute: 60, Burst: 2}, allowance.New(nil, func() time.Time { return now }, nil))
	take := func(name string) error { return l.take(t.Context(), origin{networks: []string{name}}, 0) }
	for range 2 {
		if err := take("used up"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 * maxNetworks {
		if err := take(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	var slow *oauth.Error
	if err := take("used up"); !errors.As(err, &slow) || slow.Code != oauth.SlowDown || slow.RetryAfter != time.Second {
		t.Errorf("got %v, want slow_down", err)
	}
	if n := l.buckets.Len(); n > maxNetworks {
		t.Errorf("%d networks are counted, want %d at most", n, maxNetworks)
	}
}

// TestNewRefusesPolicies: AS-166. An invalid trust policy is refused at the start.
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

// TestKeptCounts: AS-145. A client that is too large for a row is refused; others count by size.
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
