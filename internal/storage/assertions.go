package storage

import (
	"context"
	"encoding/json"
	"time"
)

// AssertionGrants creates grants for assertions of trusted issuers (RFC 7523 §2.1).
type AssertionGrants interface {
	// GrantAssertion uses up an assertion, finds its user, and stores the grant, in one
	// transaction. One of N concurrent calls with the same SpendID succeeds. The others return
	// ErrSpent, also calls that would create the user.
	//
	// If a live grant has the same entry, user, client, resource, scopes and Asserted, its expiry
	// is extended, and it is returned. If they differ, or it is paused, a new grant is created.
	//
	// ErrNotFound: the issuer's user is unknown, and may not be created. ErrExists: the account to
	// create already exists, and an administrator has unlinked it. ErrRevoked: the account is
	// disabled, the client was deleted, the trusted issuer entry is disabled or removed, or a cut
	// (Cuts) has ended such grants since IssuedAt. ErrStopped: the user has stopped everything
	// since IssuedAt. ErrEnded: the issuer has ended its assertions, see AssertedEnds.
	GrantAssertion(ctx context.Context, a AssertionGrant) (AssertionOutcome, error)
}

// AssertionGrant is a verified assertion and the grant to create for it.
type AssertionGrant struct {
	// SpendID makes the assertion single-use, such as its issuer with its jti; "": it may be used
	// again. The store keeps it until SpentUntil.
	SpendID    string
	SpentUntil time.Time
	IssuedAt   time.Time
	Person     *AssertedPerson // nil: it is not about a user
	Client     *Client         // stored with its first grant, as in an Approval; nil: not stored
	// Grant has an empty UserID; the store sets it to the user's. It is valid from CreatedAt, which
	// is now.
	Grant Grant
	// Configured: the trusted issuer entry is in the configuration. Any other entry must be stored.
	Configured bool
	From       string // the network of the client, for the user to see; "": not known
}

// AssertedPerson identifies the user of an assertion by each name that it contains. The store tries
// them in this order: AudienceSubject, Subject, SAMLName, Mail, and at last it may create NewUser.
type AssertedPerson struct {
	Issuer, Tenant, Subject string
	// AudienceSubject is the id or name of a local account, whose user an administrator or an
	// earlier assertion has linked to the issuer and the tenant. "": not given.
	AudienceSubject string
	// Connectors are the local providers that are the same issuer and use the same subjects.
	Connectors []string
	// SAMLIssuer and SAMLName match if an administrator has linked them.
	SAMLIssuer, SAMLName string
	// Mail matches the single account with this address. The account must not be linked to an
	// issuer or to another provider, or have the administrator role. "": it matches no account.
	Mail    string
	NewUser *User // nil: no user is created
}

// Asserted is an assertion's statement of how the user authenticated, and which program acts for
// them.
type Asserted struct {
	ACR string          `json:"acr,omitempty"`
	AMR []string        `json:"amr,omitempty"`
	Act json.RawMessage `json:"act,omitempty"` // RFC 8693 §4.1
}

// AssertionOutcome is the result of an assertion.
type AssertionOutcome struct {
	Grant    Grant
	User     User   // zero if it is not about a user
	LinkedBy LinkBy // how the user was linked to the issuer by this call; "": already linked
}

// LinkBy says how a user was linked to an issuer's name for them.
type LinkBy string

// The ways to link a user to an issuer.
const (
	LinkedByOperator LinkBy = "operator"
	LinkedByAccount  LinkBy = "account id" // the assertion named the account of one of the issuer's users
	LinkedByProvider LinkBy = "provider"   // the user has an account at a provider that is this issuer
	LinkedBySAML     LinkBy = "saml name"
	LinkedByMail     LinkBy = "mail"
	LinkedByCreation LinkBy = "creation"
)

// TrustNameKind is the kind of an issuer's name for a user.
type TrustNameKind string

// The kinds of names of users at issuers.
const (
	TrustSubject TrustNameKind = "subject" // sub, at the issuer and in the tenant
	TrustSAML    TrustNameKind = "saml"    // the name identifier of a SAML issuer; without a tenant
	// TrustAccount lets the issuer identify the user by the local account (aud_sub); Subject is the
	// user id.
	TrustAccount TrustNameKind = "account"
)

// TrustName is an issuer's name for a user.
type TrustName struct {
	Issuer  string
	Tenant  string // "" if the issuer has no tenants
	Kind    TrustNameKind
	Subject string
}

// TrustLink links an issuer's name to a user.
type TrustLink struct {
	TrustName
	UserID    string
	By        LinkBy
	CreatedAt time.Time
}

// TrustLinks lists and changes the links between issuers' names and users, for administrators.
type TrustLinks interface {
	// LinkTrust links a name to a user. Repeating it for the same user is not an error. It returns
	// ErrExists if the name is linked to another user, and ErrNotFound for an unknown user.
	LinkTrust(ctx context.Context, l TrustLink) error
	// UnlinkTrust removes the link of a name, and ends its user's grants that depend on assertions.
	// It returns the removed link, or ErrNotFound.
	UnlinkTrust(ctx context.Context, n TrustName, now time.Time) (TrustLink, error)
	// ListTrustLinks returns up to limit links after the name after, ordered by issuer, tenant,
	// kind and subject. An empty userID or issuer matches any.
	ListTrustLinks(ctx context.Context, userID, issuer string, after TrustName, limit int) ([]TrustLink, error)
}
