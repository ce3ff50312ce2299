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
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	dialTime = 3 * time.Second
	// answerTime limits the wait for the start of a response. A program may take longer, but its
	// stream begins immediately.
	answerTime = 20 * time.Second
	idleTime   = 90 * time.Second
	maxIdle    = 64 // connections to one replica
)

// Config configures the forwarding of one replica. Every field is required.
type Config struct {
	Self   string // ID of this replica in the table
	Ring   *secrets.Ring
	Store  storage.Replicas
	Now    func() time.Time // the store's clock
	Logger *slog.Logger
}

// Peers forwards requests to other replicas and accepts theirs. Site must not be called after
// Serve.
type Peers struct {
	c         Config
	identity  *identity
	directory *directory
	transport *http.Transport
	sites     map[string]*Site

	mu        sync.Mutex // guards the fields below
	unreached map[string]fault
}

// New returns the Peers of a replica. It returns an error if c is incomplete.
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

// Self returns the ID of this replica.
func (p *Peers) Self() string { return p.c.Self }

// dialError is an error that occurred before the request was sent.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// dial connects to the replica whose ID is the host of addr. As the ID is the host, a connection is
// only reused for the same replica.
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

// request returns a request to the replica id. The URL contains the ID, which dial resolves.
func (p *Peers) request(ctx context.Context, method, id, path string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, "https://"+id+":443"+path, nil)
	if err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	r.Header.Set("User-Agent", "") // send none
	return r, nil
}
