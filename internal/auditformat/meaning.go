package auditformat

import (
	"maps"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/audit"
)

// class is a class of OCSF 1.6.
type class int

const (
	baseEvent      class = 0
	accountChange  class = 3001
	authentication class = 3002
	entities       class = 3004
	userAccess     class = 3005
	apiActivity    class = 6003
)

// other is the activity of an event without an activity in its class.
const other = 99

// Severity says how important an event is, on the scale of OCSF.
type Severity int

// The severities.
const (
	Informational Severity = 1
	Low           Severity = 2
	Medium        Severity = 3
	High          Severity = 4
)

// meaning describes an event in the terms of other systems.
type meaning struct {
	class    class
	activity int
	title    string
	severity Severity
	failed   bool
	entity   string // the managed object, for entities
}

// did returns the meaning of an action or request.
func did(c class, activity int, title string) meaning {
	return meaning{class: c, activity: activity, title: title, severity: Informational}
}

// to returns a meaning about an entity.
func to(entity string, activity int, title string) meaning {
	m := did(entities, activity, title)
	m.entity = entity
	return m
}

func (m meaning) at(s Severity) meaning {
	m.severity = s
	return m
}

func (m meaning) failing(s Severity) meaning {
	m.failed = true
	return m.at(s)
}

// meanings maps each event that the log keeps to its meaning.
var meanings = map[string]meaning{
	audit.LoginSucceeded:   did(authentication, 1, "Signed in"),
	audit.LoginFailed:      did(authentication, 1, "Sign-in failed").failing(Low),
	audit.LoginThrottled:   did(authentication, 1, "Sign-in slowed down").failing(Medium),
	audit.LoggedOut:        did(authentication, 2, "Signed out"),
	audit.RemoteApproved:   did(authentication, 6, "Sign-in with another device approved"),
	audit.RemoteDenied:     did(authentication, 6, "Sign-in with another device denied").failing(Low),
	audit.PasskeyCounter:   did(authentication, 1, "Passkey may have been copied").failing(High),
	audit.ProviderSignedIn: did(authentication, 1, "Signed in at a provider"),
	audit.ProviderRefused:  did(authentication, 1, "Sign-in at a provider refused").failing(Low),
	audit.ProviderEnded:    did(authentication, 2, "Session at a provider ended"),

	audit.TokenIssued:      did(authentication, 4, "Token issued"),
	audit.TokenExchanged:   did(authentication, 4, "Token of a provider handed out"),
	audit.IdentityAsserted: did(authentication, 4, "Identity asserted to another server"),
	audit.TokenRefreshed:   did(authentication, 5, "Token refreshed"),
	audit.TokenReplayed:    did(authentication, 5, "Refresh token repeated"),
	audit.TokenRecovered:   did(authentication, 5, "Lost refresh token honoured").at(Low),
	audit.TokenReuse:       did(authentication, 5, "Spent code or refresh token used again").failing(High),

	audit.ConsentApproved:   did(userAccess, 1, "Access approved"),
	audit.ConsentDenied:     did(userAccess, 1, "Access denied by the person").failing(Informational),
	audit.AnswerShown:       did(userAccess, other, "Answer shown to the person"),
	audit.ProgramKeyMade:    did(userAccess, 1, "Key for a program made"),
	audit.HelperAdded:       did(userAccess, 1, "Helper given less access"),
	audit.HelperCut:         did(userAccess, 2, "Helper ended"),
	audit.ClearanceAsked:    did(userAccess, other, "Clearance for a tool call asked for"),
	audit.ClearanceGiven:    did(userAccess, 1, "Clearance for a tool call given"),
	audit.ClearanceRefused:  did(userAccess, 1, "Clearance for a tool call refused").failing(Low),
	audit.ClearanceSpent:    did(userAccess, other, "Clearance for a tool call used"),
	audit.TokenRevoked:      did(userAccess, 2, "Token revoked by its client"),
	audit.GrantRevoked:      did(userAccess, 2, "Grant revoked"),
	audit.GrantNarrowed:     did(userAccess, 2, "Grant left fewer permissions"),
	audit.GrantsRevoked:     did(userAccess, 2, "Grants revoked"),
	audit.GrantSuperseded:   did(userAccess, 2, "Grant replaced by a newer one"),
	audit.EverythingStopped: did(userAccess, 2, "All access of a person stopped by them").at(Medium),

	audit.GrantPaused:         to("grant", 12, "Grant paused"),
	audit.GrantResumed:        to("grant", 13, "Grant resumed"),
	audit.ClientRegistered:    to("client", 1, "Client registered"),
	audit.ClientChanged:       to("client", 3, "Client changed"),
	audit.ClientDeleted:       to("client", 4, "Client deleted"),
	audit.ApplicationChanged:  to("application", 3, "Application changed for everyone").at(Medium),
	audit.ResourceChanged:     to("MCP server", 3, "MCP server changed"),
	audit.GroupChanged:        to("group", 3, "Group of accounts changed").at(Low),
	audit.AccessChanged:       to("access rule", 3, "Access rule changed").at(Medium),
	audit.ToolChanged:         to("tool", 3, "Tool described otherwise than it was accepted").at(Medium),
	audit.ToolAccepted:        to("tool", 3, "Description of a tool accepted").at(Low),
	audit.MailTested:          to("mail server", other, "Test letter asked for").at(Low),
	audit.TrustChanged:        to("trust entry", 3, "Trust entry changed").at(Medium),
	audit.AudienceChanged:     to("audience", 3, "Audience changed").at(Medium),
	audit.SigningKeyCreated:   to("signing key", 1, "Signing key created"),
	audit.SigningKeyPublished: to("signing key", 6, "Signing key published"),
	audit.SigningKeyRotated:   to("signing key", 10, "Signing key rotated"),
	audit.SigningKeyRetired:   to("signing key", 11, "Signing key retired"),
	audit.SigningKeyRevoked:   to("signing key", 4, "Signing key revoked").at(Medium),
	audit.TokenKeyRenewed:     to("key of refresh tokens", 3, "All refresh tokens ended").at(Medium),
	audit.MasterKeyChanged:    to("master key", 3, "Master key changed").at(Medium),

	audit.ProposalMade:     to("proposal", 1, "Operation proposed to a second administrator").at(Low),
	audit.ProposalAccepted: to("proposal", other, "Proposed operation accepted").at(Medium),
	audit.ProposalDeclined: to("proposal", 4, "Proposed operation declined").at(Low),

	audit.UserCreated:    did(accountChange, 1, "Account created"),
	audit.UserChanged:    did(accountChange, other, "Account changed by the operator"),
	audit.UserDeleted:    did(accountChange, 6, "Account deleted"),
	audit.SetupCompleted: did(accountChange, 1, "First administrator made").at(Medium),
	audit.AccountChanged: did(accountChange, other, "Way into an account changed"),
	audit.WayRefused:     did(accountChange, 10, "Way into an account not added").failing(Low),
	audit.LinkMade:       did(accountChange, other, "One-time link made"),
	audit.LinkUsed:       did(accountChange, other, "One-time link used"),
	audit.LinkStopped:    did(accountChange, other, "Recovery stopped by its person").at(Medium),
	audit.TrustLinked:    did(accountChange, other, "Person linked to an issuer"),
	audit.TrustUnlinked:  did(accountChange, other, "Person unlinked from an issuer"),
	audit.ProviderLinked: did(accountChange, other, "Account at a provider linked"),

	audit.AuditRemoved: to("audit log", 4, "Old entries of the audit log removed").at(Low),
	audit.ToolCalled:   did(apiActivity, other, "Tool called"),
	audit.ToolBegun:    did(apiActivity, other, "Tool about to be called"),

	audit.AuditLost:             did(baseEvent, other, "Entries of the audit log lost").failing(High),
	audit.NoticeLost:            did(baseEvent, other, "Notice lost").failing(Low),
	audit.ProviderUnreachable:   did(baseEvent, other, "Provider does not answer").failing(Medium),
	audit.SecurityEventReceived: did(baseEvent, other, "Security event received"),
	audit.SecurityEventSent:     did(baseEvent, other, "Security event sent"),
	audit.SecurityEventLost:     did(baseEvent, other, "Security event lost").failing(Medium),
	audit.SecurityEventDropped:  did(baseEvent, other, "Security events dropped").failing(High),
}

