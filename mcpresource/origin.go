package mcpresource

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// sites are the hosts and web origins that may be used to reach a guard.
type sites struct {
	scheme         string // of the resource
	anyLocal       bool   // whether every loopback name is a host
	hosts, origins []string
	cors           bool
}

// newSites returns the sites of a configuration whose resource is own.
func newSites(c *Config, own *address) (*sites, error) {
	u, err := url.Parse(c.Resource)
	if err != nil {
		return nil, fmt.Errorf("mcpresource: Resource: %w", err)
	}
	s := &sites{anyLocal: oauth.IsLoopbackHost(u.Hostname()), scheme: strings.ToLower(u.Scheme), cors: c.CORS}
	s.hosts = []string{canonicalHost(s.scheme, u.Host)}
	for _, h := range c.Hosts {
		host := canonicalHost(s.scheme, h)
		canonical, err := oauth.CanonicalResource(s.scheme + "://" + host)
		// a wildcard is not supported
		if err != nil || oauth.ResourceOrigin(canonical) != s.scheme+"://"+host || strings.Contains(host, "*") {
			return nil, fmt.Errorf("mcpresource: Hosts: %q is not a host such as mcp.example.com or 10.0.0.7:8080", h)
		}
		s.hosts = append(s.hosts, host)
	}
	s.origins = []string{oauth.ResourceOrigin(own.resource)}
	for _, o := range c.Origins {
		canonical, err := oauth.CanonicalResource(o)
		if err != nil || oauth.ResourceOrigin(canonical) != canonical {
			return nil, fmt.Errorf("mcpresource: Origins: %q is not an origin such as https://app.example.com", o)
		}
		s.origins = append(s.origins, canonical)
	}
	return s, nil
}

// check defends against DNS rebinding and foreign web pages (MCP, Streamable HTTP, "Security
// Warning", RS-59, RS-60, RS-95), for every method. It does not compare Origin with Host: in a
// rebinding attack they agree.
func (s *sites) check(_ http.ResponseWriter, r *http.Request, _ *passage) *refusal {
	if !s.isHost(r.Host) {
		return &refusal{
			outcome: OutcomeHost, status: http.StatusForbidden, text: "This host name is not served here.",
			err: errors.New(logged.Unexpected("Host is", r.Host, s.hosts...) + ": see Config.Hosts"),
		}
	}
	values := r.Header["Origin"]
	if len(values) == 0 {
		return nil // not a browser
	}
	if len(values) > 1 || !s.isOrigin(values[0]) {
		return &refusal{
			outcome: OutcomeOrigin, status: http.StatusForbidden, text: "This origin is not permitted.",
			err: errors.New(
				logged.Unexpected("Origin is", strings.Join(values, " "), s.origins...) + ": see Config.Origins"),
		}
	}
	return nil
}

func (s *sites) isHost(host string) bool {
	host = canonicalHost(s.scheme, host)
	if slices.Contains(s.hosts, host) {
		return true
	}
	return s.anyLocal && oauth.IsLoopbackHost(hostname(host))
}

// canonicalHost returns the canonical spelling of a Host value: in lower case and without the
// default port of the scheme (RFC 9110 §4.2.3).
func canonicalHost(scheme, host string) string {
	host = strings.ToLower(host)
	switch scheme {
	case "http":
		return strings.TrimSuffix(host, ":80")
	case "https":
		return strings.TrimSuffix(host, ":443")
	}
	return host
}

// hostname returns the host of a Host value. Cutting at the colon is not safe: in
// "127.0.0.1:80.evil.example" the rest is not a port.
func hostname(hostport string) string {
	u, err := url.Parse("//" + hostport)
	if err != nil || u.Host != hostport {
		return ""
	}
	return u.Hostname()
}

func (s *sites) isOrigin(origin string) bool {
	canonical, err := oauth.CanonicalResource(origin)
	if err != nil || oauth.ResourceOrigin(canonical) != canonical {
		return false // includes "null"
	}
	if slices.Contains(s.origins, canonical) {
		return true
	}
	scheme, host, _ := strings.Cut(canonical, "://")
	return s.anyLocal && scheme == "http" && oauth.IsLoopbackHost(hostname(host))
}

// The headers that browser clients of MCP send and read.
const (
	allowHeaders  = "Authorization, Content-Type, Accept, Last-Event-ID, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, DPoP"
	exposeHeaders = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After, DPoP-Nonce, X-Request-Id"
)

// preflights is the step that answers CORS preflights.
type preflights struct{ *sites }

func (f preflights) check(w http.ResponseWriter, r *http.Request, _ *passage) *refusal {
	if f.crossOrigin(w, r) {
		return answered
	}
	return nil
}

// crossOrigin sets the CORS headers for a permitted origin and answers its preflight, which has no
// token. It names the checked origin, never "*". There is no Access-Control-Allow-Credentials,
// because cookies identify no caller here.
func (s *sites) crossOrigin(w http.ResponseWriter, r *http.Request) (answered bool) {
	if !s.cors {
		return false
	}
	h, origin := w.Header(), r.Header.Get("Origin")
	h.Add("Vary", "Origin") // also without Origin: a cache must not reuse a response for all
	if origin == "" {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", exposeHeaders)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", requestedHeaders(r))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// maxParams is the maximum number of mirrored parameters in a preflight, which anyone may send.
const maxParams = 50

// requestedHeaders returns the allowed headers. They include those for mirrored parameters, whose
// names only the tools know.
func requestedHeaders(r *http.Request) string {
	out, left := allowHeaders, maxParams
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = strings.TrimSpace(name)
		if strings.HasPrefix(strings.ToLower(name), "mcp-param-") && len(name) < 100 &&
			!strings.ContainsAny(name, "\r\n") {
			if left--; left < 0 {
				break
			}
			out += ", " + name
		}
	}
	return out
}
