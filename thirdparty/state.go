package thirdparty

import (
	"context"
	"time"
)

// ProviderState describes a configured provider and its recent answers to this process.
type ProviderState struct {
	ID, Name, Type string
	// Issuer is the issuer of its tokens, the location of its product, or its token endpoint.
	Issuer      string
	RedirectURI string
	Domains     []string
	CheckEvery  time.Duration
	Detached    bool
	// Unanswered means that questions about sessions currently get no answer. Resting means that so
	// many failed that the provider is not asked for a while.
	Unanswered, Resting bool
	// MetadataAt and KeysAt are when this process last read the metadata and keys. From
	// MetadataNext on, the next use reads the metadata again. Zero: not yet read, or the provider
	// has none.
	MetadataAt, MetadataNext, KeysAt time.Time
	// FailedAt is when reading one of them last failed, and Failed why, in this server's words.
	FailedAt time.Time
	Failed   string
}

// States returns the state of each provider, in the order of the configuration. It sends no
// request.
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

// ProbeOne is Probe for one provider. An unknown ID gives an empty result.
func (d *Delegation) ProbeOne(ctx context.Context, id string) ProbeResult {
	c := d.byID[id]
	if c == nil {
		return ProbeResult{Connector: id}
	}
	return c.examine(ctx)
}
