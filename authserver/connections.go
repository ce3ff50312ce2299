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

// timely bounds the time in which the body of a request arrives, whichever handler answers it
// and however: net/http waits for what a handler leaves unread, also behind its own 404 and
// 405. The deadline is lifted with the end of the body, because net/http cancels a request
// whose connection is past one, and a stream lasts longer. Requests without a body have none:
// for their head there is http.Server.ReadHeaderTimeout.
func timely(h http.Handler, d time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unsent := r.ContentLength != 0 && r.Body != nil
		arrived, end := underWay(r, unsent)
		defer end()
		if unsent {
			c := http.NewResponseController(w)
			_ = c.SetReadDeadline(time.Now().Add(d)) // net/http's writers have deadlines
			r.Body = &timelyBody{ReadCloser: r.Body, lift: func() {
				_ = c.SetReadDeadline(time.Time{})
				arrived()
			}}
		}
		h.ServeHTTP(w, r)
	})
}

// timelyBody lifts the deadline of a body that has arrived, and tells connections.
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

// defaultConnections is the default of Site.MaxConnections: at some 20 KiB each, what a
// small machine can hold.
const defaultConnections = 8192

// connections bounds the connections of one listener. A full one gives up a connection that
// waits for its client: for a request, or for the body of one. Of these it takes one of the
// network that has most of them, so that who fills the listener makes room for the others,
// and there the one that has waited longest, so that a newcomer has time to ask. A connection
// on which a request is served whose body has arrived is never given up, as it may be a
// stream: with one on each, the newcomer is refused.
type connections struct {
	limit   int
	proxies TrustedProxies

	mu       sync.Mutex // guards what follows, also in places and crowds
	open     int
	waits    uint64 // how many there have been, to order them
	at       map[net.Conn]*place
	networks map[string]*crowd
	crowds   crowds // the same ones, the largest first
}

// place is that of one connection.
type place struct {
	conn    net.Conn
	network string
	waiting *list.Element // in the crowd of its network; nil when it cannot be given up
	since   uint64
	gone    bool // given up
	active  bool // has requests
	unsent  int  // requests whose body has not arrived: with HTTP/2 there can be several
	served  int  // requests whose body has arrived, or that have none
	left    bool // the handler has ended and left a body unread, for which net/http waits
}

func newConnections(limit int, proxies TrustedProxies) *connections {
	return &connections{limit: limit, proxies: proxies, at: map[net.Conn]*place{}, networks: map[string]*crowd{}}
}

// changed is a http.Server.ConnState.
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
	c.leave(p) // what it waits for now, it has not waited for before
	p.active, p.left = state == http.StateActive, false
	if state == http.StateClosed || state == http.StateHijacked {
		c.open--
		p.gone = true
		delete(c.at, conn)
	}
	c.settle(p)
}

// giveUp makes room for a new connection, or closes it.
func (c *connections) giveUp(newcomer *place) {
	p := newcomer
	if len(c.crowds) > 0 {
		p = c.crowds[0].longest()
	}
	p.gone = true
	c.settle(p)
	conn := p.conn
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn() // without a TLS close_notify, which could have to wait
	}
	_ = conn.Close()
}

// settle says whether a connection may be given up.
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

// leave takes a connection out of those that may be given up.
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

// placeKey is where a request has the place of its connection, a placeOf.
type placeKey struct{}

type placeOf struct {
	c    *connections
	conn net.Conn
}

// known is a http.Server.ConnContext.
func (c *connections) known(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, placeKey{}, placeOf{c, conn})
}

// underWay counts a request for its connection, and returns what to call when its body has
// arrived and when its handler has ended; neither need be the first.
func underWay(r *http.Request, unsent bool) (arrived, end func()) {
	of, ok := r.Context().Value(placeKey{}).(placeOf)
	if !ok {
		return func() {}, func() {}
	}
	c, ended := of.c, false
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.at[of.conn]
	if p == nil { // closed meanwhile
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
		p.left = unsent && r.ProtoMajor < 2 // later versions do not wait
		c.settle(p)
	}
	return arrived, end
}

// peerNetwork is what the other side of a connection is counted by: the largest network that
// one customer of a provider has. The connections of a declared proxy are each those of another
// client, and count alone.
func (c *connections) peerNetwork(conn net.Conn) string {
	a, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // a socket of another kind has none
	if c.proxies.contains(a.Addr()) {
		return a.String()
	}
	blocks := network.Blocks(a.Addr())
	return blocks[len(blocks)-1]
}

// crowd is the places of one network that can be given up, the longest waiting first.
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
