package assembly

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/gateway/peers"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// newPeers returns the forwarder of session requests to other replicas, or nil if it is not needed.
func (p Parts) newPeers() (*peers.Peers, error) {
	if !p.Config.PassesSessions() {
		return nil, nil
	}
	ring, err := secrets.NewRing(p.Keys...)
	if err != nil {
		return nil, err
	}
	return peers.New(peers.Config{Self: p.replica, Ring: ring, Store: p.Store, Now: p.Now, Logger: p.Log})
}

// servePeers serves requests of other replicas until end is called. It returns their address, or ""
// if it serves none. A configured address must be available. If automatic selection finds no
// address, the server logs that and runs without forwarding.
func (s *Server) servePeers(ctx context.Context) (at string, end func(), err error) {
	p := s.parts
	if p.peers == nil {
		if c := p.Config; c.Postgres() && c.HasPrograms() {
			p.Log.Warn("sessions of programs work in the replica alone that began them (peers.listen is off): with " +
				"several replicas, the proxy has to send each client to the same one")
		}
		return "", func() {}, nil
	}
	l, at, err := p.peerListener(ctx)
	switch {
	case err != nil && p.Config.Peers.Listen != config.PeersAuto:
		return "", nil, fmt.Errorf("peers.listen: %w", err)
	case err != nil:
		p.Log.Warn("sessions of programs work only on the replica that began them: it has no address for other "+
			"replicas; set peers.listen", "error", err)
		return "", func() {}, nil
	}
	p.Log.Info("listening for other replicas", "address", l.Addr().String(), "as", at)
	stop := p.peers.Serve(l)
	told := make(chan time.Time, 1) // when to stop
	context.AfterFunc(ctx, func() { told <- p.Now() })
	return at, func() {
		left := leastFinish
		select {
		case since := <-told: // the public listeners have been closing since then
			left = max(time.Duration(p.Config.Limits.Finish)-p.Now().Sub(since), left)
		default:
		}
		stop(left)
	}, nil
}

// leastFinish is the time for pending responses if the public listeners used all the time to close.
const leastFinish = time.Second

// peerListener opens the listener for other replicas, and returns its address.
func (p Parts) peerListener(ctx context.Context) (l net.Listener, at string, err error) {
	c := p.Config.Peers
	listen := c.Listen
	if listen == config.PeersAuto {
		host, err := localAddress(ctx, p.Config.DatabaseHosts())
		if err != nil {
			return nil, "", err
		}
		listen = net.JoinHostPort(host, "0")
	}
	if l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", listen); err != nil {
		return nil, "", err
	}
	if at, err = p.peerAddress(ctx, l.Addr()); err != nil {
		_ = l.Close()
		return nil, "", err
	}
	return l, at, nil
}

// peerAddress returns the address where other replicas reach a listener.
func (p Parts) peerAddress(ctx context.Context, bound net.Addr) (string, error) {
	if p.Config.Peers.Address != "" {
		return p.Config.Peers.Address, nil
	}
	tcp, ok := bound.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return bound.String(), nil
	}
	host, err := localAddress(ctx, p.Config.DatabaseHosts())
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, fmt.Sprint(tcp.Port)), nil
}

// localAddress returns this machine's address on the route to the first reachable one of hosts. It
// uses a UDP socket, which sends no packet.
func localAddress(ctx context.Context, hosts []string) (host string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = fmt.Errorf("no host of the database is known")
	for _, to := range hosts {
		c, dialErr := (&net.Dialer{}).DialContext(ctx, "udp", to)
		if dialErr != nil {
			err = dialErr
			continue
		}
		defer c.Close()
		host, _, err := net.SplitHostPort(c.LocalAddr().String())
		return host, err
	}
	return "", err
}
