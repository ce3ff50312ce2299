package authserver

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// TrustedProxies are the networks whose X-Forwarded-For is believed.
type TrustedProxies []netip.Prefix

// ClientAddr returns the address that a request comes from: the peer, or, while the
// address is a trusted proxy's, the one before it in X-Forwarded-For, read from the
// right, where only our own proxies can have written.
func (t TrustedProxies) ClientAddr(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !t.contains(addr) {
			break
		}
		before, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		addr = before.Unmap()
	}
	return addr
}

func (t TrustedProxies) contains(a netip.Addr) bool {
	return slices.ContainsFunc(t, func(p netip.Prefix) bool { return p.Contains(a) })
}
