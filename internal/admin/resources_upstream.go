package admin

import (
	"context"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Limits of stored MCP servers behind the gateway.
const (
	maxUpstream  = 2000 // bytes
	maxToolRules = 100
	maxGatewayed = 100 // MCP servers
)

// NoUpstream as an upstream takes an MCP server from the gateway.
const NoUpstream = "none"

// applyUpstream applies the upstream and the tool rules of a change to a record.
func (c ResourceChange) applyUpstream(r *storage.Resource) {
	switch c.Upstream {
	case "":
	case NoUpstream:
		r.Upstream, r.ToolRules = "", nil
	default:
		r.Upstream = c.Upstream
	}
	if c.ToolRules != nil {
		r.ToolRules = slices.Clone(c.ToolRules)
	}
}

// checkUpstream returns an error unless the gateway can serve a record with these settings. It
// accepts only URLs: a command would let an administrator run programs on this machine.
func (s *Service) checkUpstream(ctx context.Context, r storage.Resource) error {
	if err := checkToolRules(r); err != nil || r.Upstream == "" {
		return err
	}
	if err := checkUpstreamURL(r.Upstream); err != nil {
		return err
	}
	if err := config.StoredResource(r).CheckUpstream(); err != nil {
		return fault(ErrInvalid, "%v", err)
	}
	for _, uri := range append(slices.Clone(r.Aliases), r.URI) {
		if err := s.checkPlace(uri); err != nil {
			return err
		}
	}
	stored, err := s.Store.ListResources(ctx)
	if err != nil {
		return err
	}
	others := 0
	for _, other := range stored {
		if other.Upstream != "" && other.URI != r.URI {
			others++
		}
	}
	if others >= maxGatewayed {
		return fault(ErrConflict, "the database has %d MCP servers behind the gateway, which is the limit; the "+
			"configuration file can have more", others)
	}
	return nil
}

func checkToolRules(r storage.Resource) error {
	switch {
	case len(r.ToolRules) == 0:
		return nil
	case r.Upstream == "":
		return fault(ErrInvalid, "tool rules need an upstream: the gateway checks them")
	case len(r.ToolRules) > maxToolRules:
		return fault(ErrInvalid, "a resource has %d tool rules at most", maxToolRules)
	}
	for _, t := range r.ToolRules {
		if len(t.Name) > maxResourceName || len(t.Scopes) > maxScopes {
			return fault(ErrInvalid, "a tool rule has a name of %d bytes at most, and %d scopes", maxResourceName, maxScopes)
		}
	}
	return nil
}

// checkUpstreamURL checks the URL of an MCP server. It repeats no URL, which may contain a password
// (SP-28). The gateway checks the addresses of a name when it connects.
func checkUpstreamURL(raw string) error {
	if len(raw) > maxUpstream {
		return fault(ErrInvalid, "the upstream has more than %d bytes", maxUpstream)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fault(ErrInvalid, "the upstream must be a URL such as http://127.0.0.1:3000/mcp; programs and other "+
			"kinds of servers are for the configuration file")
	}
	if u.User != nil || strings.ContainsAny(raw, "?#") {
		return fault(ErrInvalid, "the upstream must have no name, password, query or fragment; the configuration file can "+
			"have credentials for it")
	}
	if _, err := oauth.CanonicalResource(raw); err != nil {
		return fault(ErrInvalid, "the upstream must be a URL such as http://127.0.0.1:3000/mcp")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil // a name
	}
	network := "tcp4"
	if ip.Is6() {
		network = "tcp6"
	}
	if safehttp.Internal(network, netip.AddrPortFrom(ip, 80).String(), nil) != nil {
		return fault(ErrInvalid, "the upstream must not be at %s, which is link-local, a metadata service or otherwise "+
			"special; the configuration file permits any address", ip)
	}
	return nil
}

// checkPlace returns an error unless the gateway can serve an MCP server at uri: at the origin of
// the issuer, and at none of its own paths.
func (s *Service) checkPlace(uri string) error {
	issuer := policy.Canonical(s.Config.Issuer)
	if oauth.ResourceOrigin(uri) != oauth.ResourceOrigin(issuer) {
		return fault(ErrInvalid, "%s must be at %s to be behind the gateway; the configuration file can have other hosts",
			uri, oauth.ResourceOrigin(issuer))
	}
	u, err := url.Parse(uri)
	if err != nil || u.RawQuery != "" || u.Path != "" && path.Clean(u.Path) != u.Path {
		return fault(ErrInvalid, "%s must have a plain path and no query to be behind the gateway", uri)
	}
	below := ""
	if i, err := url.Parse(issuer); err == nil {
		below = i.Path
	}
	if ownPath(u.Path, "") || ownPath(u.Path, below) {
		return fault(ErrConflict, "the path of %s belongs to this server itself; nothing was changed", uri)
	}
	return nil
}

// ownSegments lists the first segments of the paths of this server. The gateway checks the whole
// paths again.
var ownSegments = strings.Fields(`.well-known account admin api assets authorize callback choose claim clearance
	connect consent debug depart device device_authorization disconnect events favicon.ico healthz introspect jwks.json
	language link login logout metrics par paused prove readyz register reports revoke robots.txt setup status token`)

// ownPath reports whether a path is, below a prefix, one of this server.
func ownPath(p, prefix string) bool {
	if strings.TrimSuffix(p, "/") == prefix {
		return true // the home page
	}
	rest, ok := strings.CutPrefix(p, prefix+"/")
	first, _, _ := strings.Cut(rest, "/")
	return ok && (slices.Contains(ownSegments, first) || rest == "mcp/admin" || strings.HasPrefix(rest, "mcp/admin/"))
}
