package secevent

import "strings"

// The supported events, by URI.
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

	// GrantRevoked is this server's event for a revoked grant. Its members grant, client_id and
	// resource identify the grant. Its subject is the user, or the client of a grant without a
	// user.
	GrantRevoked = "https://github.com/mcp-authd/mcp-authd/event-type/grant-revoked"

	Verification = "https://schemas.openid.net/secevent/ssf/event-type/verification"
)

// Reason is why an event ends sessions and grants.
type Reason string

// The reasons, the strongest first.
const (
	ReasonAccount     Reason = "account-disabled"
	ReasonCredentials Reason = "credential-change"
	ReasonSession     Reason = "session-revoked"
)

var reasons = []Reason{ReasonAccount, ReasonCredentials, ReasonSession}

// ends maps the events that end something to their reasons. Other events are acknowledged and have
// no effect.
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

// Name returns the name of an event for logs: the last part of its URI if the event is known, or
// "other".
func Name(uri string) string {
	name, ours := strings.CutPrefix(uri, "https://schemas.openid.net/secevent/")
	if _, name, _ = strings.Cut(name, "/event-type/"); !ours || name == "" {
		return "other"
	}
	if _, known := ends[uri]; !known && uri != Verification && uri != AccountEnabled {
		return "other" // a name chosen by the sender must not become a label
	}
	return name
}
