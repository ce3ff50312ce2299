package authserver

import (
	"cmp"
	"container/heap"
	"container/list"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/network"
)

// timely limits the time for the body of a request to arrive, whatever the handler does: net/http
// waits for an unread body, even after its own 404 and 405. The deadline is removed at the end of
// the body, because net/http cancels requests whose connection is past a deadline, and a stream
// lasts longer. Requests without a body have no deadline; http.Server.ReadHeaderTimeout limits
// their header.
func timely(h http.Handler, d time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unsent := r.ContentLength != 0 && r.Body != nil
		arrived, end := underWay(r, unsent)
		defer end()
		if unsent {
			c := http.NewResponseController(w)
			_ = c.SetReadDeadline(time.Now().Add(d)) // net/http's writers support deadlines
			r.Body = &timelyBody{ReadCloser: r.Body, lift: func() {
				_ = c.SetReadDeadline(time.Time{})
				arrived()
			}}
		}
		h.ServeHTTP(w, r)
	})
}

// timelyBody removes the deadline when the body has arrived, and reports that to connections.
type timelyBody struct {
	io.ReadCloser
	lift func()
}

// Read implements io.Reader.
func (b *timelyBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.lift()
	}
	return n, err
}

// defaultConnections is the default of Site.MaxConnections. At about 20 KiB each, a small machine
// can hold this many.
const defaultConnections = 8192

// connections limits the connections of one listener. When it is full, it closes a connection that
// waits for its client: for a request, or for the body of one. It takes the network with most of
// these connections, so that an attacker who fills the listener makes room for others. Within it,
// it takes the connection that has waited longest, so that new ones have time to send a request. A
// connection with a served request whose body has arrived is never closed, because it may be a
// stream. If all connections are of this kind, the new one is refused.
type connections struct {
	limit   int
	proxies TrustedProxies

	mu       sync.Mutex // guards the following fields, also in places and crowds
	open     int
	waits    uint64 // number of waits so far, to order them
	at       map[net.Conn]*place
	networks map[string]*crowd
	crowds   crowds // the same, largest first
}

// place is the state of one connection.
type place struct {
	conn    net.Conn
	network string
	waiting *list.Element // in the crowd of its network; nil: must not be closed
	since   uint64
	gone    bool // closed by connections
	active  bool // has requests
	unsent  int  // requests whose body has not arrived; HTTP/2 allows several
	served  int  // requests whose body has arrived, or without a body
	left    bool // the handler left a body unread, and net/http waits for it
}

func newConnections(limit int, proxies TrustedProxies) *connections {
	return &connections{limit: limit, proxies: proxies, at: map[net.Conn]*place{}, networks: map[string]*crowd{}}
}

// changed is an http.Server.ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.at[conn]
	if state == http.StateNew {
		p = &place{conn: conn, network: c.peerNetwork(conn)}
		c.at[conn] = p
		if c.open++; c.open > c.limit {
			c.giveUp(p)
		}
	}
	if p == nil {
		return
	}
	c.leave(p) // any wait starts again
	p.active, p.left = state == http.StateActive, false
	if state == http.StateClosed || state == http.StateHijacked {
		c.open--
		p.gone = true
		delete(c.at, conn)
	}
	c.settle(p)
}

// giveUp closes an old connection, or the new one.
func (c *connections) giveUp(newcomer *place) {
	p := newcomer
	if len(c.crowds) > 0 {
		p = c.crowds[0].longest()
	}
	p.gone = true
	c.settle(p)
	conn := p.conn
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn() // without a TLS close_notify, which could block
	}
	_ = conn.Close()
}

// settle records whether a connection may be closed.
func (c *connections) settle(p *place) {
	switch {
	case p.gone, p.active && (p.served > 0 || p.unsent == 0 && !p.left):
		c.leave(p)
	case p.waiting == nil:
		g := c.networks[p.network]
		if g == nil {
			g = &crowd{}
			c.networks[p.network] = g
		}
		c.waits++
		p.since = c.waits
		p.waiting = g.PushBack(p)
		if g.Len() == 1 {
			heap.Push(&c.crowds, g)
		} else {
			heap.Fix(&c.crowds, g.index)
		}
	}
}

// leave marks a connection as not to be closed.
func (c *connections) leave(p *place) {
	if p.waiting == nil {
		return
	}
	g := c.networks[p.network]
	if g.Len() == 1 {
		heap.Remove(&c.crowds, g.index)
		delete(c.networks, p.network)
	} else {
		g.Remove(p.waiting)
		heap.Fix(&c.crowds, g.index)
	}
	p.waiting = nil
}

// placeKey is the context key of the placeOf of a request's connection.
type placeKey struct{}

type placeOf struct {
	c    *connections
	conn net.Conn
}

// known is an http.Server.ConnContext.
func (c *connections) known(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, placeKey{}, placeOf{c, conn})
}

// underWay counts a request for its connection. It returns functions to call when the body has
// arrived and when the handler has ended, in any order.
func underWay(r *http.Request, unsent bool) (arrived, end func()) {
	of, ok := r.Context().Value(placeKey{}).(placeOf)
	if !ok {
		return func() {}, func() {}
	}
	c, ended := of.c, false
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.at[of.conn]
	if p == nil { // closed in the meantime
		return func() {}, func() {}
	}
	count := func(unsent bool, n int) {
		if unsent {
			p.unsent += n
		} else {
			p.served += n
		}
	}
	count(unsent, 1)
	c.settle(p)
	arrived = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if unsent && !ended {
			count(true, -1)
			count(false, 1)
			c.settle(p)
		}
		unsent = false
	}
	end = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		count(unsent, -1)
		ended = true
		p.left = unsent && r.ProtoMajor < 2 // HTTP/2 and later do not wait
		c.settle(p)
	}
	return arrived, end
}

// peerNetwork returns the network that a connection is counted for: the largest network that one
// customer of a provider has. Connections of a declared proxy belong to different clients, so each
// counts alone.
func (c *connections) peerNetwork(conn net.Conn) string {
	a, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // other kinds of sockets have no address
	if c.proxies.contains(a.Addr()) {
		return a.String()
	}
	blocks := network.Blocks(a.Addr())
	return blocks[len(blocks)-1]
}

// crowd holds the connections of one network that may be closed, the longest waiting first.
type crowd struct {
	list.List
	index int // in crowds
}

func (g *crowd) longest() *place { return g.Front().Value.(*place) }

// crowds is a heap: finding the largest among thousands must not cost more than connecting.
type crowds []*crowd

func (h crowds) Len() int { return len(h) }

func (h crowds) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[j].List.Len(), h[i].List.Len()),
		cmp.Compare(h[i].longest().since, h[j].longest().since)) < 0
}

func (h crowds) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *crowds) Push(x any) {
	g := x.(*crowd)
	g.index = len(*h)
	*h = append(*h, g)
}

// Pop implements heap.Interface.
func (h *crowds) Pop() any {
	last := len(*h) - 1
	g := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return g
}
