package thirdparty

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/storage"
)

// newcomer is the user that a person becomes who signs in for the first time. The id is
// derived from what the provider calls the person, never from an e-mail address, which can
// be given to somebody else: whoever comes back after the database was lost is the same
// user to the resource servers.
func (d *Delegation) newcomer(c *connector, p profile, now time.Time) *storage.User {
	mac := d.ring.MAC("identity", []byte(c.ID+"\x00"+c.Issuer+"\x00"+p.Subject))
	return &storage.User{
		ID:   "usr_" + base64.RawURLEncoding.EncodeToString(mac[:20]),
		Name: userName(p.Label, c.ID), CreatedAt: now, LastLoginAt: now,
	}
}

const maxUserName = 64 // as of internal/users, whose alphabet is below

// userName makes a name out of what a person is called at a provider: "ada@github".
func userName(label, connector string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-@+", r):
			return r
		case r == ' ':
			return '.'
		}
		return -1
	}, label)
	if clean == "" {
		clean = "user"
	}
	suffix := "@" + connector
	return clean[:min(len(clean), max(1, maxUserName-len(suffix)))] + suffix[:min(len(suffix), maxUserName-1)]
}

// Identities lists the accounts at providers that are tied to a user, oldest first.
func (d *Delegation) Identities(ctx context.Context, userID string) ([]storage.Identity, error) {
	out, err := d.cfg.Store.Identities(ctx, userID)
	if err != nil {
		return nil, fmt.Errorf("thirdparty: identities: %w", err)
	}
	return out, nil
}

// Disconnect unties an account at a provider from a user, ends what rests on it, and
// gives the tokens back to the provider as well as it takes them. storage.ErrNotFound when
// the user has no such account; storage.ErrSpent when the user could not sign in any more.
func (d *Delegation) Disconnect(ctx context.Context, userID, connector, subject string) error {
	ended, err := d.cfg.Store.Unlink(ctx, userID, connector, subject, reasonDisconnected, d.now())
	if err != nil {
		return fmt.Errorf("thirdparty: disconnect: %w", err)
	}
	d.farewell(ctx, ended, reasonDisconnected)
	return nil
}

// The reasons for which sessions end. They are stored, and a contract with operators.
const (
	reasonRevoked      = "revoked"      // the provider says that it is over
	reasonExpired      = "expired"      // the provider's token expired and cannot be renewed
	reasonLoggedOut    = "logged-out"   // signed out at the provider, which told us
	reasonNotAllowed   = "not-allowed"  // the rules of the connector do not hold any more
	reasonDisconnected = "disconnected" // the person untied the account
	reasonDisabled     = "disabled"     // the operator disabled the user here
)

// Farewell tells a person why the provider ended a sign-in, in one or two sentences; ""
// for no such reason.
func (d *Delegation) Farewell(provider, reason string) string {
	name := "your provider"
	if c, ok := d.byID[provider]; ok {
		name = c.public().Name
	}
	text := map[string]string{
		reasonRevoked:      "NAME has withdrawn your sign-in. Please sign in again.",
		reasonExpired:      "Your sign-in at NAME has expired. Please sign in again.",
		reasonLoggedOut:    "You have signed out at NAME, and so here. Please sign in again.",
		reasonNotAllowed:   "Your account at NAME may not use this server any more. If it should, please ask the operator of this server.",
		reasonDisconnected: "Your account at NAME was disconnected from this server. Please sign in again.",
		reasonDisabled:     "Your account on this server was disabled. Please ask its operator.",
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
	d.farewell(ctx, ended, reason)
	return nil
}

// farewell records the end of sessions and, unless it was the provider who ended them,
// gives their tokens back.
func (d *Delegation) farewell(ctx context.Context, ended []storage.Upstream, reason string) {
	for _, u := range ended {
		d.cfg.Audit.Record(ctx, audit.UpstreamEnded, slog.String("connector", u.Connector), slog.String("user", u.UserID),
			slog.String("subject", u.Subject), slog.String("upstream", u.ID), slog.String("reason", reason))
		c, known := d.byID[u.Connector]
		if !known || reason == reasonRevoked || reason == reasonExpired {
			continue
		}
		if held, err := d.vault.open(u.ID, u.Sealed); err == nil {
			d.giveBack(ctx, c, held.Tokens)
		}
	}
}

// errEnded: the session is over, and so is what rests on it.
func errEnded(reason string) error {
	if reason == "" {
		return fmt.Errorf("thirdparty: %w", storage.ErrRevoked)
	}
	return fmt.Errorf("thirdparty: %w: %s", storage.ErrRevoked, reason)
}

var errUnopened = errors.New("the tokens cannot be opened: add the master key that sealed them to the old ones")
