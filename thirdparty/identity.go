package thirdparty

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// newcomer is the user that a person becomes who signs in for the first time. The id is
// derived from what the provider calls the person, never from an e-mail address, which can
// pass to another person: a person who comes back after the database was lost is the same
// user to the resource servers.
func (d *Delegation) newcomer(c *connector, p provider.Profile, now time.Time) *storage.User {
	mac := d.ring.MAC("identity", []byte(c.ID+"\x00"+c.Issuer+"\x00"+p.Subject))
	return &storage.User{
		ID:   identifier.User + base64.RawURLEncoding.EncodeToString(mac[:20]),
		Name: identifier.Name(p.Label, c.ID), CreatedAt: now, LastLoginAt: now,
	}
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
// the user has no such account; storage.ErrLast when the user could not sign in any more;
// storage.ErrSignedOut when the session has ended in which the user does it.
func (d *Delegation) Disconnect(
	ctx context.Context, userID, connector, subject string, in storage.Hash,
) error {
	ended, err := d.cfg.Store.Unlink(ctx, storage.Untie{
		UserID: userID, Connector: connector, Subject: subject, Reason: reasonDisconnected,
		By: d.admission(), In: in, Now: d.now(),
	})
	if err != nil {
		return fmt.Errorf("thirdparty: disconnect: %w", err)
	}
	d.afterEnd(ctx, ended, reasonDisconnected)
	return nil
}

// admission is what lets people in: a provider that is configured no more does not.
func (d *Delegation) admission() storage.Admission {
	by := storage.Admission{Passwords: !d.cfg.NoLocalLogin, RPIDs: d.cfg.PasskeyRPIDs}
	for _, p := range d.Providers() {
		by.Providers = append(by.Providers, p.ID)
	}
	return by
}
