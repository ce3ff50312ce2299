package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Server is an MCP server behind the gateway: an [Upstream], or a stdio server.
type Server interface {
	http.Handler
	// Try contacts the server once and returns the name that it gives itself, or "" if it gives
	// none. An error that may be temporary wraps ErrAway.
	Try(ctx context.Context) (name string, err error)
	// Check returns nil if the server can serve requests.
	Check(ctx context.Context) error
	// Run maintains the server until ctx ends.
	Run(ctx context.Context)
	// Close ends everything that the server has started.
	Close() error
}

// Sites serves the authorization server and any number of MCP servers, selected by host and path.
// Add must not be called after the first request.
type Sites struct {
	home    string // host of the authorization server
	main    http.Handler
	muxes   map[string]*http.ServeMux
	secure  map[string]bool // hosts with https resources
	servers []served

	patience time.Duration // timeout of Try for one server
}

// tryPatience allows time for a program that npx must download first.
const tryPatience = time.Minute

type served struct {
	resource string
	Server
}

// NewSites returns a Sites. main, the authorization server, serves all paths without an MCP server.
func NewSites(issuer string, main http.Handler) (*Sites, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil, fmt.Errorf("gateway: issuer: %w", err)
	}
	return &Sites{
		home: site(u.Host), main: main, muxes: map[string]*http.ServeMux{}, secure: map[string]bool{},
		patience: tryPatience,
	}, nil
}

// site returns the part of host that selects a site. All loopback hosts are one site, as they are
// for the guard.
func site(host string) string {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if oauth.IsLoopbackHost(strings.Trim(name, "[]")) {
		return "loopback"
	}
	return strings.ToLower(host)
}

// Add mounts an MCP server behind its guard, under its path and its aliases. It returns an error if
// a path is taken.
func (s *Sites) Add(resource string, g *mcpresource.Guard, server Server) (err error) {
	u, err := url.Parse(resource)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	host := site(u.Host)
	for _, address := range append(g.Resources(), resource) {
		if u, err := url.Parse(address); host == s.home && (err != nil || s.taken(u)) {
			return fmt.Errorf("gateway: the path of %s is the authorization server's own", address)
		}
	}
	mux := s.muxes[host]
	if mux == nil {
		mux = http.NewServeMux()
		if s.muxes[host] = mux; host == s.home {
			mux.Handle("/", s.main)
		}
	}
	defer func() {
		if recover() != nil { // ServeMux panics if a pattern is taken
			err = fmt.Errorf("gateway: another MCP server is at the path of %s, or of one of its aliases", resource)
		}
	}()
	g.Register(mux, server)
	if u.Scheme == "https" {
		s.secure[host] = true
	}
	s.servers = append(s.servers, served{resource, server})
	return nil
}

// taken reports whether main itself serves the path of an MCP server. Its handler for unknown paths
// does not count.
func (s *Sites) taken(u *url.URL) bool {
	mux, ok := s.main.(interface {
		Handler(*http.Request) (http.Handler, string)
	})
	if !ok {
		return false
	}
	_, pattern := mux.Handler(&http.Request{Method: http.MethodGet, URL: u, Host: u.Host})
	return pattern != "" && pattern != "/"
}

// ServeHTTP implements http.Handler.
func (s *Sites) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host := site(r.Host)
	if mux, ok := s.muxes[host]; ok {
		if s.secure[host] {
			w.Header().Set("Strict-Transport-Security", wire.StrictTransportSecurity)
		}
		mux.ServeHTTP(w, r)
		return
	}
	s.main.ServeHTTP(w, r)
}

// Run maintains every server until ctx ends.
func (s *Sites) Run(ctx context.Context) {
	for _, server := range s.servers {
		go server.Run(ctx)
	}
	<-ctx.Done()
}

// Try contacts every server once and calls report with each error. Each server has one minute to
// answer.
func (s *Sites) Try(ctx context.Context, report func(resource string, err error)) {
	for _, server := range s.servers {
		brief, cancel := context.WithTimeout(ctx, s.patience)
		_, err := server.Try(brief)
		cancel()
		if err != nil && ctx.Err() == nil {
			report(server.resource, err)
		}
	}
}

// Close closes every server.
func (s *Sites) Close() error {
	for _, server := range s.servers {
		_ = server.Close() // a server that has already ended needs no closing
	}
	return nil
}

// Readyz adds the state of each MCP server to the response of next. An MCP server that is down does
// not make the gateway unready, which would also take down the others.
func (s *Sites) Readyz(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer := &held{header: http.Header{}, status: http.StatusOK}
		next(answer, r)
		body := map[string]any{}
		if json.Unmarshal(answer.body.Bytes(), &body) != nil {
			body = map[string]any{}
		}
		upstreams := map[string]string{}
		for _, server := range s.servers {
			upstreams[server.resource] = "up"
			if server.Check(r.Context()) != nil {
				upstreams[server.resource] = "down"
			}
		}
		if len(upstreams) > 0 {
			body["upstreams"] = upstreams
		}
		for name, v := range answer.header {
			w.Header()[name] = v
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer.status)
		if r.Method != http.MethodHead {
			json.NewEncoder(w).Encode(body) // fails only if the client is gone
		}
	}
}

// held is a short response that is inspected before it is sent.
type held struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (h *held) Header() http.Header         { return h.header }
func (h *held) WriteHeader(status int)      { h.status = status }
func (h *held) Write(b []byte) (int, error) { return h.body.Write(b) }
