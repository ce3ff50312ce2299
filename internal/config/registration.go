package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Registration configures dynamic client registration (RFC 7591).
type Registration struct {
	Enabled           bool     `yaml:"enabled"`
	RatePerMinute     int      `yaml:"rate_per_minute"`
	PrivateUseSchemes []string `yaml:"private_use_schemes"`
	DottedSchemes     bool     `yaml:"dotted_schemes"`
	// ClientIDMetadataDocuments accepts clients whose ID is the https URL of a document that
	// describes them.
	ClientIDMetadataDocuments bool `yaml:"client_id_metadata_documents"`
	// DocumentsAllow and DocumentsDeny list hosts, *.domains or URLs of such documents that are
	// trusted or refused. DocumentsOthers decides about the others: ask shows a warning; allow and
	// deny are also possible.
	DocumentsAllow  []string `yaml:"documents_allow"`
	DocumentsDeny   []string `yaml:"documents_deny"`
	DocumentsOthers string   `yaml:"documents_others"`
	// DocumentsRedirects allows redirect URIs that a client's document lacks.
	DocumentsRedirects []DocumentRedirects `yaml:"documents_redirects"`
	// DocumentsProxy is the http or https URL of the outbound proxy for fetching them.
	DocumentsProxy Secret `yaml:"documents_proxy"`
	// InsecureLoopbackDocuments accepts such documents from this machine, for development.
	InsecureLoopbackDocuments bool `yaml:"insecure_loopback_documents"`
	// SharedNetworks lists networks that a hosted client uses for all its users. Their rate is
	// twenty times as high.
	SharedNetworks []string `yaml:"shared_networks"`
	// MachineClients lets clients register themselves for client_credentials. Anyone who reaches
	// the server can then get a token without a user.
	MachineClients bool `yaml:"machine_clients"`
	// UnusedTTL and IdleTTL say when a client that registered itself is deleted. UnusedTTL applies
	// if it was never used to sign in, IdleTTL if it has no grant and is no longer used.
	UnusedTTL Duration `yaml:"unused_ttl"`
	IdleTTL   Duration `yaml:"idle_ttl"`
	// PublicClients can be turned off to require a secret from every registered client.
	PublicClients bool `yaml:"public_clients"`
}

// DocumentRedirects lists redirect URIs that the client of one metadata document may use in
// addition to those in the document.
type DocumentRedirects struct {
	ClientID     string   `yaml:"client_id"`
	RedirectURIs []string `yaml:"redirect_uris"`
}

func defaultRegistration() Registration {
	return Registration{
		Enabled: true, PublicClients: true, RatePerMinute: dcr.DefaultPerMinute,
		PrivateUseSchemes:         slices.Clone(oauth.DesktopSchemes),
		ClientIDMetadataDocuments: true, DocumentsAllow: slices.Clone(dcr.KnownDocuments),
		DocumentsOthers: string(dcr.TrustAsk),
		SharedNetworks:  prefixes(dcr.SharedNetworks), UnusedTTL: Duration(authserver.DefaultClientUnusedTTL),
		IdleTTL: Duration(authserver.DefaultClientIdleTTL),
	}
}

func prefixes(in []netip.Prefix) (out []string) {
	for _, p := range in {
		out = append(out, p.String())
	}
	return out
}

// Limits returns the limits on registrations. Validate has checked the networks.
func (r Registration) Limits() dcr.Limits {
	l := dcr.Limits{PerMinute: float64(r.RatePerMinute), Burst: 2 * r.RatePerMinute}
	for _, s := range r.SharedNetworks {
		if p, err := parseNetwork(s); err == nil {
			l.Shared = append(l.Shared, p)
		}
	}
	return l
}

// Documents returns the policy for client metadata documents. Validate has checked the proxy.
func (r Registration) Documents() dcr.Documents {
	d := dcr.Documents{
		Enabled: r.ClientIDMetadataDocuments, InsecureLoopback: r.InsecureLoopbackDocuments,
		Trust: dcr.TrustPolicy{Allow: r.DocumentsAllow, Deny: r.DocumentsDeny, Others: dcr.Trust(r.DocumentsOthers)},
	}
	for _, more := range r.DocumentsRedirects {
		if d.Redirects == nil {
			d.Redirects = map[string][]string{}
		}
		d.Redirects[more.ClientID] = append(d.Redirects[more.ClientID], more.RedirectURIs...)
	}
	if r.DocumentsProxy != "" {
		d.Proxy, _ = proxyURL(string(r.DocumentsProxy))
	}
	return d
}

func proxyURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		// never repeat the URL, which may contain a password
		return nil, fmt.Errorf("it is not a URL such as http://proxy.example.com:3128")
	}
	return u, nil
}

func (r Registration) validate(add func(string, string, ...any)) {
	if r.RatePerMinute < 1 { // its receiver takes 0 for the default
		add("registration.rate_per_minute",
			"%d is not at least 1; to turn registration off, set registration.enabled to false", r.RatePerMinute)
	}
	for i, s := range r.SharedNetworks {
		if _, err := parseNetwork(s); err != nil {
			add(fmt.Sprintf("registration.shared_networks[%d]", i), "%q is not a network such as 192.0.2.0/24", s)
		}
	}
	for key, p := range map[string]dcr.TrustPolicy{
		"allow": {Allow: r.DocumentsAllow}, "deny": {Deny: r.DocumentsDeny},
		"others": {Others: dcr.Trust(r.DocumentsOthers)},
	} {
		if err := p.Check(); err != nil {
			add("registration.documents_"+key, "%v", err)
		}
	}
	for i, more := range r.DocumentsRedirects {
		key := fmt.Sprintf("registration.documents_redirects[%d]", i)
		if len(more.RedirectURIs) == 0 {
			add(key, "redirect_uris are missing")
		}
		for j, uri := range more.RedirectURIs {
			if err := dcr.CheckDocumentRedirect(more.ClientID, uri); err != nil {
				add(fmt.Sprintf("%s.redirect_uris[%d]", key, j), "%v", err)
			}
		}
	}
	if r.DocumentsProxy != "" {
		if _, err := proxyURL(string(r.DocumentsProxy)); err != nil {
			add("registration.documents_proxy", "%v", err)
		}
	}
	const year = 365 * 24 * time.Hour
	checkBetween(add, "registration.unused_ttl", r.UnusedTTL, time.Hour, 10*year)
	checkBetween(add, "registration.idle_ttl", r.IdleTTL, 24*time.Hour, 10*year)
}

// RedirectPolicy returns the redirect URIs that an administrator's client may use.
func (c *Config) RedirectPolicy() oauth.RedirectPolicy {
	return oauth.RedirectPolicy{PrivateUseSchemes: c.Registration.PrivateUseSchemes, DottedSchemes: true}
}
