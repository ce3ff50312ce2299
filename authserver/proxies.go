package authserver

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// TrustedProxies lists the networks whose X-Forwarded-For is trusted.
type TrustedProxies []netip.Prefix

// ClientAddr returns the client's address of a request. It starts with the peer; while the address
// is a trusted proxy's, it takes the previous one in X-Forwarded-For, from right to left. Only
// trusted proxies can have written these entries.
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

// maxUndeclared limits how many addresses are logged during the life of a process, because anyone
// can send the headers of a proxy.
const maxUndeclared = 8

// undeclared detects proxies that the operator has not declared. All clients behind one count as
// one network, so a few wrong passwords slow all of them down.
type undeclared struct {
	trusted TrustedProxies

	mu   sync.Mutex // guards told
	told map[netip.Addr]bool
}

// found returns the peer of a request that came through a proxy which is not trusted, once per
// peer.
func (u *undeclared) found(r *http.Request) (netip.Addr, bool) {
	h := r.Header
	if h.Get("X-Forwarded-For") == "" && h.Get("Forwarded") == "" && h.Get("X-Real-Ip") == "" {
		return netip.Addr{}, false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	addr := peer.Addr().Unmap().WithZone("")
	if err != nil || u.trusted.contains(addr) {
		return netip.Addr{}, false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.told[addr] || len(u.told) >= maxUndeclared {
		return netip.Addr{}, false
	}
	u.told[addr] = true
	return addr, true
}
