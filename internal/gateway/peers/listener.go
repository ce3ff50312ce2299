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
	maxHandshakes = 64 // at once
	tellRefused   = time.Minute
)

// listener accepts connections of other replicas: Accept returns those whose handshake has succeeded.
type listener struct {
	net.Listener
	tls   *tls.Config
	log   *slog.Logger
	now   func() time.Time
	ready chan net.Conn
	life  context.Context // of handshakes
	end   context.CancelFunc

	mu   sync.Mutex
	told time.Time // when a refused connection was logged
}

// conn hides from package net/http that it is TLS: there is no other protocol to choose in it.
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
			select { // too many open files, for instance
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

// admit has the other side prove that it has the master key. Nothing else is read before.
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

// refused logs one refused connection in a while: whoever reaches the port can have any number refused.
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
