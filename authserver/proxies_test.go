package authserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestClientAddr(t *testing.T) {
	trusted := TrustedProxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, tt := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"SP-30 no proxy", "203.0.113.7:1", nil, "203.0.113.7"},
		{"SP-30 a stranger's header is not believed", "203.0.113.7:1", []string{"1.2.3.4"}, "203.0.113.7"},
		{"SP-30 one trusted hop", "10.0.0.1:1", []string{"203.0.113.7"}, "203.0.113.7"},
		{"SP-30 what the client wrote stands further left", "10.0.0.1:1", []string{"1.2.3.4, 203.0.113.7"},
			"203.0.113.7"},
		{"SP-30 two trusted hops in two headers", "10.0.0.1:1", []string{"1.2.3.4, 203.0.113.7", "10.9.9.9"},
			"203.0.113.7"},
		{"SP-30 garbage ends the walk", "10.0.0.1:1", []string{"203.0.113.7, x"}, "10.0.0.1"},
		{"SP-30 IPv6", "[fd00::1]:1", []string{"2001:db8::1"}, "2001:db8::1"},
		{"SP-30 IPv4 in IPv6", "[::ffff:10.0.0.1]:1", []string{"203.0.113.7"}, "203.0.113.7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = tt.peer
			for _, f := range tt.forwarded {
				r.Header.Add("X-Forwarded-For", f)
			}
			if got := trusted.ClientAddr(r).String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Usability 4.5: with an undeclared proxy, all users count as one network. The log names the
// setting once, and the page names the network as the reason. Users with a known browser and the
// right password get in.
func TestForgottenProxy(t *testing.T) {
	r := newRig(t)
	const forwarded = "X-Forwarded-For"
	known := r.person()
	known.login(authorizeQuery())
	stranger := r.person()
	step := stranger.get("/authorize?" + authorizeQuery().Encode()).step(t)
	guess := func(i int) page {
		name := fmt.Sprint("nobody", i)
		return stranger.post("/login", url.Values{"step": {step}, "username": {name}, "password": {"wrong"}},
			forwarded, fmt.Sprint("198.51.100.", i%250))
	}
	var wg sync.WaitGroup
	var shut atomic.Value
	for i := range 140 {
		wg.Go(func() {
			if pg := guess(i); pg.status == http.StatusTooManyRequests {
				shut.Store(pg.body)
			}
		})
		if i < 100 {
			wg.Wait()
		}
	}
	wg.Wait()
	if body, _ := shut.Load().(string); !strings.Contains(body, "Too many attempts from your network") {
		t.Errorf("the page does not name the network: %.600s", body)
	}
	step = known.get("/authorize?" + authorizeQuery("prompt", "login").Encode()).step(t)
	pg := known.post("/login",
		url.Values{"step": {step}, "username": {"alice"}, "password": {"correct horse battery"}}, forwarded,
		"198.51.100.7")
	if pg.status != http.StatusSeeOther {
		t.Errorf("the known browser: got %d", pg.status)
	}
	if n := strings.Count(r.log.String(), forgottenProxy); n != 1 {
		t.Errorf("the operator got %d warnings, want 1", n)
	}
	trusting := newRig(t, func(c *Config) { c.TrustedProxies = TrustedProxies{netip.MustParsePrefix("127.0.0.0/8")} })
	trusting.person().get("/", forwarded, "198.51.100.7")
	if strings.Contains(trusting.log.String(), forgottenProxy) {
		t.Error("a trusted proxy is complained about")
	}
}

func TestUndeclaredIsBounded(t *testing.T) {
	u, told := &undeclared{told: map[netip.Addr]bool{}}, 0
	for i := range 100 {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = fmt.Sprintf("203.0.113.%d:1", i)
		r.Header.Set("Forwarded", "for=192.0.2.1")
		if _, ok := u.found(r); ok {
			told++
		}
	}
	if told != maxUndeclared {
		t.Errorf("told %d times, want %d", told, maxUndeclared)
	}
}
