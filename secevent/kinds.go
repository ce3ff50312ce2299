package secevent

import "strings"

// The events that are understood here, by the URI that names each.
const (
	SessionRevoked   = "https://schemas.openid.net/secevent/caep/event-type/session-revoked"
	CredentialChange = "https://schemas.openid.net/secevent/caep/event-type/credential-change"

	AccountDisabled          = "https://schemas.openid.net/secevent/risc/event-type/account-disabled"
	AccountEnabled           = "https://schemas.openid.net/secevent/risc/event-type/account-enabled"
	AccountPurged            = "https://schemas.openid.net/secevent/risc/event-type/account-purged"
	CredentialChangeRequired = "https://schemas.openid.net/secevent/risc/event-type/account-credential-change-required"
	CredentialCompromise     = "https://schemas.openid.net/secevent/risc/event-type/credential-compromise"
	SessionsRevoked          = "https://schemas.openid.net/secevent/risc/event-type/sessions-revoked" // before CAEP
	TokensRevoked            = "https://schemas.openid.net/secevent/oauth/event-type/tokens-revoked"  // Google

	// GrantRevoked is an event of ours: a grant has ended. Its members grant, client_id and resource
	// say which; its subject is the person, or the client where a grant is no person's.
	GrantRevoked = "https://github.com/mcp-authd/mcp-authd/event-type/grant-revoked"

	Verification = "https://schemas.openid.net/secevent/ssf/event-type/verification"
)

// Reason is why what rests on an issuer ends.
type Reason string

// The reasons, the strongest first.
const (
	ReasonAccount     Reason = "account-disabled"
	ReasonCredentials Reason = "credential-change"
	ReasonSession     Reason = "session-revoked"
)

var reasons = []Reason{ReasonAccount, ReasonCredentials, ReasonSession}

// ends are the events that end something. All others are acknowledged, and change nothing.
var ends = map[string]Reason{
	SessionRevoked:           ReasonSession,
	SessionsRevoked:          ReasonSession,
	TokensRevoked:            ReasonSession,
	CredentialChange:         ReasonCredentials,
	CredentialChangeRequired: ReasonCredentials,
	CredentialCompromise:     ReasonCredentials,
	AccountDisabled:          ReasonAccount,
	AccountPurged:            ReasonAccount,
}

// Name is what an event is called in a log: the last part of its URI, when it is one of OpenID's.
func Name(uri string) string {
	name, ours := strings.CutPrefix(uri, "https://schemas.openid.net/secevent/")
	if _, name, _ = strings.Cut(name, "/event-type/"); !ours || name == "" {
		return "other"
	}
	if _, known := ends[uri]; !known && uri != Verification && uri != AccountEnabled {
		return "other" // a name of the sender's making does not become a label
	}
	return name
}
