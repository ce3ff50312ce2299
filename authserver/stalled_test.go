package authserver

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// Security M4: a client fills a listener with requests whose bodies never come, and fills each free
// place again. It keeps no client out and ends no stream.
func TestStalledBodiesKeepNobodyOut(t *testing.T) {
	for _, tt := range []struct {
		name, honest string
		places       int
		pause        time.Duration // of the attacker between two connections for one place
	}{
		{"another network", "127.0.1.1", 8, 2 * time.Millisecond},
		// Only its short wait protects a new connection here, and with few places that is soon
		// over: with 32 that return twice a second, a slow machine has many seconds.
		{"another address of the network", "127.0.0.2", 32, time.Second / 2},
		{"the same address", "127.0.0.1", 32, time.Second / 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if there, err := net.Listen("tcp", net.JoinHostPort(tt.honest, "0")); err != nil {
				t.Skip("not on all systems is all of 127.0.0.0/8 this machine: ", err)
			} else {
				there.Close()
			}
			r := newRig(t)
			streaming, release := make(chan struct{}), make(chan struct{})
			var asked atomic.Int64
			mux := http.NewServeMux()
			mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				_, _ = io.ReadAll(r.Body)
				fmt.Fprint(w, "here")
			})
			mux.HandleFunc("POST /unread", func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.WriteHeader(http.StatusUnauthorized)
			})
			mux.HandleFunc("POST /stream", func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				_ = http.NewResponseController(w).Flush()
				close(streaming)
				<-release
				fmt.Fprint(w, "still there")
			})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := r.httpServer(Site{Handler: mux, MaxConnections: tt.places}, t.Context())
			go func() { _ = s.Serve(l) }()
			defer s.Close()

			// The stream comes from the attacker's address: no other client may end it.
			stream, err := http.Post("http://"+l.Addr().String()+"/stream", "text/plain", strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Body.Close()
			<-streaming

			stop := make(chan struct{})
			var attack sync.WaitGroup
			for i := range tt.places {
				attack.Add(1)
				go func() {
					defer attack.Done()
					for {
						conn, err := net.Dial("tcp", l.Addr().String())
						if err == nil {
							fmt.Fprintf(conn, "POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\nab",
								[]string{"token", "unread"}[i%2])
							gone := make(chan struct{})
							go func() { _, _ = io.Copy(io.Discard, conn); close(gone) }()
							select {
							case <-gone:
							case <-stop:
							}
							conn.Close()
							<-gone
						}
						select {
						case <-stop:
							return
						case <-time.After(tt.pause):
						}
					}
				}()
			}
			wait.Until(t, "the attacker's requests have arrived",
				func() bool { return asked.Load() >= int64(tt.places) })
			from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(tt.honest)}}
			honest := &http.Client{
				Transport: &http.Transport{DisableKeepAlives: true, DialContext: from.DialContext},
				Timeout:   time.Minute,
			}
			failed := 0
			for range 20 {
				resp, err := honest.Post("http://"+l.Addr().String()+"/token", "text/plain", strings.NewReader("x"))
				if err != nil {
					t.Logf("%v", err)
					failed++
					continue
				}
				resp.Body.Close()
			}
			if failed > 0 {
				t.Errorf("%d of 20 honest requests were kept out", failed)
			}
			close(stop)
			attack.Wait()
			close(release)
			if got, err := io.ReadAll(stream.Body); string(got) != "still there" {
				t.Errorf("the stream ended with %q, %v", got, err)
			}
		})
	}
}

// With HTTP/2 a connection has many requests: it can be closed only while it waits for bodies.
func TestWaitingWithHTTP2(t *testing.T) {
	release, body := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) })
	mux.HandleFunc("GET /",
		func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush(); <-release })
	bound := newConnections(2, nil)
	s := httptest.NewUnstartedServer(timely(mux, time.Minute))
	s.EnableHTTP2, s.Config.ConnState, s.Config.ConnContext = true, bound.changed, bound.known
	s.StartTLS()
	defer s.Close()
	settled := func(when string, unsent, served, waiting int) {
		t.Helper()
		wait.Success(t, "the connection has "+when, func() error {
			var u, v int
			bound.mu.Lock()
			for _, p := range bound.at {
				u, v = p.unsent, p.served
			}
			n, open := len(bound.crowds), bound.open
			bound.mu.Unlock()
			if u != unsent || v != served || n != waiting || open != 1 {
				return fmt.Errorf("unsent %d, served %d, waiting %d of %d, want %d, %d, %d of 1", u, v, n, open,
					unsent, served, waiting)
			}
			return nil
		})
	}
	stream, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	settled("a stream", 0, 1, 0)
	from, to := io.Pipe()
	go func() {
		if resp, err := s.Client().Post(s.URL, "text/plain", from); err == nil {
			resp.Body.Close()
		}
		close(body)
	}()
	settled("a stream and a body", 1, 1, 0)
	close(release)
	settled("a body", 1, 0, 1)
	to.Close()
	<-body
	settled("nothing", 0, 0, 1)
}

// A client behind a declared proxy is not counted together with the proxy's other clients.
func TestConnectionsOfProxiesCountAlone(t *testing.T) {
	c := newConnections(3, TrustedProxies{netip.MustParsePrefix("192.0.2.0/24")})
	var conns []*fromConn
	for _, from := range []string{"192.0.2.1:1", "192.0.2.1:2", "203.0.113.1:1", "203.0.113.2:1"} {
		conns = append(conns, &fromConn{from: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from))})
		c.changed(conns[len(conns)-1], http.StateNew)
	}
	for i, conn := range conns {
		if want := i == 0; conn.closed != want { // each counts alone, and it has waited longest
			t.Errorf("%s: closed is %v", conn.from, conn.closed)
		}
	}
	c.changed(conns[0], http.StateClosed)
	c.changed(&fromConn{from: conns[0].from}, http.StateNew)
	if conns[1].closed || !conns[2].closed {
		t.Errorf("closed are %v of the proxy and %v of a client with two", conns[1].closed, conns[2].closed)
	}
}

// Security M4: no state of a closed connection is kept, whatever it was doing.
func TestClosedConnectionsAreForgotten(t *testing.T) {
	c := newConnections(8, nil)
	for i, states := range [][]http.ConnState{
		{http.StateNew, http.StateClosed},
		{http.StateNew, http.StateActive, http.StateClosed},
		{http.StateNew, http.StateActive, http.StateIdle, http.StateClosed},
		{http.StateNew, http.StateActive, http.StateHijacked},
	} {
		conn := &fromConn{from: &net.TCPAddr{IP: net.IPv4(203, 0, 113, byte(i)), Port: 1}}
		for _, state := range states {
			c.changed(conn, state)
		}
		if c.open != 0 || len(c.at) != 0 || len(c.networks) != 0 || len(c.crowds) != 0 {
			t.Errorf("%v: %d open, %d places, %d networks and %d crowds are left", states, c.open, len(c.at),
				len(c.networks), len(c.crowds))
		}
	}
}

type fromConn struct {
	net.Conn
	from   net.Addr
	closed bool
}

func (c *fromConn) RemoteAddr() net.Addr { return c.from }

func (c *fromConn) Close() error {
	c.closed = true
	return nil
}
