// Package audit records changes to access: sign-ins, consents, tokens that were issued, refused or
// revoked, and changes to accounts and clients. The event names are a stable contract for
// operators. Attributes never contain a password, token, code or secret.
package audit

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// The events. A name is never reused with another meaning.
const (
	ClientRegistered   = "client.registered"
	ClientRefused      = "client.refused" // a registration was refused; reason says why
	ClientChanged      = "client.changed" // by an operator; attribute "what" names the change
	ClientDeleted      = "client.deleted"
	ApplicationChanged = "application.changed" // by an operator, for all users
	ClientAuthFailed   = "client.auth_failed"
	AuthorizeRefused   = "authorize.refused"
	AuthorizePushed    = "authorize.pushed" // a client pushed an authorization request
	LoginSucceeded     = "login.succeeded"
	LoginFailed        = "login.failed"
	LoginThrottled     = "login.throttled"
	LoggedOut          = "session.ended"
	ConsentApproved    = "consent.approved"
	ConsentDenied      = "consent.denied"
	AnswerShown        = "answer.shown"     // to the user, who carries it to an application on another computer
	DeviceRequested    = "device.requested" // a device without a browser requests approval
	DeviceUnknown      = "device.unknown"   // a user typed a code that no device waits for
	RemoteRequested    = "remote.requested" // a browser asks to be signed in from another device
	RemoteApproved     = "remote.approved"  // by the user, on the other device
	RemoteDenied       = "remote.denied"    // by the user; reason says if the number was wrong
	TokenIssued        = "token.issued"
	TokenRefreshed     = "token.refreshed"
	TokenReplayed      = "token.replayed"  // a refresh token was reused within the grace window
	TokenRecovered     = "token.recovered" // a failed database had lost this refresh token
	TokenRefused       = "token.refused"
	TokenReuse         = "token.reuse" // a used code or refresh token came again: the grant was revoked
	TokenRevoked       = "token.revoked"
	GrantRevoked       = "grant.revoked" // revoked_by says by whom
	GrantNarrowed      = "grant.narrowed"
	GrantPaused        = "grant.paused"
	GrantResumed       = "grant.resumed"
	ProgramKeyMade     = "programkey.made" // by a user, for their own program
	// all grants of a client, resource, user or provider, recorded after each was marked
	GrantsRevoked       = "grants.revoked"
	GrantSuperseded     = storage.GrantSuperseded // by newer grants of the same user, client and resource
	AuditLost           = "audit.lost"            // entries that the database did not take in time, with their number
	AuditRemoved        = "audit.removed"         // old entries of the audit log, below an index
	ToolCalled          = "tool.called"           // through the gateway; only in the audit log
	ToolBegun           = "tool.begun"            // before the call, if the audit is required; only in the audit log
	TokenExchanged      = "token.exchanged"       // a resource server exchanged our token for a provider's token
	HelperAdded         = "helper.added"          // a client delegated part of its access to a sub-agent
	HelperCut           = "helper.cut"            // with its sub-agents; revoked_by says by whom
	ClearanceAsked      = "clearance.asked"       // a resource server waits for a tool call approval
	ClearanceGiven      = "clearance.given"       // by the user named in giver
	ClearanceRefused    = "clearance.refused"     // by the user named in giver
	ClearanceSpent      = "clearance.spent"       // the call may run once
	IdentityAsserted    = "identity.asserted"     // a client got an identity assertion for another server
	ConnectRefused      = "connect.refused"       // a user opened another user's link
	WayRefused          = "way.refused"           // a passkey or app was not added: too late, or not accepted
	PasskeyCounter      = "passkey.counter"       // the counter decreased: the passkey may have been copied
	EverythingStopped   = "account.stopped"       // a user ended all their own sessions and grants
	TrustLinked         = "trust.linked"          // a subject of a trusted issuer was linked to an account
	TrustUnlinked       = "trust.unlinked"        // the link was removed, and access from assertions has ended
	UserCreated         = "user.created"
	UserChanged         = "user.changed"
	UserDeleted         = "user.deleted"
	AccountChanged      = "account.changed"   // authentication methods, keys or connections; the user is notified
	NoticeLost          = "notice.lost"       // a mail to a user or a webhook to the operator failed
	LinkMade            = "link.made"         // to create or recover an account; kind says which
	LinkUsed            = "link.used"         // the account was created or recovered
	LinkStopped         = "link.stopped"      // by the user or an operator
	LinkRefused         = "link.refused"      // it cannot be used; reason says why
	ProposalMade        = "proposal.made"     // an operation needs a second administrator
	ProposalAccepted    = "proposal.accepted" // and carried out; outcome says if it succeeded
	ProposalDeclined    = "proposal.declined"
	SetupCompleted      = "setup.completed"
	SigningKeyCreated   = "key.created"
	SigningKeyPublished = "key.published" // it will sign later
	SigningKeyRotated   = "key.rotated"
	SigningKeyRetired   = "key.retired"       // with its algorithm
	SigningKeyRevoked   = "key.revoked"       // with immediate effect
	TokenKeyRenewed     = "key.token_renewed" // all earlier refresh tokens have ended
	MasterKeyChanged    = "key.master_changed"
	ResourceChanged     = "resource.changed"
	GroupChanged        = "group.changed"    // group of accounts; "what" names the change
	AccessChanged       = "access.changed"   // a rule for the scopes that users may have; "what" names the change
	ToolChanged         = "tool.changed"     // an MCP server changed the description of a tool
	ToolAccepted        = "tool.accepted"    // a tool description was accepted
	MailTested          = "mail.tested"      // a test mail was requested; outcome says if it was sent
	TrustChanged        = "trust.changed"    // a trusted issuer was added, disabled, enabled or removed
	AudienceChanged     = "audience.changed" // a server that gets identity assertions; "what" names the change
	ProviderSignedIn    = "provider.signed_in"
	ProviderLinked      = "provider.linked"      // an account at a provider was linked to a user
	ProviderRefused     = "provider.refused"     // a user returned from a provider, but was not signed in
	ProviderAbandoned   = "provider.abandoned"   // a user left for a provider and did not return in time
	ProviderEnded       = "provider.ended"       // with its grants and browser sessions; reason says why
	ProviderUnreachable = "provider.unreachable" // a provider stopped answering

	SecurityEventReceived = "securityevent.received"  // from an issuer; outcome names the effect
	SecurityEventSent     = "securityevent.sent"      // a configured receiver accepted it
	SecurityEventLost     = "securityevent.lost"      // a receiver did not accept it; reason says why
	SecurityEventDropped  = storage.DeliveriesDropped // the oldest in a receiver's full queue
	SecurityEventRefused  = "securityevent.refused"   // it is not trusted, or cannot be read
)

