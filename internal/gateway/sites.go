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
	"sync/atomic"
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
// Add must not be called after the first request. Replace may be called at any time.
type Sites struct {
	// Refresh, if set, is called before a request that may be for an MCP server of Replace, so that
	// its sites are current.
	Refresh func(context.Context)

	home  string // host of the authorization server
	main  http.Handler
	fixed []Site // of Add
	now   atomic.Pointer[table]

	patience time.Duration // timeout of Try for one server
}

// Site is an MCP server behind its guard.
type Site struct {
	Resource string
	Guard    *mcpresource.Guard
	Server   Server
}

// table holds the sites of one moment. It does not change once it is used.
type table struct {
	muxes   map[string]*http.ServeMux
	secure  map[string]bool // hosts with https resources
	servers []Site
}

// tryPatience allows time for a program that npx must download first.
const tryPatience = time.Minute

// NewSites returns a Sites. main, the authorization server, serves all paths without an MCP server.
func NewSites(issuer string, main http.Handler) (*Sites, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil, fmt.Errorf("gateway: issuer: %w", err)
	}
	s := &Sites{home: site(u.Host), main: main, patience: tryPatience}
	s.now.Store(newTable())
	return s, nil
}

func newTable() *table { return &table{muxes: map[string]*http.ServeMux{}, secure: map[string]bool{}} }

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
func (s *Sites) Add(resource string, g *mcpresource.Guard, server Server) error {
	added := Site{resource, g, server}
	if err := s.mount(s.now.Load(), added); err != nil {
		return err
	}
	s.fixed = append(s.fixed, added)
	return nil
}

// Replace mounts sites next to those of Add, instead of the sites of the last Replace. It returns
// an error for each site whose path is taken, by its resource, and serves the others. The caller
// runs and closes their servers.
func (s *Sites) Replace(sites []Site) map[string]error {
	failed := map[string]error{}
	for {
		t, ok := newTable(), true
		for _, fixed := range s.fixed {
			_ = s.mount(t, fixed) // Add has done it before
		}
		for _, added := range sites {
			if failed[added.Resource] != nil {
				continue
			}
			if err := s.mount(t, added); err != nil {
				// A part of its paths may be mounted: begin again without it.
				failed[added.Resource], ok = err, false
				break
			}
		}
		if ok {
			s.now.Store(t)
			return failed
		}
	}
}

// mount adds a site to a table that is not used yet.
func (s *Sites) mount(t *table, added Site) (err error) {
	u, err := url.Parse(added.Resource)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	host := site(u.Host)
	for _, address := range append(added.Guard.Resources(), added.Resource) {
		if u, err := url.Parse(address); host == s.home && (err != nil || s.taken(u)) {
			return fmt.Errorf("gateway: the path of %s is the authorization server's own", address)
		}
	}
	mux := t.muxes[host]
	if mux == nil {
		mux = http.NewServeMux()
		if t.muxes[host] = mux; host == s.home {
			mux.Handle("/", s.main)
		}
	}
	defer func() {
		if recover() != nil { // ServeMux panics if a pattern is taken
			err = fmt.Errorf("gateway: another MCP server is at the path of %s, or of one of its aliases", added.Resource)
		}
	}()
	added.Guard.Register(mux, added.Server)
	if u.Scheme == "https" {
		t.secure[host] = true
	}
	t.servers = append(t.servers, added)
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
	if host == s.home && s.mayChange(r.URL) {
		s.refresh(r.Context())
	}
	t := s.now.Load()
	if mux, ok := t.muxes[host]; ok {
		if t.secure[host] {
			w.Header().Set("Strict-Transport-Security", wire.StrictTransportSecurity)
		}
		mux.ServeHTTP(w, r)
		return
	}
	s.main.ServeHTTP(w, r)
}

// mayChange reports whether a path may be that of an MCP server of Replace, or of its metadata.
func (s *Sites) mayChange(u *url.URL) bool {
	return strings.HasPrefix(u.Path, "/.well-known/") || !s.taken(u)
}

func (s *Sites) refresh(ctx context.Context) {
	if s.Refresh != nil {
		s.Refresh(ctx)
	}
}

// Run maintains every server of Add until ctx ends.
func (s *Sites) Run(ctx context.Context) {
	for _, fixed := range s.fixed {
		go fixed.Server.Run(ctx)
	}
	<-ctx.Done()
}

// Try contacts every server once and calls report with each error. Each server has one minute to
// answer.
func (s *Sites) Try(ctx context.Context, report func(resource string, err error)) {
	for _, tried := range s.now.Load().servers {
		brief, cancel := context.WithTimeout(ctx, s.patience)
		_, err := tried.Server.Try(brief)
		cancel()
		if err != nil && ctx.Err() == nil {
			report(tried.Resource, err)
		}
	}
}

// Close closes every server of Add.
func (s *Sites) Close() error {
	for _, fixed := range s.fixed {
		_ = fixed.Server.Close() // a server that has already ended needs no closing
	}
	return nil
}

// stateTime is how long Readyz waits for the MCP servers. Probes often give up after a few seconds.
const stateTime = time.Second

// states asks all MCP servers at once whether they are up. One that does not answer in time counts
// as down. Its check continues, and the next request finds the result.
func (s *Sites) states(ctx context.Context) map[string]string {
	servers := s.now.Load().servers
	out, up := map[string]string{}, make(chan string, len(servers))
	lasting := context.WithoutCancel(ctx)
	for _, checked := range servers {
		out[checked.Resource] = "down"
		go func() {
			state := ""
			if checked.Server.Check(lasting) == nil {
				state = checked.Resource
			}
			up <- state
		}()
	}
	ctx, cancel := context.WithTimeout(ctx, stateTime)
	defer cancel()
	for range servers {
		select {
		case resource := <-up:
			if resource != "" {
				out[resource] = "up"
			}
		case <-ctx.Done():
			return out
		}
	}
	return out
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
		s.refresh(r.Context())
		upstreams := s.states(r.Context())
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
