package network

import (
	"net/netip"
	"slices"
	"testing"
)

func TestBlocks(t *testing.T) {
	for _, tt := range []struct {
		addr string
		want []string
	}{
		{"203.0.113.9", []string{"203.0.113.0/24"}},
		{"::ffff:203.0.113.9", []string{"203.0.113.0/24"}},
		{"2001:db8:1:2345:6::7", []string{"2001:db8:1:2345::/64", "2001:db8:1:2300::/56", "2001:db8:1::/48"}},
		{"fe80::1%eth0", []string{"fe80::/64", "fe80::/56", "fe80::/48"}},
		{"", []string{Unknown}},
	} {
		a, _ := netip.ParseAddr(tt.addr)
		if got := Blocks(a); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.addr, got, tt.want)
		}
	}
}

// TestCoarse checks that a sign-in is stored with a /24 or a /48.
func TestCoarse(t *testing.T) {
	for addr, want := range map[string]string{
		"203.0.113.9": "203.0.113.0/24", "2001:db8:1:2345:6::7": "2001:db8:1::/48", "": "",
	} {
		a, _ := netip.ParseAddr(addr)
		if got := Coarse(a); got != want {
			t.Errorf("%q: got %q, want %q", addr, got, want)
		}
	}
}

func TestHostname(t *testing.T) {
	for host, want := range map[string]string{
		"Auth.Example.com": "auth.example.com", "auth.example.com:8414": "auth.example.com",
		"127.0.0.1:8414": "127.0.0.1",
		"[::1]:80":       "::1", "[::1]": "::1", "127.0.0.1:8414.evil.example": "", "localhost:": "localhost",
		"a b":         "",
		"u@localhost": "", "localhost/x": "", "localhost?x": "", "localhost#x": "", "": "",
	} {
		if got := Hostname(host); got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
}
