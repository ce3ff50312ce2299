package postgres

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// connectTimeout applies to each of several hosts, so that a host that hangs leaves time for
	// the next. A single host has as long as a verb.
	connectTimeout      = 3 * time.Second
	connectTimeoutAlone = 10 * time.Second
)

// hosts are the servers that the URL names. One of them at a time is the primary.
type hosts struct {
	mu     sync.Mutex         // guards the fields below
	leads  map[[2]string]bool // a name, and an address that it resolved to
	good   string             // the address of the last successful connection
	silent string             // the address whose server did not answer, until a connection to it is made
}

// failOver sets the options for several hosts (DL-03), unless the URL sets them. Several hosts may
// also share one name; then the URL must say which of them is wanted.
func failOver(url string, c *pgx.ConnConfig) {
	given := func(parameter, env string) bool { return strings.Contains(url, parameter) || os.Getenv(env) != "" }
	several := strings.Contains(url, "target_session_attrs") || distinct(c) > 1
	if !given("connect_timeout", "PGCONNECT_TIMEOUT") {
		c.ConnectTimeout = connectTimeoutAlone
		if several {
			c.ConnectTimeout = connectTimeout
		}
	}
	if several && !given("target_session_attrs", "PGTARGETSESSIONATTRS") {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
}

// distinct counts the hosts. A host may be listed twice, with TLS and without.
func distinct(c *pgx.ConnConfig) int {
	seen := map[string]bool{address(c.Host, c.Port): true}
	for _, f := range c.Fallbacks {
		seen[address(f.Host, f.Port)] = true
	}
	return len(seen)
}

func address(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// prefer makes a connection try the last good host first, and a host that did not answer last.
// Every new connection would wait for a host that hangs if that came first.
func (h *hosts) prefer(c *pgx.ConnConfig) {
	lookup := c.LookupFunc
	c.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		found, err := lookup(ctx, host)
		return h.found(host, found), err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	all := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	slices.SortStableFunc(all, func(a, b *pgconn.FallbackConfig) int {
		return rank(h.leadsTo(a, h.good), h.leadsTo(a, h.silent)) - rank(h.leadsTo(b, h.good), h.leadsTo(b, h.silent))
	})
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
}

// rank sorts the good host first and the silent one last.
func rank(good, silent bool) int {
	switch {
	case good:
		return -1
	case silent:
		return 1
	}
	return 0
}

// found records the addresses of a host, and returns them with the good one first and the silent
// one last.
func (h *hosts) found(host string, addresses []string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range addresses {
		h.leads[[2]string{host, a}] = true
	}
	good, _, _ := net.SplitHostPort(h.good)
	silent, _, _ := net.SplitHostPort(h.silent)
	out := slices.Clone(addresses)
	slices.SortStableFunc(out, func(a, b string) int {
		return rank(a == good, a == silent) - rank(b == good, b == silent)
	})
	return out
}

// leadsTo reports whether f leads to an address.
func (h *hosts) leadsTo(f *pgconn.FallbackConfig, address string) bool {
	if filepath.IsAbs(f.Host) {
		_, socket := pgconn.NetworkAddress(f.Host, f.Port)
		return socket == address
	}
	ip, port, err := net.SplitHostPort(address)
	return err == nil && port == strconv.Itoa(int(f.Port)) && h.leads[[2]string{f.Host, ip}]
}

// connected records the address of a connection.
func (h *hosts) connected(c *pgx.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.good = c.PgConn().Conn().RemoteAddr().String()
	if h.silent == h.good {
		h.silent = ""
	}
}

// markSilent records that the server of a connection does not answer.
func (h *hosts) markSilent(c *pgx.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent = c.PgConn().Conn().RemoteAddr().String()
	if h.good == h.silent {
		h.good = ""
	}
}
