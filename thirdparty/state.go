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
	// MetadataAt and KeysAt are when this process last read them, and MetadataNext from when on the metadata
	// are read again when they are needed. Zero: not yet, or the provider has none.
	MetadataAt, MetadataNext, KeysAt time.Time
	// FailedAt is when one of them last could not be read, and Failed why, in words of ours.
	FailedAt time.Time
	Failed   string
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
		r := c.Reads()
		v.MetadataAt, v.MetadataNext, v.KeysAt, v.FailedAt, v.Failed = r.Metadata, r.Renew, r.Keys, r.Failed, r.Why
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
