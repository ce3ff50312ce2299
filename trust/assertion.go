package trust

import (
	"encoding/json"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Kind is what the assertions of an issuer are.
type Kind = storage.TrustKind

// The kinds.
const (
	Enterprise = storage.TrustEnterprise // ID-JAG
	Workload   = storage.TrustWorkload
)

// Assertion is an assertion whose signature, issuer, audience, times and claims are in order. It is not
// spent yet, and its person is not found yet.
type Assertion struct {
	Entry storage.TrustEntry // by which it is believed, with what its preset sets
	Kind  Kind

	Issuer  string // iss
	Subject string // sub: a name that means something with Issuer and Tenant only
	// Tenant is tenant, AudienceTenant aud_tenant and AudienceSubject aud_sub; "" where they are missing.
	Tenant, AudienceTenant, AudienceSubject string
	ClientID                                string // client_id; "" for workloads
	ID                                      string // jti, or the digest of an assertion that needs none
	SAML                                    *NameID
	Email                                   string // in a domain of the entry, else ""
	EmailVerified                           bool   // email_verified is true
	// Name is what a person is called, or that of a workload by the template of the entry.
	Name        string
	AccountName string // of an account that is created, by the template of the entry; "": it has none

	Resources []string     // resource; nil: it names none
	Scopes    oauth.Scopes // scope; nil: it names none

	IssuedAt, Expires time.Time
	AuthTime          time.Time       // zero: it does not say
	ACR               string          // acr
	AMR               []string        // amr
	Act               json.RawMessage // act: who acts for the person; nil: no other
	Thumbprint        string          // cnf.jkt: of the key that the client has to prove; "": of none
}

// NameID is a SAML subject (sub_id of the format saml_nameid). Its issuer is one of the entry's.
type NameID struct {
	Issuer, NameID, Format string
}
