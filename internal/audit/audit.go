// Package audit records what happened to access: who signed in, who consented to
// what, which token was issued, refused or revoked, and who changed an account or
// a client. The event names are a stable contract for operators; their attributes
// never hold a password, a token, a code or a secret.
package audit

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// The events. A name is never reused for another meaning.
const (
	ClientRegistered   = "client.registered"
	ClientRefused      = "client.refused" // a registration was turned down; reason says why
	ClientChanged      = "client.changed" // by the operator; what says what
	ClientDeleted      = "client.deleted"
	ApplicationChanged = "application.changed" // by the operator, for everyone
	ClientAuthFailed   = "client.auth_failed"
	AuthorizeRefused   = "authorize.refused"
	AuthorizePushed    = "authorize.pushed" // a client has pushed an authorization request
	LoginSucceeded     = "login.succeeded"
	LoginFailed        = "login.failed"
	LoginThrottled     = "login.throttled"
	LoggedOut          = "session.ended"
	ConsentApproved    = "consent.approved"
	ConsentDenied      = "consent.denied"
	AnswerShown        = "answer.shown"     // to the person, to carry it to an application on another computer
	DeviceRequested    = "device.requested" // a device without a browser asks for a person's approval
	DeviceUnknown      = "device.unknown"   // a person has typed a code under which no device waits
	RemoteRequested    = "remote.requested" // a browser asks to be signed in from another device
	RemoteApproved     = "remote.approved"  // by its person, there
	RemoteDenied       = "remote.denied"    // by its person; reason says when the number was wrong
	TokenIssued        = "token.issued"
	TokenRefreshed     = "token.refreshed"
	TokenReplayed      = "token.replayed"  // a refresh token came again within the grace window
	TokenRecovered     = "token.recovered" // a refresh token came that a failed database had lost
	TokenRefused       = "token.refused"
	TokenReuse         = "token.reuse" // a spent code or refresh token: the grant was revoked
	TokenRevoked       = "token.revoked"
	GrantRevoked       = "grant.revoked" // by the operator, or by the person: revoked_by says so
	GrantNarrowed      = "grant.narrowed"
	GrantPaused        = "grant.paused"
	GrantResumed       = "grant.resumed"
	ProgramKeyMade     = "programkey.made" // by a person, for a program of theirs
	// those of a client, a resource, a user or a provider, once each of them is marked
	GrantsRevoked       = "grants.revoked"
	GrantSuperseded     = storage.GrantSuperseded // by newer ones of the same person, client and resource
	AuditLost           = "audit.lost"            // entries that the database did not take in time, and how many
	AuditRemoved        = "audit.removed"         // entries of the audit log, by their age: those below an index
	ToolCalled          = "tool.called"           // through the gateway; in the audit log alone
	ToolBegun           = "tool.begun"            // the same, before it is called: where the audit is required
	TokenExchanged      = "token.exchanged"       // a resource server got a provider's token for one of ours
	HelperAdded         = "helper.added"          // a client has handed less than it has to a helper
	HelperCut           = "helper.cut"            // with what is below it; revoked_by says by whom
	ClearanceAsked      = "clearance.asked"       // a resource server waits for a person's word for a tool call
	ClearanceGiven      = "clearance.given"       // by the person that giver names
	ClearanceRefused    = "clearance.refused"     // by the person that giver names
	ClearanceSpent      = "clearance.spent"       // the call may be carried out, once
	IdentityAsserted    = "identity.asserted"     // a client got an assertion of who a person is, for another server
	ConnectRefused      = "connect.refused"       // a person opened the link of another one
	WayRefused          = "way.refused"           // a passkey or an app was not added: too late, or not accepted
	PasskeyCounter      = "passkey.counter"       // a passkey's counter went back: there may be a copy of it
	EverythingStopped   = "account.stopped"       // all sessions and grants of a person, by the person
	TrustLinked         = "trust.linked"          // what an issuer calls a person was linked to an account
	TrustUnlinked       = "trust.unlinked"        // it was unlinked, and what rests on assertions has ended
	UserCreated         = "user.created"
	UserChanged         = "user.changed"
	UserDeleted         = "user.deleted"
	AccountChanged      = "account.changed"   // ways in, keys or connections; its person is told; what says which
	NoticeLost          = "notice.lost"       // a person could not be told by mail, or the operator by webhook
	LinkMade            = "link.made"         // by which an account is made or recovered; kind says which
	LinkUsed            = "link.used"         // the account is there, or back in the hands of its person
	LinkStopped         = "link.stopped"      // by its person
	LinkRefused         = "link.refused"      // it was of no use; reason says why
	ProposalMade        = "proposal.made"     // an operation waits for a second administrator
	ProposalAccepted    = "proposal.accepted" // and was carried out; outcome says whether it went well
	ProposalDeclined    = "proposal.declined" // it was not
	SetupCompleted      = "setup.completed"
	SigningKeyCreated   = "key.created"
	SigningKeyPublished = "key.published" // it will sign later
	SigningKeyRotated   = "key.rotated"
	SigningKeyRetired   = "key.retired"       // with its algorithm
	SigningKeyRevoked   = "key.revoked"       // taken out at once
	TokenKeyRenewed     = "key.token_renewed" // every refresh token from before has ended
	MasterKeyChanged    = "key.master_changed"
	ResourceChanged     = "resource.changed"
	GroupChanged        = "group.changed"    // of accounts; what says what
	AccessChanged       = "access.changed"   // a rule for which scopes people may have; what says what
	ToolChanged         = "tool.changed"     // an MCP server describes a tool otherwise than it was accepted
	ToolAccepted        = "tool.accepted"    // as it is described from now on, or was before
	MailTested          = "mail.tested"      // a test letter was asked for; outcome says what became of it
	TrustChanged        = "trust.changed"    // an entry was added, disabled, enabled or removed
	AudienceChanged     = "audience.changed" // a server to which we assert who people are; what says what
	ProviderSignedIn    = "provider.signed_in"
	ProviderLinked      = "provider.linked"      // an account at a provider was tied to a user
	ProviderRefused     = "provider.refused"     // a person came back from a provider, and not in
	ProviderAbandoned   = "provider.abandoned"   // a person left for a provider and did not come back in time
	ProviderEnded       = "provider.ended"       // with its grants and browser sessions; reason says why
	ProviderUnreachable = "provider.unreachable" // a provider stopped answering

	SecurityEventReceived = "securityevent.received"  // an issuer has pushed one; outcome says what came of it
	SecurityEventSent     = "securityevent.sent"      // a receiver of the operator has it
	SecurityEventLost     = "securityevent.lost"      // a receiver did not take it; reason says why
	SecurityEventDropped  = storage.DeliveriesDropped // too many waited for a receiver: the oldest went
	SecurityEventRefused  = "securityevent.refused"   // it is not to be believed, or cannot be read
)

