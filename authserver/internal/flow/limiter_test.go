package flow

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestSignInLimiter(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	l := newSignInLimiter(allowance.New(nil, func() time.Time { return now }, nil))
	t.Run("AS-220 a company behind one address comes to work", func(t *testing.T) {
		for second := range 600 { // 5 people a second, and 200 at the stroke of the hour
			people := signInsOfNetwork
			if second == 0 {
				people = 200
			}
			for range people {
				if err := l.take(t.Context(), []string{"198.51.100.0/24"}, false); err != nil {
					t.Fatalf("second %d: %v", second, err)
				}
			}
			now = now.Add(time.Second)
		}
	})
	t.Run("AS-220 AS-145 many networks share a total, people who are signed in do not", func(t *testing.T) {
		allowed := 0
		for i := range 2 * signInsInTotal * signInBurst {
			if l.take(t.Context(), []string{fmt.Sprint("network ", i)}, false) == nil {
				allowed++
			}
		}
		if allowed != signInsInTotal*signInBurst {
			t.Errorf("got %d", allowed)
		}
		if err := l.take(t.Context(), []string{"network 1"}, false); oauth.AsError(err).Code != oauth.SlowDown {
			t.Errorf("got %v", err)
		}
		if err := l.take(t.Context(), []string{"network 1"}, true); err != nil {
			t.Errorf("got %v", err)
		}
	})
	t.Run("AS-145 AS-220 the networks of one /48 have four times the allowance of one, whatever their number",
		func(t *testing.T) {
			now = now.Add(time.Hour)
			allowed := 0
			for i := range 10 * signInsOfNetwork * signInBurst {
				addr := netip.MustParseAddr(fmt.Sprintf("2001:db8:1:%x::1", i))
				if l.take(t.Context(), network.Blocks(addr), false) == nil {
					allowed++
				}
			}
			if want := 4 * signInsOfNetwork * signInBurst; allowed != want {
				t.Errorf("got %d sign-ins, want %d", allowed, want)
			}
		})
	t.Run("AS-145 what is remembered is bounded", func(t *testing.T) {
		for i := range 2 * signInNetworks {
			_ = l.take(t.Context(), []string{fmt.Sprint("another ", i)}, true)
		}
		if l.buckets.Len() > signInNetworks {
			t.Errorf("got %d", l.buckets.Len())
		}
	})
}
