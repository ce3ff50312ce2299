package config

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// Peers configures how replicas forward session requests to the replica that holds the session.
type Peers struct {
	// Listen is the address of the listener for other replicas: auto, off, or an address.
	Listen string `yaml:"listen"`
	// Address is the address where other replicas reach it.
	Address string `yaml:"address"`
}

// The values of Peers.Listen that are not addresses.
const (
	PeersAuto = "auto" // the local address used to reach PostgreSQL, with any port
	PeersOff  = "off"
)

func defaultPeers() Peers { return Peers{Listen: PeersAuto} }

func (c *Config) validatePeers(add func(key, format string, args ...any)) {
	p := c.Peers
	if p.Listen != PeersAuto && p.Listen != PeersOff && !isAddress(p.Listen) {
		add("peers.listen", "%q must be auto, off, or an address such as 10.0.0.5:9415", p.Listen)
	}
	if p.Address == "" {
		return
	}
	host, port, err := net.SplitHostPort(p.Address)
	ip := net.ParseIP(host)
	switch {
	case err != nil || host == "" || port == "0" || !isAddress(p.Address) || ip != nil && ip.IsUnspecified():
		add("peers.address", "%q must be a host and a port that other replicas reach, such as 10.0.0.5:9415", p.Address)
	case p.Listen == PeersAuto || p.Listen == PeersOff:
		add("peers.address", "must be empty while peers.listen is %s: set peers.listen to an address, such as :%s",
			p.Listen, port)
	}
}

// HasPrograms reports whether an MCP server behind the gateway is a program, whose sessions exist
// in one replica only.
func (c *Config) HasPrograms() bool {
	return slices.ContainsFunc(c.Resources, func(r Resource) bool { return len(r.Upstream.Command) > 0 })
}

// PassesSessions reports whether replicas forward session requests to each other.
func (c *Config) PassesSessions() bool {
	return c.Postgres() && c.HasPrograms() && c.Peers.Listen != PeersOff
}

// DatabaseHosts returns the PostgreSQL hosts with their ports. A local socket is localhost.
func (c *Config) DatabaseHosts() (out []string) {
	rest, is := postgresURL(string(c.Database.URL))
	if !is {
		return nil
	}
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' { // as in postgresFault
		rest = rest[i+1:]
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, _, _ := strings.Cut(rest, "/")
	defaultPort := "5432"
	if values, err := url.ParseQuery(query); err == nil {
		if host := values.Get("host"); host != "" {
			hosts = host
		}
		if port, _, _ := strings.Cut(values.Get("port"), ","); port != "" {
			defaultPort = port
		}
	}
	for text := range strings.SplitSeq(hosts, ",") {
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			host, port = strings.Trim(text, "[]"), defaultPort
		}
		if decoded, err := url.PathUnescape(host); err == nil {
			host = decoded
		}
		if host == "" || host[0] == '/' || host[0] == '@' {
			host = "localhost"
		}
		out = append(out, net.JoinHostPort(host, port))
	}
	return out
}