// Recorder writes events. A nil or zero Recorder discards them.
type Recorder struct {
	log      *slog.Logger
	counters []Counter
	store    storage.Events // if set, Record stores events instead of logging them
	unkept   *atomic.Bool   // the store did not take an event
	kept     []Log
	routine  slog.Level // log level of routine events
}

// Counter counts events. It must not keep attrs.
type Counter func(event string, attrs []slog.Attr)

// Log stores events permanently. Add must not block or keep attrs. Callers wait with Awaited.
type Log interface {
	Add(ctx context.Context, event string, attrs []slog.Attr)
}

// Ready returns the first error of the Logs that implement Ready() error: why they cannot store
// events.
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

// Into returns a copy of r that also adds each event to l.
func (r *Recorder) Into(l Log) *Recorder {
	if r == nil {
		return nil
	}
	into := *r
	into.kept = append(slices.Clip(r.kept), l)
	return &into
}

// Keep adds an event to the Logs only, for events that have a line of another kind in the server's
// log.
func (r *Recorder) Keep(ctx context.Context, event string, attrs ...slog.Attr) {
	if r != nil && len(r.kept) > 0 {
		r.keep(ctx, event, request.Of(ctx).Added(attrs))
	}
}

func (r *Recorder) keep(ctx context.Context, event string, attrs []slog.Attr) {
	for _, l := range r.kept {
		l.Add(ctx, event, attrs)
	}
}

// New returns a recorder that logs each event, and passes it to the counters. The event name is the
// message, and the attribute "event" for filters.
func New(log *slog.Logger, counters ...Counter) *Recorder {
	return &Recorder{log: log, counters: counters}
}

// Record writes one event. Attributes say who acted (user, client_id), on what (resource, scope,
// grant), and why it was refused (error, reason). Record adds the attributes of the request of ctx
// (see package request).
func (r *Recorder) Record(ctx context.Context, event string, attrs ...slog.Attr) {
	if r == nil || r.log == nil {
		return
	}
	attrs = request.Of(ctx).Added(attrs)
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
