package authserver

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// ownHost serves pages only for the host of the issuer and on loopback. Otherwise a page of another
// host whose name resolves to this server could guess passwords in the browser that shows it (DNS
// rebinding).
func (p *pageHandlers) ownHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.paths.isOwnHost(r.Host) {
			p.errors.foreignHost(w, r, http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (p paths) isOwnHost(host string) bool {
	name := network.Hostname(host)
	return name != "" && name == p.host || oauth.IsLoopbackHost(name)
}

// isIssuerHost is isOwnHost without loopback, unless the issuer itself is on loopback. It is used
// to tell MCP servers apart: a tunnel that sends the local name reaches none of them.
func (p paths) isIssuerHost(host string) bool {
	return p.isOwnHost(host) && (network.Hostname(host) == p.host || oauth.IsLoopbackHost(p.host))
}

// foreignHost answers a request for an unknown host, and logs it for the operator.
func (p *errorPages) foreignHost(w http.ResponseWriter, r *http.Request, status int) {
	host := form.Cut(r.Host, maxHost)
	p.hosts.tell(r, host)
	cause := attempt.CauseHost.Because(fmt.Errorf("it was for the host %q, and the issuer is %s", host, p.hosts.issuer))
	p.misfitBecause(w, r, status, pages.Error{
		Title: pages.Say("error.host_title"), Message: pages.Say("error.host_message", "host", host),
		Advice: pages.Say("error.host_advice", "address", p.hosts.issuer),
	}, cause)
}

const (
	maxHost = 100 // bytes of a host in the log and on a page
	// maxForeign limits how many unknown hosts are logged in each foreignEvery, because anyone can
	// invent them.
	maxForeign   = 8
	foreignEvery = time.Hour
)

// foreignHosts logs warnings about unknown hosts: often a tunnel or a proxy has a name that is not
// configured, or replaces the Host header.
type foreignHosts struct {
	issuer string
	log    *slog.Logger
	now    func() time.Time

	mu    sync.Mutex // guards the fields below
	told  map[string]bool
	since time.Time // when told was cleared
}

func (f *foreignHosts) tell(r *http.Request, host string) {
	f.mu.Lock()
	if now := f.now(); now.Sub(f.since) >= foreignEvery {
		clear(f.told)
		f.since = now
	}
	known := f.told[host] || len(f.told) >= maxForeign
	if !known {
		f.told[host] = true
	}
	f.mu.Unlock()
	if !known {
		f.log.WarnContext(r.Context(), "requests come for a host that is not served: set issuer (--url of protect and "+
			"demo) to the address that people use, and let a proxy in front pass the Host header on unchanged",
			"host", host, "issuer", f.issuer)
	}
}
