package authserver

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestDeparturesAreBounded(t *testing.T) {
	r, f := delegated(t, func(c *Config) { c.TrustedProxies = TrustedProxies{netip.MustParsePrefix("127.0.0.0/8")} })
	const company, elsewhere = "198.51.100.7", "203.0.113.9"
	p := r.person()
	step := consentStep(t, p.get("/authorize?"+authorizeQuery("provider", "google").Encode()))
	leave := func(from string) page {
		return p.post("/consent", url.Values{"step": {step}, "decision": {"approve"}}, "X-Forwarded-For", from)
	}
	const atOnce = departuresOfNetwork * departuresBurst
	var last page
	for range atOnce + 1 {
		last = leave(company)
	}
	t.Run("AS-220 AS-145 who goes on leaving is asked to wait, and nothing is stored", func(t *testing.T) {
		if last.status != 429 || last.header.Get("Retry-After") != "1" || len(tripCookies(last)) != 0 || last.header.Get("Location") != "" || len(f.departed) != atOnce {
			t.Errorf("got %d %v after %d", last.status, last.header, len(f.departed))
		}
		if !strings.Contains(last.body, "try again in a moment") {
			t.Errorf("got %s", last.body)
		}
	})
	t.Run("AS-220 other networks go on", func(t *testing.T) {
		if pg := leave(elsewhere); pg.status != 303 {
			t.Errorf("got %d", pg.status)
		}
	})
	t.Run("AS-220 the form stays good, and the wait is short", func(t *testing.T) {
		r.advance(time.Second)
		if pg := leave(company); pg.status != 303 {
			t.Errorf("got %d", pg.status)
		}
	})
}

func TestDepartureLimiter(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	l := newDepartureLimiter(func() time.Time { return now })
	t.Run("AS-220 a company behind one address comes to work", func(t *testing.T) {
		for second := range 600 { // 5 people a second, and 200 at the stroke of the hour
			people := departuresOfNetwork
			if second == 0 {
				people = 200
			}
			for range people {
				if err := l.take([]string{"198.51.100.0/24"}, false); err != nil {
					t.Fatalf("second %d: %v", second, err)
				}
			}
			now = now.Add(time.Second)
		}
	})
	t.Run("AS-220 AS-145 many networks share a total, whoever is signed in does not", func(t *testing.T) {
		allowed := 0
		for i := range 2 * departuresInTotal * departuresBurst {
			if l.take([]string{fmt.Sprint("network ", i)}, false) == nil {
				allowed++
			}
		}
		if allowed != departuresInTotal*departuresBurst {
			t.Errorf("got %d", allowed)
		}
		if err := l.take([]string{"network 1"}, false); oauth.AsError(err).Code != oauth.SlowDown {
			t.Errorf("got %v", err)
		}
		if err := l.take([]string{"network 1"}, true); err != nil {
			t.Errorf("got %v", err)
		}
	})
	t.Run("AS-145 AS-220 the networks of one /48 have four times the allowance of one, whatever their number", func(t *testing.T) {
		now = now.Add(time.Hour)
		allowed := 0
		for i := range 10 * departuresOfNetwork * departuresBurst {
			addr := netip.MustParseAddr(fmt.Sprintf("2001:db8:1:%x::1", i))
			if l.take(network.Blocks(addr), false) == nil {
				allowed++
			}
		}
		if want := 4 * departuresOfNetwork * departuresBurst; allowed != want {
			t.Errorf("got %d departures, want %d", allowed, want)
		}
	})
	t.Run("AS-145 what is remembered is bounded", func(t *testing.T) {
		for i := range 2 * departureNetworks {
			_ = l.take([]string{fmt.Sprint("another ", i)}, true)
		}
		if len(l.networks) > departureNetworks {
			t.Errorf("got %d", len(l.networks))
		}
	})
}
