package storage

import (
	"context"
	"encoding/json"
	"time"
)

// AssertionGrants gives grants for assertions of issuers that the operator trusts (RFC 7523 §2.1).
type AssertionGrants interface {
	// GrantAssertion spends an assertion, finds its person, and stores the grant, all at once or
	// nothing. Of N concurrent calls with one SpendID one succeeds, and the others are ErrSpent, also
	// those that would create the person.
	//
	// A live grant of the same entry to the same person and client for the same resource, with the same
	// scopes and the same of Asserted, lives longer, and is returned. Where they differ, or it is
	// paused, there is another one.
	//
	// ErrNotFound: the issuer's person is not known, and may not be created. ErrExists: the account
	// that would be created is there, and the operator has unlinked it. ErrRevoked: the account is
	// disabled, the client was deleted, the trust entry is disabled or gone, or a cut (Cuts) has ended
	// such grants since IssuedAt. ErrStopped: everything of the person was stopped since IssuedAt. ErrEnded:
	// their issuer has ended what it asserted, as AssertedEnds says.
	GrantAssertion(ctx context.Context, a AssertionGrant) (AssertionOutcome, error)
}

// AssertionGrant is an assertion that was verified, and what it is granted.
type AssertionGrant struct {
	// SpendID is what makes the assertion good once, such as its issuer and its jti; "": it may come
	// again. It is kept until SpentUntil.
	SpendID    string
	SpentUntil time.Time
	IssuedAt   time.Time
	Person     *AssertedPerson // nil: it is about no person
	Client     *Client         // is stored with its first grant, as in an Approval; nil: there is nothing to store
	// Grant has no UserID: that of the person is filled in. It is good from CreatedAt, which is now, on.
	Grant Grant
	// Configured: the trust entry is of the configuration. Any other one has to be stored.
	Configured bool
	From       string // the network that the client asks from, for the person; "": not known
}

// AssertedPerson is whom an assertion is about, by each name that it gives them. They are tried in
// this order: AudienceSubject, Subject, SAMLName, Mail; and then there may be a NewUser.
type AssertedPerson struct {
	Issuer, Tenant, Subject string
	// AudienceSubject is the id or the name of an account here, of a person whom the operator or an
	// earlier assertion has linked to the issuer and the tenant. "": not given.
	AudienceSubject string
	// Connectors are the providers here that are the same issuer, and have the same subjects.
	Connectors []string
	// SAMLIssuer and SAMLName are found if the operator has linked them.
	SAMLIssuer, SAMLName string
	// Mail finds the one account that has this address, if it is linked to no issuer, at no other
	// provider, and no administrator's. "": it finds none.
	Mail    string
	NewUser *User // nil: none is created
}

// Asserted is what an assertion says of how its person proved who they are, and of the program that
// acts for them.
type Asserted struct {
	ACR string          `json:"acr,omitempty"`
	AMR []string        `json:"amr,omitempty"`
	Act json.RawMessage `json:"act,omitempty"` // RFC 8693 §4.1
}

// AssertionOutcome is what has become of an assertion.
type AssertionOutcome struct {
	Grant    Grant
	User     User   // the person; zero for none
	LinkedBy LinkBy // how the person was linked to the issuer just now; "": they were before
}

// LinkBy says by what a person was linked to what an issuer calls them.
type LinkBy string

// What links a person to an issuer.
const (
	LinkedByOperator LinkBy = "operator"
	LinkedByAccount  LinkBy = "account id" // the assertion named the account of a person of this issuer
	LinkedByProvider LinkBy = "provider"   // the person has an account at a provider that is this issuer
	LinkedBySAML     LinkBy = "saml name"
	LinkedByMail     LinkBy = "mail"
	LinkedByCreation LinkBy = "creation"
)

// TrustNameKind says what an issuer calls a person by.
type TrustNameKind string

// The names of people at issuers.
const (
	TrustSubject TrustNameKind = "subject" // sub, at the issuer and in the tenant
	TrustSAML    TrustNameKind = "saml"    // the name identifier of a SAML issuer; without a tenant
	// TrustAccount lets the issuer name the person by their account here (aud_sub); Subject is the user id.
	TrustAccount TrustNameKind = "account"
)

// TrustName is what an issuer calls a person.
type TrustName struct {
	Issuer  string
	Tenant  string // "" where the issuer has no tenants
	Kind    TrustNameKind
	Subject string
}

// TrustLink links what an issuer calls a person to a user.
type TrustLink struct {
	TrustName
	UserID    string
	By        LinkBy
	CreatedAt time.Time
}

// TrustLinks are the people of issuers, as the operator sees and changes them.
type TrustLinks interface {
	// LinkTrust links a name to a user. No error when it is linked to that user; ErrExists when it is to
	// another one. ErrNotFound when there is no such user.
	LinkTrust(ctx context.Context, l TrustLink) error
	// UnlinkTrust unties a name, and ends the grants of its user that rest on assertions. It returns
	// what it has unlinked. ErrNotFound.
	UnlinkTrust(ctx context.Context, n TrustName, now time.Time) (TrustLink, error)
	// ListTrustLinks returns up to limit of them, of a user ("": any) at an issuer ("": any), which
	// come behind after in their order: by issuer, tenant, kind and subject.
	ListTrustLinks(ctx context.Context, userID, issuer string, after TrustName, limit int) ([]TrustLink, error)
}
