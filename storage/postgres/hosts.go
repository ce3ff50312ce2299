package postgres

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// connectTimeout is for each of several hosts: one that hangs must leave time for the
	// next. A host alone has as long as a verb.
	connectTimeout      = 3 * time.Second
	connectTimeoutAlone = 10 * time.Second
)

// hosts are the servers that the URL names, of which one at a time is the primary.
type hosts struct {
	mu    sync.Mutex         // guards what follows
	leads map[[2]string]bool // a name and an address that it was found to have
	good  string             // the address that a connection was made to last
}

// failOver sets what several hosts need (DL-03), unless the URL has it. Several may also stand
// behind one name; then the URL says which of them is meant.
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

// distinct counts the hosts: one may be there twice, with TLS and without.
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

// prefer has the host tried first that was good last: one before it may hang, and each new
// connection would wait for it.
func (h *hosts) prefer(c *pgx.ConnConfig) {
	lookup := c.LookupFunc
	c.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		found, err := lookup(ctx, host)
		return h.found(host, found), err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	all := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	var first, rest []*pgconn.FallbackConfig
	for _, f := range all {
		if h.isGood(f) {
			first = append(first, f)
		} else {
			rest = append(rest, f)
		}
	}
	all = append(first, rest...)
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
}

// found remembers whose the addresses are, and returns them with the good one first.
func (h *hosts) found(host string, addresses []string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	good, _, _ := net.SplitHostPort(h.good)
	var out []string
	for _, a := range addresses {
		h.leads[[2]string{host, a}] = true
		if a == good {
			out = append([]string{a}, out...)
		} else {
			out = append(out, a)
		}
	}
	return out
}

func (h *hosts) isGood(f *pgconn.FallbackConfig) bool {
	if filepath.IsAbs(f.Host) {
		_, socket := pgconn.NetworkAddress(f.Host, f.Port)
		return socket == h.good
	}
	ip, port, err := net.SplitHostPort(h.good)
	return err == nil && port == strconv.Itoa(int(f.Port)) && h.leads[[2]string{f.Host, ip}]
}

// connected notes where a connection leads.
func (h *hosts) connected(c *pgx.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.good = c.PgConn().Conn().RemoteAddr().String()
}
