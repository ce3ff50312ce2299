package assembly

import "github.com/mcp-authd/mcp-authd/trust"

// Issuers are the issuers that are trusted: those of the configuration, and of the store if there is one.
func (p Parts) Issuers(issuer string) (*trust.Issuers, error) {
	o := trust.Options{Issuer: issuer, Entries: p.Config.TrustEntries(), Now: p.Now, Log: p.Log}
	if p.Store != nil {
		o.Store = p.Store
	}
	return trust.New(o)
}