// Events returns the names of all events that the log keeps, sorted.
func Events() []string { return slices.Sorted(maps.Keys(meanings)) }

// whats refines the activity of an event by its field "what".
var whats = map[string]map[string]int{
	audit.UserChanged:        {"password": 4, "disabled": 5, "enabled": 2},
	audit.ApplicationChanged: {"deleted": 4},
	audit.ResourceChanged:    {"added": 1, "removed": 4},
	audit.GroupChanged:       {"created": 1, "deleted": 4},
	audit.AccessChanged:      {"removed": 4},
	audit.TrustChanged:       {"added": 1, "removed": 4, "enabled": 8, "disabled": 9},
	audit.AudienceChanged:    {"added": 1, "removed": 4},
	audit.AccountChanged: {
		"way-added": 10, "way-removed": 11, "password-changed": 3, "password-removed": 3, "recovery-used": 4,
	},
}

// meaningOf returns the meaning of an entry. Only the name of an event of a later version is known.
func meaningOf(e Entry) meaning {
	m, ok := meanings[e.Event]
	if !ok {
		m = did(baseEvent, other, e.Event)
	}
	if activity, ok := whats[e.Event][e.Fields["what"]]; ok {
		m.activity = activity
	}
	if outcome := e.Fields["outcome"]; m.class == apiActivity && outcome != "ok" {
		m.failed = true
	}
	return m
}

// Severity returns how important the event of an entry is.
func (e Entry) Severity() Severity { return meaningOf(e).severity }
