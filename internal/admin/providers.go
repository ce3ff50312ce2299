package admin

import (
	"context"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// Provider is a configured identity provider.
type Provider struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Issuer      string   `json:"issuer,omitempty" jsonschema:"or the address where the product is installed"`
	Domains     []string `json:"domains,omitempty" jsonschema:"users with a mail address in one of these domains are sent there"`
	RedirectURI string   `json:"redirect_uri" jsonschema:"must be registered at the provider exactly like this"`
	CheckEvery  string   `json:"check_every,omitempty" jsonschema:"how often sessions are checked there"`
	Detached    bool     `json:"detached,omitempty" jsonschema:"sign-ins do not end with the session there"`
	// The following fields are the observations of the answering server, or of the command that has
	// direct database access. Other replicas may have observed something else.
	Unanswered bool `json:"unanswered,omitempty" jsonschema:"it does not answer this server about sessions"`
	Resting    bool `json:"resting,omitempty" jsonschema:"so often that this server leaves it alone for a while"`

	MetadataReadAt time.Time `json:"metadata_read_at,omitzero" jsonschema:"when this server last read its metadata"`
	MetadataNextAt time.Time `json:"metadata_next_at,omitzero" jsonschema:"from this time on, the next use reads them again"`
	KeysReadAt     time.Time `json:"keys_read_at,omitzero" jsonschema:"when this server last read its keys; it reads them again for a token with an unknown key"`
	FailedAt       time.Time `json:"failed_at,omitzero" jsonschema:"when metadata or keys last could not be read"`
	Failed         string    `json:"failed,omitempty" jsonschema:"which of them, and how"`
}

// ProviderDetails describes a provider and its current responses.
type ProviderDetails struct {
	Provider
	LogoutURI string         `json:"logout_uri,omitempty" jsonschema:"for back-channel logout, where the provider offers it"`
	OK        bool           `json:"ok" jsonschema:"users can sign in there, as far as this server can check"`
	Findings  []ProviderFact `json:"findings" jsonschema:"results of this check"`
	TookMS    int64          `json:"took_ms" jsonschema:"duration of the check"`
}

// ProviderFact is the result of one check of a provider.
type ProviderFact struct {
	Level  string `json:"level" jsonschema:"ok, warning or problem"`
	What   string `json:"what"`
	Advice string `json:"advice,omitempty"`
}

// ProviderID names a provider.
type ProviderID struct {
	ID string `json:"id" jsonschema:"the id of the provider, under thirdparty"`
}

// Operations on identity providers.
var (
	ProviderList = define(Spec{
		Name: "provider list", Method: "GET", Path: "/providers", Roles: reading, Summary: "List identity providers",
		Details: "Lists the configured identity providers (thirdparty), with the redirect URI to register at each.",
	}, (*Service).listProviders)
	ProviderShow = define(Spec{
		Name: "provider show", Method: "GET", Path: "/providers/{id}", Roles: reading,
		Summary: "Check whether users can sign in at an identity provider",
		Details: "Checks an identity provider: asks for its metadata and keys, and whether it accepts this server's\n" +
			"credentials. Shows the findings, with advice. It signs nobody in and changes nothing.",
	}, (*Service).showProvider)
)

func providerOf(p thirdparty.ProviderState) Provider {
	v := Provider{
		ID: p.ID, Name: p.Name, Type: p.Type, Issuer: p.Issuer, Domains: p.Domains, RedirectURI: p.RedirectURI,
		Detached: p.Detached, Unanswered: p.Unanswered, Resting: p.Resting,
		MetadataReadAt: p.MetadataAt, MetadataNextAt: p.MetadataNext, KeysReadAt: p.KeysAt,
		FailedAt: p.FailedAt, Failed: p.Failed,
	}
	if !p.Detached && p.CheckEvery > 0 {
		v.CheckEvery = p.CheckEvery.String()
	}
	return v
}

func (s *Service) listProviders(context.Context, None) (Page[Provider], error) {
	d, err := s.Delegation()
	if err != nil {
		return Page[Provider]{}, err
	}
	out := []Provider{}
	for _, p := range d.States() {
		out = append(out, providerOf(p))
	}
	return Page[Provider]{Items: out}, nil
}

// probeTime limits how long a provider is checked.
const probeTime = 20 * time.Second

func (s *Service) showProvider(ctx context.Context, in ProviderID) (ProviderDetails, error) {
	d, err := s.Delegation()
	if err != nil {
		return ProviderDetails{}, err
	}
	known := func(p thirdparty.ProviderState) bool { return p.ID == in.ID }
	if !slices.ContainsFunc(d.States(), known) {
		return ProviderDetails{}, fault(ErrNotFound, "there is no provider %q; see: mcp-authd provider list", in.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	began := s.Now()
	found := d.ProbeOne(ctx, in.ID)
	took := s.Now().Sub(began)
	states := d.States() // includes the metadata and keys just read
	out := ProviderDetails{
		Provider:  providerOf(states[slices.IndexFunc(states, known)]),
		LogoutURI: found.LogoutURI,
		OK:        found.Healthy(),
		Findings:  []ProviderFact{},
		TookMS:    took.Milliseconds(),
	}
	for _, f := range found.Findings {
		out.Findings = append(out.Findings, ProviderFact{string(f.Verdict), f.What, f.Advice})
	}
	return out, nil
}
