package thirdparty

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secevent"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// The reasons for the end of a session. They are stored, and part of the contract with
// administrators.
const (
	reasonRevoked      = "revoked"      // the provider says that the session is over
	reasonExpired      = "expired"      // the provider's token expired and cannot be renewed
	reasonLoggedOut    = "logged-out"   // signed out at the provider, which notified this server
	reasonNotAllowed   = "not-allowed"  // the rules of the connector no longer admit the user
	reasonMistaken     = "mistaken"     // the provider renewed with another user's tokens
	reasonDisconnected = "disconnected" // the user disconnected the account
	reasonDisabled     = "disabled"     // the administrator disabled the user here

	// reasons from security events
	reasonSession     = string(secevent.ReasonSession)     // the provider ended the session there
	reasonCredentials = string(secevent.ReasonCredentials) // credentials at the provider have changed
	reasonAccount     = string(secevent.ReasonAccount)     // the account there was disabled or deleted
)

// endNotices explain the reasons to users.
var endNotices = map[string]sentence.Sentence{
	reasonRevoked: sentence.New("{provider} has withdrawn your sign-in. Please sign in again.", "ended_revoked"),
	reasonExpired: sentence.New("Your sign-in at {provider} has expired. Please sign in again.", "ended_expired"),
	reasonLoggedOut: sentence.New("You have signed out at {provider}, and so here. Please sign in again.",
		"ended_out"),
	reasonNotAllowed: sentence.New("Your account at {provider} may not use this server any more. "+
		"If it should, please ask the operator of this server.", "ended_not_allowed"),
	reasonMistaken: sentence.New("{provider} answered with the account of another person. Please sign in again.",
		"ended_mistaken"),
	reasonDisconnected: sentence.New("Your account at {provider} was unlinked from this server. Please sign in again.",
		"ended_disconnected"),
	reasonDisabled: sentence.New("Your account on this server was disabled. Please ask its operator.",
		"ended_disabled"),
	reasonSession:     sentence.New("{provider} has ended your sign-in there, and so here. Please sign in again.", ""),
	reasonCredentials: sentence.New("Your way of signing in at {provider} has changed. Please sign in again.", ""),
	reasonAccount:     sentence.New("{provider} says that your account there was disabled. Please ask its operator.", ""),
}

// EndNotice returns one or two sentences for the user about why the provider ended a sign-in. It is
// empty for an unknown reason.
func (d *Delegation) EndNotice(provider, reason string) sentence.Sentence {
	name := "your provider"
	if c, ok := d.byID[provider]; ok {
		name = c.public().Name
	}
	return endNotices[reason].With("provider", name)
}

// end ends the sessions that k selects, and revokes everything that depends on them.
func (d *Delegation) end(ctx context.Context, k storage.UpstreamKey, reason string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	ended, err := d.cfg.Store.EndUpstreams(ctx, k, reason, d.now())
	if err != nil {
		return fmt.Errorf("thirdparty: end: %w", err)
	}
	d.afterEnd(ctx, ended, reason)
	return nil
}

// endOnce is end for a single-use token, for each of the keys. It returns storage.ErrSpent if the
// token was used before, and otherwise the number of sessions that ended.
func (d *Delegation) endOnce(
	ctx context.Context, reason string, use storage.Use, keys ...storage.UpstreamKey,
) (int, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	ended, err := d.cfg.Store.EndUpstreamsOnce(ctx, keys, reason, use, d.now())
	if err != nil {
		return 0, fmt.Errorf("thirdparty: end: %w", err)
	}
	d.afterEnd(ctx, ended, reason)
	return len(ended), nil
}

// afterEnd records the end of sessions. It revokes their tokens, unless the provider itself ended
// the sessions.
func (d *Delegation) afterEnd(ctx context.Context, ended []storage.Upstream, reason string) {
	for _, u := range ended {
		d.cfg.Audit.Record(ctx, audit.ProviderEnded, slog.String("connector", u.Connector),
			slog.String("user", u.UserID),
			slog.String("subject", u.Subject), audit.ProviderSession(u.ID), slog.String("reason", reason))
		c, known := d.byID[u.Connector]
		if !known || reason == reasonRevoked || reason == reasonExpired {
			continue
		}
		d.giveBackAll(ctx, c, u)
	}
}

// errEnded returns the error for a session that has ended.
func errEnded(reason string) error {
	if reason == "" {
		return fmt.Errorf("thirdparty: %w", storage.ErrRevoked)
	}
	return fmt.Errorf("thirdparty: %w: %s", storage.ErrRevoked, reason)
}
