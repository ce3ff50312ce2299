package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// ClientDetails describes a client, the policy that applies to it, and its metadata document.
type ClientDetails struct {
	Client
	Policy ClientRule `json:"policy"`
	// LastRead starts with the prefix of fields that change by themselves, so that proposals do not
	// depend on it.
	LastRead ClientDocument `json:"last_read,omitzero" jsonschema:"its metadata document, as this server has read it"`
}

// ClientRule is the configured policy for one client.
type ClientRule struct {
	Trust   string `json:"trust" jsonschema:"allow, ask or deny"`
	Rule    string `json:"rule" jsonschema:"the configured rule that decides"`
	Consent string `json:"consent" jsonschema:"the question to users before it gets access"`
}

// ClientDocument is a client metadata document as last read. Text is written by its publisher and
// is untrusted.
type ClientDocument struct {
	URL         string    `json:"url"`
	ReadAt      time.Time `json:"read_at,omitzero"`
	ReadAgainAt time.Time `json:"read_again_at,omitzero" jsonschema:"from this time on, the next use reads it again"`
	SHA256      string    `json:"sha256,omitempty" jsonschema:"digest of the document"`
	Size        int       `json:"size,omitempty" jsonschema:"size in bytes"`
	Problem     string    `json:"problem,omitempty" jsonschema:"why it cannot be used"`
	FailedAt    time.Time `json:"failed_at,omitzero" jsonschema:"time of the last failed read since then"`
	Failure     string    `json:"failure,omitempty"`
	Text        string    `json:"text,omitempty" jsonschema:"its first 8 KiB, without control characters"`
}

// ClientPolicy is the configured policy for clients that were not created by an administrator.
type ClientPolicy struct {
	Registration bool     `json:"registration" jsonschema:"clients may register themselves (registration.enabled)"`
	Public       bool     `json:"public_clients" jsonschema:"clients without a secret are accepted"`
	Machines     bool     `json:"machine_clients" jsonschema:"clients may register for access without a person"`
	PerMinute    int      `json:"rate_per_minute" jsonschema:"registrations of one network"`
	Schemes      []string `json:"private_use_schemes,omitempty" jsonschema:"of redirect URIs, beside https and loopback"`
	UnusedTTL    string   `json:"unused_ttl" jsonschema:"after which one that was never used is forgotten"`
	IdleTTL      string   `json:"idle_ttl" jsonschema:"after which one without a grant is forgotten"`
	Documents    bool     `json:"documents" jsonschema:"clients may be known by a metadata document"`
	// Hosts are the rules in the order of evaluation.
	Hosts     []HostRule              `json:"hosts"`
	Redirects []DocumentRedirectsRule `json:"documents_redirects,omitempty"`
}

// HostRule is the trust in metadata documents from a host or URL.
type HostRule struct {
	Pattern string `json:"pattern" jsonschema:"a host, a domain with *. in front, or a URL; all others are *"`
	Trust   string `json:"trust" jsonschema:"allow, ask or deny"`
	Key     string `json:"key" jsonschema:"the configuration key"`
}

// DocumentRedirectsRule lists redirect URIs that a client may use in addition to those in its
// document.
type DocumentRedirectsRule struct {
	ClientID     string   `json:"client_id"`
	RedirectURIs []string `json:"redirect_uris"`
}

// ClientPolicyShow shows the configured policy for clients.
var ClientPolicyShow = define(Spec{
	Name: "client policy", Method: "GET", Path: "/client-policy", Roles: reading,
	Summary: "Show which clients are accepted, and which hosts are trusted",
	Details: "Shows the configured rules for clients that register themselves or have a metadata document: whether\n" +
		"they are accepted, and how documents are treated by their host or URL. The first rule that matches\n" +
		"counts.",
}, (*Service).clientPolicy)

