package storage

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// TrustKind is what the assertions of an issuer are.
type TrustKind string

// The kinds of trust entries.
const (
	// TrustEnterprise is for assertions about people, made by the identity provider of their
	// company (ID-JAG).
	TrustEnterprise TrustKind = "enterprise"
	// TrustWorkload is for assertions about programs, made by the platform that runs them.
	TrustWorkload TrustKind = "workload"
)

// TrustEntry says which assertions of an issuer are believed, and for what (AS-235).
type TrustEntry struct {
	ID     string
	Kind   TrustKind // "": it only marks an entry of the configuration as disabled
	Issuer string    // iss, byte for byte
	TrustRules
	CreatedAt  time.Time
	DisabledAt time.Time // zero: it is not
	Config     bool      // of the configuration, and not of the store
	// Unreadable: a newer version wrote rules that this one does not know. It believes nothing by it.
	Unreadable bool
}

// MaxTrustTTL is the longest that an assertion may be valid, by any entry.
const MaxTrustTTL = 24 * time.Hour

// Mark reports whether the entry is only a mark that one of the configuration is disabled.
func (e TrustEntry) Mark() bool { return e.Kind == "" }

// TrustRules are the rules of an entry, as an operator writes them. What is empty is as the preset
// has it, or else as the field says.
type TrustRules struct {
	// Preset names a known kind of issuer, and Parameters narrow it.
	Preset     string            `json:"preset,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	// The keys of the issuer: at a URL, in a file, or here as a JSON Web Key Set. Else they are found
	// by the metadata of the issuer.
	JWKSURL  string `json:"jwks_url,omitempty"`
	JWKSFile string `json:"jwks_file,omitempty"`
	JWKS     string `json:"jwks,omitempty"`
	// CAFile and TokenFile are how a Kubernetes cluster is asked for its keys: the certificates by which
	// it is known, and the token that it wants to see.
	CAFile    string `json:"ca_file,omitempty"`
	TokenFile string `json:"token_file,omitempty"`
	// Networks are private ones in which the keys may be fetched.
	Networks []string `json:"networks,omitempty"`
	// AudienceAliases are further values of aud that mean this server.
	AudienceAliases []string `json:"audience_aliases,omitempty"`
	// Match has the rules about claims: each of them has to hold.
	Match []TrustMatch `json:"match,omitempty"`
	// Resources and Scopes are what tokens may be for; empty: the entry sets no limit.
	Resources []string     `json:"resources,omitempty"`
	Scopes    oauth.Scopes `json:"scopes,omitempty"`
	// MaxTTL is how long an assertion may be valid, and how long a token that is issued for it.
	MaxTTL time.Duration `json:"max_ttl,omitempty"`
	// Subject is the template of the name of a workload.
	Subject string `json:"subject,omitempty"`
	// CreatePeople: a person who is not known gets an account.
	CreatePeople bool `json:"create_people,omitempty"`
	// EmailDomains are those whose addresses the issuer may speak for.
	EmailDomains []string `json:"email_domains,omitempty"`
	// SAMLIssuers are the issuers of SAML subjects that the issuer may name.
	SAMLIssuers []string `json:"saml_issuers,omitempty"`
	// Resubmit: an assertion may be used again until it expires.
	Resubmit bool `json:"resubmit,omitempty"`
	// RequireJTI: an assertion needs an id. Nil: as the preset has it, or else true.
	RequireJTI *bool `json:"require_jti,omitempty"`
	// AllowPublic: a client without credentials may present assertions.
	AllowPublic bool `json:"allow_public,omitempty"`
	// EventAudience is what security event tokens of the issuer are for; empty: none are believed.
	EventAudience []string `json:"event_audience,omitempty"`
}

// TrustMatch is a rule about a claim, or an expression over all claims: exactly one of Equals, Glob and
// Expression is set.
type TrustMatch struct {
	Claim      string `json:"claim,omitempty"`
	Equals     string `json:"equals,omitempty"`
	Glob       string `json:"glob,omitempty"`
	Expression string `json:"expression,omitempty"`
}

// TrustEntries holds the issuers that were trusted at run time, and which entries are disabled.
type TrustEntries interface {
	// AddTrust stores an entry. ErrExists when its id is taken, also by a mark: of N that are added with
	// one id at once, one is stored.
	AddTrust(ctx context.Context, e TrustEntry) error
	// ListTrust returns all entries and marks, oldest first.
	ListTrust(ctx context.Context) ([]TrustEntry, error)
	// DisableTrust disables an entry. Where none is stored, it stores a mark, for the entry of the
	// configuration with that id. One that is disabled stays as it is. It cuts every grant that rests on
	// the entry, as Cuts says.
	DisableTrust(ctx context.Context, id string, now time.Time) error
	// EnableTrust enables an entry again, or forgets a mark. ErrNotFound when there is neither.
	EnableTrust(ctx context.Context, id string) error
	// RemoveTrust removes an entry or a mark, and cuts every grant that rests on it. ErrNotFound when there
	// is neither.
	RemoveTrust(ctx context.Context, id string, now time.Time) error
}
