package assembly

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// storedSites puts the stored MCP servers with an upstream behind guards. Administrators add and
// remove them while the server runs. Each replica reads the store when a request may be for such a
// server, at most every recent.TTL.
type storedSites struct {
	p     Parts
	as    *authserver.Server
	sites *gateway.Sites
	all   common
	read  recent.Value[struct{}]

	mu      sync.Mutex // guards the fields below
	live    map[string]*storedSite
	failed  map[string]string // the logged errors, by URI
	running context.Context   // nil before run
	closed  bool
}

// storedSite is a site with the record that it was built from.
type storedSite struct {
	record storage.Resource
	gateway.Site
	end context.CancelFunc // nil if it does not run
}

// storedSites adds the stored MCP servers to sites.
func (p Parts) storedSites(
	ctx context.Context, as *authserver.Server, sites *gateway.Sites, all common,
) (*storedSites, error) {
	p.stored = true
	all.proofs = dpop.NewMemory(p.Now)
	s := &storedSites{p: p, as: as, sites: sites, all: all, live: map[string]*storedSite{}, failed: map[string]string{}}
	s.read = recent.Value[struct{}]{Now: p.Now, Read: func(ctx context.Context) (struct{}, error) {
		// the request that reads may be of a client that hangs up, and the sites are for all
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recent.TTL)
		defer cancel()
		return struct{}{}, s.update(ctx)
	}}
	sites.Refresh = s.refresh
	_, err := s.read.Load(ctx)
	return s, err
}

// refresh brings the sites up to date. If the store fails, they stay: the guards fail then.
func (s *storedSites) refresh(ctx context.Context) { _, _ = s.read.Load(ctx) }

// update reads the store and replaces the sites that have changed.
func (s *storedSites) update(ctx context.Context) error {
	stored, err := s.p.Store.ListResources(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	wanted := map[string]storage.Resource{}
	for _, r := range stored {
		if r.Upstream != "" && !s.configured(r) {
			wanted[r.URI] = r
		}
	}
	var gone []*storedSite
	for uri, site := range s.live {
		if !reflect.DeepEqual(wanted[uri], site.record) {
			gone = append(gone, site)
			delete(s.live, uri)
		}
	}
	added := false
	for _, r := range stored {
		if _, ok := wanted[r.URI]; ok && s.live[r.URI] == nil {
			added = s.build(ctx, r) || added
		}
	}
	if added || len(gone) > 0 {
		s.serve(stored)
	}
	for _, site := range gone {
		s.stop(site)
	}
	for uri := range s.failed {
		if _, ok := wanted[uri]; !ok {
			delete(s.failed, uri)
		}
	}
	return nil
}

// configured reports whether the configuration has an MCP server at a URL of r. It takes
// precedence, as in policy.NewCatalogue.
func (s *storedSites) configured(r storage.Resource) bool {
	urls := append(slices.Clone(r.Aliases), r.URI)
	return slices.ContainsFunc(s.p.Config.Resources, func(c config.Resource) bool {
		return slices.ContainsFunc(append(slices.Clone(c.Aliases), c.URI), func(uri string) bool {
			return slices.Contains(urls, policy.Canonical(uri))
		})
	})
}

// build builds the site of a record, and reports whether it could. It logs a failure once.
func (s *storedSites) build(ctx context.Context, r storage.Resource) bool {
	if issuer := policy.Canonical(s.as.Issuer()); oauth.ResourceOrigin(r.URI) != oauth.ResourceOrigin(issuer) {
		s.fail(r.URI, fmt.Errorf("it is not at %s", oauth.ResourceOrigin(issuer)))
		return false
	}
	site, err := s.p.site(ctx, s.as, config.StoredResource(r), true, s.all)
	if err != nil {
		s.fail(r.URI, err)
		return false
	}
	s.live[r.URI] = &storedSite{record: r, Site: site}
	return true
}

// serve serves the live sites, in the order of the store. It drops those whose path is taken.
func (s *storedSites) serve(stored []storage.Resource) {
	var sites []gateway.Site
	for _, r := range stored {
		if site := s.live[r.URI]; site != nil {
			sites = append(sites, site.Site)
		}
	}
	failed := s.sites.Replace(sites)
	for uri, site := range s.live {
		if err := failed[uri]; err != nil {
			s.fail(uri, err)
			delete(s.live, uri)
			s.stop(site)
			continue
		}
		delete(s.failed, uri)
		s.start(site)
	}
}

func (s *storedSites) fail(uri string, err error) {
	if text := err.Error(); s.failed[uri] != text {
		s.failed[uri] = text
		s.p.Log.Warn("an MCP server of the database cannot be put behind the gateway", "resource", uri, "error", err)
	}
}

// start maintains the server of a site, once the gateway runs.
func (s *storedSites) start(site *storedSite) {
	if s.running == nil || site.end != nil {
		return
	}
	var ctx context.Context
	ctx, site.end = context.WithCancel(s.running)
	go site.Server.Run(ctx)
}

func (s *storedSites) stop(site *storedSite) {
	if site.end != nil {
		site.end()
	}
	_ = site.Server.Close() // closes idle connections
}

// run maintains the servers until ctx ends.
func (s *storedSites) run(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = ctx
	for _, site := range s.live {
		s.start(site)
	}
}

func (s *storedSites) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, site := range s.live {
		s.stop(site)
	}
}

// errManagement is the refusal to connect to a management listener of this server, which serves
// metrics and profiles without authentication.
var errManagement = errors.New("it is the management listener of this server")

// permits checks an address of a stored MCP server for net.Dialer.Control.
func (p Parts) permits(network, address string, conn syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if isManagement(p.Config.Management.Listen, to) {
		return errManagement
	}
	return safehttp.Internal(network, address, conn)
}

// isManagement reports whether an address may be the management listener at listen. A listener that other machines
// can reach has many addresses: each of this machine, and each of the other replicas. Then the port
// alone decides.
func isManagement(listen string, to netip.AddrPort) bool {
	host, port, _ := net.SplitHostPort(listen)
	if port != strconv.Itoa(int(to.Port())) {
		return false
	}
	here := func(a netip.Addr) bool { return a.Unmap().IsLoopback() || a.IsUnspecified() }
	listens, err := netip.ParseAddr(host)
	private := host == "localhost" || err == nil && listens.Unmap().IsLoopback()
	return !private || here(to.Addr())
}

// consistent is a validator without the list of the scopes that the authorization server knows. A
// guard with a record of the store needs no comparison, and that list may be seconds older.
type consistent struct {
	mcpresource.Validator
	mcpresource.Decisions
}