// Recorder writes events. The zero value and nil discard them.
type Recorder struct {
	log      *slog.Logger
	counters []Counter
	store    storage.Events // nil: what is recorded is logged
	unkept   *atomic.Bool   // the store did not take an event
	kept     []Log
	routine  slog.Level // of lines of routine events
}

// Counter sees every event, to count it. It must not keep attrs.
type Counter func(event string, attrs []slog.Attr)

// Log keeps events for good. Add must not wait, and must not keep attrs. What has to wait for it finds
// out by Await.
type Log interface {
	Add(ctx context.Context, event string, attrs []slog.Attr)
}

// Ready returns why a Log does not keep events at present, as far as it says (Ready() error).
func (r *Recorder) Ready() error {
	if r == nil {
		return nil
	}
	for _, l := range r.kept {
		if l, ok := l.(interface{ Ready() error }); ok {
			if err := l.Ready(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Into returns a recorder that does what r does, and adds each event to l as well.
func (r *Recorder) Into(l Log) *Recorder {
	if r == nil {
		return nil
	}
	into := *r
	into.kept = append(slices.Clip(r.kept), l)
	return &into
}

// Keep adds an event to the Logs alone: there is a line of another kind about it.
func (r *Recorder) Keep(ctx context.Context, event string, attrs ...slog.Attr) {
	if r != nil && len(r.kept) > 0 {
		r.keep(ctx, event, noted(ctx, attrs))
	}
}

func (r *Recorder) keep(ctx context.Context, event string, attrs []slog.Attr) {
	for _, l := range r.kept {
		l.Add(ctx, event, attrs)
	}
}

// New returns a recorder that writes each event to log, as a record whose message
// is the event name and whose "event" attribute repeats it for filters, and shows it
// to the counters.
func New(log *slog.Logger, counters ...Counter) *Recorder {
	return &Recorder{log: log, counters: counters}
}

// Record writes one event. Attributes name who (user, client_id), what (resource,
// scope, grant), the protocol's code for a refusal (error) and why (reason). What is
// known of the request of ctx (see Within) is added.
func (r *Recorder) Record(ctx context.Context, event string, attrs ...slog.Attr) {
	if r == nil || r.log == nil {
		return
	}
	attrs = noted(ctx, attrs)
	if r.store != nil && r.leave(ctx, event, attrs) {
		return
	}
	for _, count := range r.counters {
		count(event, attrs)
	}
	r.keep(ctx, event, attrs)
	level := slog.LevelInfo
	if r.routine != level && Routine(event, attrs) {
		level = r.routine
	}
	if !r.log.Enabled(ctx, level) {
		return
	}
	if old := Formerly(event); old != "" {
		attrs = append(attrs, slog.String("formerly", old))
	}
	r.log.LogAttrs(ctx, level, event, append([]slog.Attr{slog.String("event", event)}, attrs...)...)
}
