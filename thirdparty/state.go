package thirdparty

import (
	"context"
	"time"
)

// ProviderState is a provider as it is configured, and how it has answered this process lately.
type ProviderState struct {
	ID, Name, Type string
	// Issuer is that of its tokens, or where its product is installed, or its token endpoint.
	Issuer      string
	RedirectURI string
	Domains     []string
	CheckEvery  time.Duration
	Detached    bool
	// Unanswered: questions about sessions stay without an answer. Resting: so many that it is left
	// alone for a while.
	Unanswered, Resting bool
}

// States says of each provider how it is, in the order of the configuration. It asks none.
func (d *Delegation) States() []ProviderState {
	out := make([]ProviderState, 0, len(d.connectors))
	for _, c := range d.connectors {
		v := ProviderState{
			ID: c.ID, Name: c.Name, Type: c.Type, Issuer: c.source(), RedirectURI: c.redirectURI(), Domains: c.Domains,
			CheckEvery: c.CheckEvery, Detached: c.Detached,
		}
		v.Unanswered, v.Resting = d.health[c.ID].State(d.now())
		out = append(out, v)
	}
	return out
}

// ProbeOne is Probe of one provider; there is none with another id.
func (d *Delegation) ProbeOne(ctx context.Context, id string) ProbeResult {
	c := d.byID[id]
	if c == nil {
		return ProbeResult{Connector: id}
	}
	return c.examine(ctx)
}
