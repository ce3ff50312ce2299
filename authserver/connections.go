package authserver

import (
	"container/list"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// timely bounds the time in which the body of a request arrives, whoever answers the request
// and however: net/http waits for what a handler leaves unread, also behind its own 404 and
// 405. The deadline is lifted with the end of the body, because net/http cancels a request
// whose connection is past one, and a stream lasts longer. Requests without a body have none:
// for their head there is http.Server.ReadHeaderTimeout.
func timely(h http.Handler, d time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && r.Body != nil {
			c := http.NewResponseController(w)
			_ = c.SetReadDeadline(time.Now().Add(d)) // net/http's writers have deadlines
			r.Body = &timelyBody{ReadCloser: r.Body, lift: func() { _ = c.SetReadDeadline(time.Time{}) }}
		}
		h.ServeHTTP(w, r)
	})
}

// timelyBody lifts the deadline of a body that has arrived.
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

// connections bounds the connections of one listener. A full one gives up the connection
// that has been without a request for the longest, so that those who hold connections and
// ask nothing keep nobody out; with a request on each of them, it refuses the newcomer.
type connections struct {
	limit int

	mu   sync.Mutex // guards what follows
	open int
	idle *list.List // of net.Conn, the longest idle first
	at   map[net.Conn]*list.Element
}

func newConnections(limit int) *connections {
	return &connections{limit: limit, idle: list.New(), at: map[net.Conn]*list.Element{}}
}

// changed is a http.Server.ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.at[conn]; ok {
		c.idle.Remove(e)
		delete(c.at, conn)
	}
	switch state {
	case http.StateNew:
		if c.open++; c.open > c.limit {
			c.giveUp(conn)
		}
		c.at[conn] = c.idle.PushBack(conn)
	case http.StateIdle:
		c.at[conn] = c.idle.PushBack(conn)
	case http.StateClosed, http.StateHijacked:
		c.open--
	}
}

// giveUp makes room for a new connection, or closes it.
func (c *connections) giveUp(newcomer net.Conn) {
	conn := newcomer
	if e := c.idle.Front(); e != nil {
		conn = e.Value.(net.Conn)
		c.idle.Remove(e)
		delete(c.at, conn)
	}
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn() // without a farewell, which could have to wait
	}
	_ = conn.Close()
}
