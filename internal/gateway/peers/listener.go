package peers

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	handshakeTime = 5 * time.Second
	maxHandshakes = 64 // at the same time
	tellRefused   = time.Minute
)

// listener accepts connections from other replicas. Accept returns those whose handshake has
// succeeded.
type listener struct {
	net.Listener
	tls   *tls.Config
	log   *slog.Logger
	now   func() time.Time
	ready chan net.Conn
	life  context.Context // context of handshakes
	end   context.CancelFunc

	mu   sync.Mutex
	told time.Time // time of the last log entry about a refused connection
}

// conn hides TLS from package net/http, which would otherwise negotiate the protocol.
type conn struct{ net.Conn }

func listen(l net.Listener, i *identity, c Config) *listener {
	out := &listener{Listener: l, tls: i.server(), log: c.Logger, now: c.Now, ready: make(chan net.Conn)}
	out.life, out.end = context.WithCancel(context.Background())
	go out.run()
	return out
}

func (l *listener) run() {
	turns := make(chan struct{}, maxHandshakes)
	for {
		turns <- struct{}{}
		c, err := l.Listener.Accept()
		if err != nil {
			if l.life.Err() != nil {
				return
			}
			<-turns
			select { // for example because of too many open files
			case <-time.After(100 * time.Millisecond):
			case <-l.life.Done():
			}
			continue
		}
		go func() {
			defer func() { <-turns }()
			l.admit(c)
		}()
	}
}

// admit performs the handshake, which proves that the other side has the master key.
func (l *listener) admit(raw net.Conn) {
	c := tls.Server(raw, l.tls)
	ctx, cancel := context.WithTimeout(l.life, handshakeTime)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		l.refused(raw.RemoteAddr(), err)
		_ = raw.Close()
		return
	}
	select {
	case l.ready <- conn{c}:
	case <-l.life.Done():
		_ = raw.Close()
	}
}

// refused logs refused connections at a limited rate, because anyone who can reach the port can
// cause them.
func (l *listener) refused(from net.Addr, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); now.Sub(l.told) > tellRefused && l.life.Err() == nil {
		l.told = now
		l.log.Warn("the listener for replicas has refused a connection: have the same secret_key on each replica, "+
			"and let only replicas reach it", "address", l.Addr().String(), "from", from.String(), "error", err)
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.life.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.end()
	return l.Listener.Close()
}
