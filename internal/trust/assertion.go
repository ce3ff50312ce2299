package trust

import (
	"encoding/json"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Kind is the kind of an issuer's assertions.
type Kind = storage.TrustKind

// The kinds.
const (
	Enterprise = storage.TrustEnterprise // ID-JAG
	Workload   = storage.TrustWorkload
)

// Assertion is a verified assertion: signature, issuer, audience, times and claims are valid. It is
// not redeemed yet, and its user is not looked up yet.
type Assertion struct {
	Entry storage.TrustEntry // the matching entry, with the defaults of its preset
	Kind  Kind

	Issuer  string // iss
	Subject string // sub: unique only together with Issuer and Tenant
	// Tenant is tenant, AudienceTenant aud_tenant and AudienceSubject aud_sub; "" if missing.
	Tenant, AudienceTenant, AudienceSubject string
	ClientID                                string // client_id; "" for workloads
	ID                                      string // jti, or the digest of an assertion without one
	SAML                                    *NameID
	Email                                   string // in a domain of the entry, or else ""
	EmailVerified                           bool   // email_verified is true
	// Name is the display name of a user, or the name of a workload from the entry's template.
	Name        string
	AccountName string // name of an account to create, from the entry's template; "": no template

	Resources []string     // resource; nil: missing
	Scopes    oauth.Scopes // scope; nil: missing

	IssuedAt, Expires time.Time
	AuthTime          time.Time       // zero: missing
	ACR               string          // acr
	AMR               []string        // amr
	Act               json.RawMessage // act: the actor for the user; nil: missing
	Thumbprint        string          // cnf.jkt: thumbprint of the key that the client must prove; "": none
}

// NameID is a SAML subject (sub_id of the format saml_nameid). Its issuer is one of the entry's
// SAMLIssuers.
type NameID struct {
	Issuer, NameID, Format string
}
