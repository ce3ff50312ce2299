package authserver

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
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

// maxUndeclared bounds how many addresses an operator is told of in the life of a process:
// also a stranger can send what only proxies should.
const maxUndeclared = 8

// undeclared finds proxies that the operator has not declared. All clients behind one count as one
// network, so that a few wrong passwords slow all of them down.
type undeclared struct {
	trusted TrustedProxies

	mu   sync.Mutex // guards told
	told map[netip.Addr]bool
}

// found returns the peer of a request that came through a proxy which is not trusted, once
// for each peer.
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
