package storage

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// TrustKind is the kind of assertions of an issuer.
type TrustKind string

// The kinds of trusted issuers.
const (
	// TrustEnterprise is for assertions about users, made by the identity provider of their company
	// (ID-JAG).
	TrustEnterprise TrustKind = "enterprise"
	// TrustWorkload is for assertions about programs, made by the platform that runs them.
	TrustWorkload TrustKind = "workload"
)

// TrustEntry says which assertions of an issuer are accepted, and for what (AS-235).
type TrustEntry struct {
	ID     string
	Kind   TrustKind // "": it only marks an entry of the configuration as disabled
	Issuer string    // iss, byte for byte
	TrustRules
	CreatedAt  time.Time
	DisabledAt time.Time // zero: enabled
	Config     bool      // from the configuration, not from the store
	// Unreadable: a newer version wrote rules that this version does not know. It accepts no
	// assertions under this entry.
	Unreadable bool
}

// MaxTrustTTL is the longest lifetime of an assertion that an entry can allow.
const MaxTrustTTL = 24 * time.Hour

// Mark reports whether the entry only marks an entry of the configuration as disabled.
func (e TrustEntry) Mark() bool { return e.Kind == "" }

// TrustRules are the rules of an entry, as an administrator writes them. An empty field takes its
// value from the preset, or else the default that it documents.
type TrustRules struct {
	// Preset names a known kind of issuer, and Parameters narrow it.
	Preset     string            `json:"preset,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	// The keys of the issuer: at a URL, in a file, or here as a JSON Web Key Set. By default, the
	// issuer's metadata points to them.
	JWKSURL  string `json:"jwks_url,omitempty"`
	JWKSFile string `json:"jwks_file,omitempty"`
	JWKS     string `json:"jwks,omitempty"`
	// CAFile and TokenFile are for fetching the keys of a Kubernetes cluster: the CA certificates
	// that verify it, and the token that it requires.
	CAFile    string `json:"ca_file,omitempty"`
	TokenFile string `json:"token_file,omitempty"`
	// Networks are the private networks where keys may be fetched.
	Networks []string `json:"networks,omitempty"`
	// AudienceAliases are additional aud values that mean this server.
	AudienceAliases []string `json:"audience_aliases,omitempty"`
	// Match are the rules about claims. All must hold.
	Match []TrustMatch `json:"match,omitempty"`
	// Resources and Scopes limit the tokens; empty: the entry sets no limit.
	Resources []string     `json:"resources,omitempty"`
	Scopes    oauth.Scopes `json:"scopes,omitempty"`
	// MaxTTL is the longest lifetime of an assertion, and of a token issued for it.
	MaxTTL time.Duration `json:"max_ttl,omitempty"`
	// Subject is the template for the name of a workload.
	Subject string `json:"subject,omitempty"`
	// CreatePeople: an unknown user gets an account.
	CreatePeople bool `json:"create_people,omitempty"`
	// EmailDomains are the mail domains that the issuer may assert addresses in.
	EmailDomains []string `json:"email_domains,omitempty"`
	// SAMLIssuers are the issuers of SAML subjects that the issuer may name.
	SAMLIssuers []string `json:"saml_issuers,omitempty"`
	// Resubmit: an assertion may be used again until it expires.
	Resubmit bool `json:"resubmit,omitempty"`
	// RequireJTI: an assertion needs a jti. Nil: the preset's value, or else true.
	RequireJTI *bool `json:"require_jti,omitempty"`
	// AllowPublic: a client without credentials may present assertions.
	AllowPublic bool `json:"allow_public,omitempty"`
	// EventAudience is the required audience of the issuer's security event tokens; empty: all are
	// refused.
	EventAudience []string `json:"event_audience,omitempty"`
}

// TrustMatch is a rule about a claim, or an expression over all claims: exactly one of Equals, Glob
// and Expression is set.
type TrustMatch struct {
	Claim      string `json:"claim,omitempty"`
	Equals     string `json:"equals,omitempty"`
	Glob       string `json:"glob,omitempty"`
	Expression string `json:"expression,omitempty"`
}

// TrustEntries stores the issuers that were trusted at run time, and which entries are disabled.
type TrustEntries interface {
	// AddTrust stores an entry. It returns ErrExists if its id is taken, also by a mark. One of N
	// concurrent calls with the same id succeeds.
	AddTrust(ctx context.Context, e TrustEntry) error
	// ListTrust returns all entries and marks, oldest first.
	ListTrust(ctx context.Context) ([]TrustEntry, error)
	// DisableTrust disables an entry. If no entry is stored, it stores a mark for the entry of the
	// configuration with that id. It leaves a disabled entry unchanged. It cuts every grant that
	// depends on the entry, see Cuts.
	DisableTrust(ctx context.Context, id string, now time.Time) error
	// EnableTrust enables an entry again, or removes a mark. It returns ErrNotFound if there is
	// neither.
	EnableTrust(ctx context.Context, id string) error
	// RemoveTrust removes an entry or a mark, and cuts every grant that depends on it. It returns
	// ErrNotFound if there is neither.
	RemoveTrust(ctx context.Context, id string, now time.Time) error
}
