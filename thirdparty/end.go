package thirdparty

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/secevent"
	"github.com/mcp-authd/mcp-authd/storage"
)

// The reasons for which sessions end. They are stored, and a contract with operators.
const (
	reasonRevoked      = "revoked"      // the provider says that it is over
	reasonExpired      = "expired"      // the provider's token expired and cannot be renewed
	reasonLoggedOut    = "logged-out"   // signed out at the provider, which told us
	reasonNotAllowed   = "not-allowed"  // the rules of the connector do not hold any more
	reasonMistaken     = "mistaken"     // the provider renewed with another person's tokens
	reasonDisconnected = "disconnected" // the person untied the account
	reasonDisabled     = "disabled"     // the operator disabled the user here

	// of security events
	reasonSession     = string(secevent.ReasonSession)     // the provider ended the session there
	reasonCredentials = string(secevent.ReasonCredentials) // how they sign in there has changed
	reasonAccount     = string(secevent.ReasonAccount)     // the account there was disabled or deleted
)

// EndNotice tells a person why the provider ended a sign-in, in one or two sentences; ""
// for no such reason.
func (d *Delegation) EndNotice(provider, reason string) string {
	name := "your provider"
	if c, ok := d.byID[provider]; ok {
		name = c.public().Name
	}
	text := map[string]string{
		reasonRevoked:      "NAME has withdrawn your sign-in. Please sign in again.",
		reasonExpired:      "Your sign-in at NAME has expired. Please sign in again.",
		reasonLoggedOut:    "You have signed out at NAME, and so here. Please sign in again.",
		reasonNotAllowed:   "Your account at NAME may not use this server any more. If it should, please ask the operator of this server.",
		reasonMistaken:     "NAME answered with the account of another person. Please sign in again.",
		reasonDisconnected: "Your account at NAME was unlinked from this server. Please sign in again.",
		reasonDisabled:     "Your account on this server was disabled. Please ask its operator.",
		reasonSession:      "NAME has ended your sign-in there, and so here. Please sign in again.",
		reasonCredentials:  "Your way of signing in at NAME has changed. Please sign in again.",
		reasonAccount:      "NAME says that your account there was disabled. Please ask its operator.",
	}[reason]
	return strings.ReplaceAll(text, "NAME", name)
}

// end cuts whatever rests on the sessions that k selects.
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

// endOnce is end by something that is good for once, for each of the keys: storage.ErrSpent when it
// was used before. It returns how many sessions have ended.
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

// afterEnd records the end of sessions and, unless it was the provider who ended them,
// gives their tokens back.
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

// errEnded: the session is over, and so is what rests on it.
func errEnded(reason string) error {
	if reason == "" {
		return fmt.Errorf("thirdparty: %w", storage.ErrRevoked)
	}
	return fmt.Errorf("thirdparty: %w: %s", storage.ErrRevoked, reason)
}