func (s *Service) clientPolicy(context.Context, None) (ClientPolicy, error) {
	r := s.Config.Registration
	p := ClientPolicy{
		Registration: r.Enabled, Public: r.PublicClients, Machines: r.MachineClients, PerMinute: r.RatePerMinute,
		Schemes: r.PrivateUseSchemes, UnusedTTL: r.UnusedTTL.String(), IdleTTL: r.IdleTTL.String(),
		Documents: r.ClientIDMetadataDocuments, Hosts: []HostRule{},
	}
	add := func(key string, trust dcr.Trust, patterns ...string) {
		for _, pattern := range patterns {
			p.Hosts = append(p.Hosts, HostRule{pattern, string(trust), "registration." + key})
		}
	}
	add("documents_deny", dcr.TrustDeny, r.DocumentsDeny...)
	add("documents_allow", dcr.TrustAllow, r.DocumentsAllow...)
	add("documents_others", cmp.Or(dcr.Trust(r.DocumentsOthers), dcr.TrustAsk), "*")
	for _, more := range r.DocumentsRedirects {
		p.Redirects = append(p.Redirects, DocumentRedirectsRule{more.ClientID, slices.Clone(more.RedirectURIs)})
	}
	return p, nil
}

func (s *Service) showClient(ctx context.Context, in ClientID) (ClientDetails, error) {
	c, err := s.ReadClient(ctx, in.ID)
	if err != nil {
		return ClientDetails{}, err
	}
	registry, err := s.Registry()
	if err != nil {
		return ClientDetails{}, err
	}
	out := ClientDetails{Policy: ruleOf(registry, c)}
	if d, ok := registry.Document(c.ID); ok {
		out.LastRead = ClientDocument{
			URL: d.URL, ReadAt: d.ReadAt, ReadAgainAt: d.ReadAgainAt, SHA256: d.SHA256, Size: d.Size,
			Problem: d.Problem, FailedAt: d.FailedAt, Failure: d.Failure, Text: d.Text,
		}
	}
	out.Client, err = s.viewClient(ctx, c, s.Names())
	return out, err
}

// What users are asked.
const (
	asksPlainly = "A person is asked to allow it."
	asksWarning = "A person is asked to allow it, and told that the operator does not vouch for it."
	asksNone    = "Nobody is asked: it acts for itself, within the scopes and MCP servers that it was given."
	asksNobody  = "Nobody is asked: the person who made it has allowed it."
	asksForNone = "It gets no access."
)

// ruleOf returns the rule that admits a client.
func ruleOf(registry *dcr.Registry, c storage.Client) ClientRule {
	consent := asksPlainly
	if !c.SignsIn() && len(c.RedirectURIs) == 0 && !slices.Contains(c.GrantTypes, oauth.GrantDeviceCode) {
		consent = asksNone
	}
	switch c.Source {
	case storage.SourceConfig:
		return ClientRule{"allow", "It is in the configuration (clients).", consent}
	case storage.SourceStatic:
		return ClientRule{"allow", "The operator has added it (client add).", consent}
	case storage.SourcePerson:
		return ClientRule{"allow", "A person has made it, as a key for a program (program_keys).", asksNobody}
	case storage.SourceCIMD:
		return documentRule(registry, c.ID)
	}
	rule := "It has registered itself (registration.enabled)."
	if !registry.OffersRegistration() {
		rule = "It has registered itself, while that was allowed; registration.enabled is false now."
	}
	return ClientRule{"ask", rule, asksWarning}
}

func documentRule(registry *dcr.Registry, id string) ClientRule {
	trust, pattern := registry.DocumentRule(id)
	rule := "No rule names the place of its document, so registration.documents_others counts."
	if pattern != "" {
		key := map[dcr.Trust]string{dcr.TrustAllow: "documents_allow", dcr.TrustDeny: "documents_deny"}[trust]
		rule = fmt.Sprintf("Its document is at a place of registration.%s: %s", key, pattern)
	}
	consent := map[dcr.Trust]string{
		dcr.TrustAllow: asksPlainly, dcr.TrustAsk: asksWarning, dcr.TrustDeny: asksForNone,
	}[trust]
	if !registry.OffersDocuments() {
		trust, consent = dcr.TrustDeny, asksForNone
		rule = "registration.client_id_metadata_documents is false: no client is known by a document."
	}
	return ClientRule{string(trust), rule, consent}
}
