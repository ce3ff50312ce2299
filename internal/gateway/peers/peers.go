package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	dialTime = 3 * time.Second
	// answerTime is until an answer begins: a program need not have answered by then, but its stream begins at once.
	answerTime = 20 * time.Second
	idleTime   = 90 * time.Second
	maxIdle    = 64 // connections to one replica
)

// Config describes the replica that passes requests, and is passed some. Every field is required.
type Config struct {
	Self   string // its ID in the table of replicas
	Ring   *secrets.Ring
	Store  storage.Replicas
	Now    func() time.Time // the clock of the store
	Logger *slog.Logger
}

// Peers passes requests to other replicas, and takes theirs. Add every Site before Serve.
type Peers struct {
	c         Config
	identity  *identity
	directory *directory
	transport *http.Transport
	sites     map[string]*Site

	mu        sync.Mutex // guards the rest
	unreached map[string]fault
}

// New returns what passes requests. It fails for a Config that is not complete.
func New(c Config) (*Peers, error) {
	if c.Self == "" || c.Ring == nil || c.Store == nil || c.Now == nil || c.Logger == nil {
		return nil, errors.New("peers: the configuration is not complete")
	}
	id, err := newIdentity(c.Ring, c.Self)
	if err != nil {
		return nil, err
	}
	p := &Peers{
		c: c, identity: id, directory: &directory{store: c.Store, now: c.Now}, sites: map[string]*Site{},
		unreached: map[string]fault{},
	}
	p.transport = &http.Transport{
		DialTLSContext: p.dial, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTime,
		ResponseHeaderTimeout: answerTime, MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
	}
	return p, nil
}

// Self is the ID of this replica.
func (p *Peers) Self() string { return p.c.Self }

// dialError is a failure before a replica was asked anything.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// dial connects to the replica whose ID is the host of addr: a connection is used again for that replica alone.
func (p *Peers) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	id, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, dialError{err}
	}
	r, ok, err := p.directory.find(ctx, id)
	switch {
	case err != nil:
		return nil, dialError{err}
	case !ok:
		return nil, dialError{errUnlisted}
	case r.PeerAddress == "":
		return nil, dialError{errClosed}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	d := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 5 * time.Second, Interval: 3 * time.Second, Count: 5,
	}}
	raw, err := d.DialContext(ctx, "tcp", r.PeerAddress)
	if err != nil {
		return nil, dialError{err}
	}
	c := tls.Client(raw, p.identity.client(id))
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, dialError{err}
	}
	return c, nil
}

var (
	errUnlisted = errors.New("it is not in the table of replicas")
	errClosed   = errors.New("it takes no requests from other replicas (peers.listen)")
)

// request is one for the replica id. Its URL is no address: dial finds that.
func (p *Peers) request(ctx context.Context, method, id, path string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, "https://"+id+":443"+path, nil)
	if err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	r.Header.Set("User-Agent", "") // none
	return r, nil
}
