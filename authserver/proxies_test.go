package authserver

import (
	"net/http/httptest"
	"net/netip"
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
		{"SP-30 what the client wrote stands further left", "10.0.0.1:1", []string{"1.2.3.4, 203.0.113.7"}, "203.0.113.7"},
		{"SP-30 two trusted hops in two headers", "10.0.0.1:1", []string{"1.2.3.4, 203.0.113.7", "10.9.9.9"}, "203.0.113.7"},
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
