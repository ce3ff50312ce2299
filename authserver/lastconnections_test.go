package authserver_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/mcp-authd/mcp-authd/authserver"
)

// lastListener calls last when it is closed for the first time.
type lastListener struct {
	net.Listener
	last func()
}

func (l *lastListener) Close() error {
	if last := l.last; last != nil {
		l.last = nil
		last()
	}
	return l.Listener.Close()
}

// TestLastConnections checks that a client that was accepted just before the listener closes gets a
// response (OP-07).
func TestLastConnections(t *testing.T) {
	as, _ := embedded(t)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	as.Register(mux)
	accepted := make(chan struct{})
	l := &lastListener{Listener: &acceptedListener{plain, accepted}}
	answered := make(chan error, 1)
	conn, err := net.Dial("tcp", plain.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	l.last = func() {
		<-accepted
		r, err := http.NewRequest(http.MethodGet, "http://"+plain.Addr().String()+"/healthz", nil)
		if err == nil {
			err = r.Write(conn)
		}
		if err == nil {
			var resp *http.Response
			if resp, err = http.ReadResponse(bufio.NewReader(conn), r); err == nil {
				defer resp.Body.Close()
				if resp.StatusCode != http.StatusOK || !resp.Close {
					t.Errorf("OP-07: got %s, the last one: %v", resp.Status, resp.Close)
				}
			}
		}
		answered <- err
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- as.Serve(ctx, authserver.Site{Listener: l, Handler: mux}) }()
	<-accepted
	stop()
	if err := <-answered; err != nil {
		t.Errorf("OP-07: the client that was let in: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("OP-07: the end: %v", err)
	}
}

// acceptedListener reports the first accepted connection.
type acceptedListener struct {
	net.Listener
	accepted chan struct{}
}

func (l *acceptedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		select {
		case <-l.accepted:
		default:
			close(l.accepted)
		}
	}
	return c, err
}
