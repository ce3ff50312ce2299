package assembly

import (
	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/secevent"
	"github.com/mcp-authd/mcp-authd/internal/trust"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// Issuers returns the trusted issuers of the configuration and of the store, if there is one.
func (p Parts) Issuers(issuer string) (*trust.Issuers, error) {
	o := trust.Options{Issuer: issuer, Entries: p.Config.TrustEntries(), Now: p.Now, Log: p.Log}
	if p.Store != nil {
		o.Store = p.Store
	}
	return trust.New(o)
}

// trust makes the authorization server accept assertions and security events of trusted issuers,
// and security events of providers. An entry for events can be added at any time, so the endpoint
// always exists.
func (p Parts) trust(cfg *authserver.Config, d *thirdparty.Delegation) error {
	issuers, err := p.Issuers(p.Config.Issuer)
	if err != nil {
		return err
	}
	sources := []secevent.Sources{trust.NewEvents(issuers, p.Store)}
	if d != nil {
		sources = append(sources, d)
	}
	cfg.Trust, cfg.SecurityEvents = issuers, secevent.NewReceiver(p.Log, p.Audit, p.Now, sources...)
	return nil
}
