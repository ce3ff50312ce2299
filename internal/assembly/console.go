package assembly

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/admin/console"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// console enables the console, and returns the notifier for its changes, or nil if there is no
// console. The server's housekeeping marks the grants that are revoked there.
func (p Parts) console(cfg *authserver.Config, d *thirdparty.Delegation) (*notice.Notifier, error) {
	c := p.Config.Console
	if !c.Enabled {
		return nil, nil
	}
	notifier, err := p.Notifier()
	if err != nil {
		return nil, err
	}
	service, err := p.Admin(notifier)
	if err != nil {
		return nil, err
	}
	service.Delegation, service.Registry = p.asking(d), p.reading(cfg.Registry)
	ring, err := secrets.NewRing(p.Keys...)
	if err != nil {
		return nil, err
	}
	cfg.ConsoleApart = c.Listen == config.ConsoleManagement
	cfg.Console = func(v *authserver.Visitors) http.Handler {
		return console.New(console.Config{
			Visitors: v, As: service.As, May: service.May, FreshFor: service.FreshFor, Requests: p.Store, Ring: ring,
			Log: p.Log, Now: p.Now,
		})
	}
	return notifier, nil
}

// reading returns the server's registry, which knows the documents that it has read, or else a new
// one.
func (p Parts) reading(clients authserver.Clients) func() (*dcr.Registry, error) {
	r, ok := clients.(*dcr.Registry)
	if !ok {
		return p.Registry
	}
	return func() (*dcr.Registry, error) { return r, nil }
}

// asking returns the server's delegation, which knows how providers have responded, or else a
// read-only one.
func (p Parts) asking(d *thirdparty.Delegation) func() (*thirdparty.Delegation, error) {
	if d == nil {
		return p.Delegation
	}
	return func() (*thirdparty.Delegation, error) { return d, nil }
}
