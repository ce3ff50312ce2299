// Package pipetest serves HTTP without a network, so that a server and its clients can run in a
// synctest bubble. The clock of a bubble does not move while one of its goroutines waits for a network.
package pipetest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Server is an HTTP server in memory. Only Dial and Client connect to it.
type Server struct {
	*httptest.Server
	conns *listener
}

// NewServer starts s, and closes it when the test ends.
func NewServer(tb testing.TB, s *http.Server) *Server {
	tb.Helper()
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	out := &Server{&httptest.Server{Listener: l, Config: s}, l}
	out.Start()
	out.Client().Transport = &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return out.Dial() },
	}
	tb.Cleanup(out.Close)
	return out
}

// Dial connects to the server.
func (s *Server) Dial() (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case s.conns.conns <- server:
		return client, nil
	case <-s.conns.closed:
		return nil, net.ErrClosed
	}
}

// InBubble reports whether the caller runs in a synctest bubble, whose clock starts with the year 2000.
func InBubble() bool { return time.Now().Year() < 2020 }

type listener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns a TCP address, because a URL needs one. No server listens there.
func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
