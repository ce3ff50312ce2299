package authserver

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestDeparturesAreBounded(t *testing.T) {
	r, f := delegated(t, func(c *Config) { c.TrustedProxies = TrustedProxies{netip.MustParsePrefix("127.0.0.0/8")} })
	const company, elsewhere = "198.51.100.7", "203.0.113.9"
	p := r.person()
	step := consentStep(t, p.get("/authorize?"+authorizeQuery("provider", "google").Encode()))
	leave := func(from string) page {
		return p.post("/consent", url.Values{"step": {step}, "decision": {"approve"}}, "X-Forwarded-For", from)
	}
	const atOnce = 300 // from one network
	var last page
	for range atOnce + 1 {
		last = leave(company)
	}
	t.Run("AS-220 AS-145 who goes on leaving is asked to wait, and nothing is stored", func(t *testing.T) {
		if last.status != 429 || last.header.Get("Retry-After") != "1" || len(tripCookies(last)) != 0 ||
			last.header.Get("Location") != "" || len(f.departed) != atOnce {
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
