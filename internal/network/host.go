package network

import (
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Hostname returns the host of a Host header field in lower case, without port and brackets. It
// returns "" if the field is not a host with an optional port (RFC 9110 §7.2). Splitting at the
// colon is not sufficient: "127.0.0.1:80.evil.example" has no valid port.
func Hostname(host string) string {
	u, err := url.Parse("//" + host)
	if err != nil || u.Host != host || u.User != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// IsLocal reports whether a Host header field names this machine.
func IsLocal(host string) bool { return oauth.IsLoopbackHost(Hostname(host)) }
