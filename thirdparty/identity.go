package thirdparty

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// newcomer returns the new user for an account that signs in for the first time. The user ID is
// derived from the provider's subject, never from an e-mail address, which can pass to someone
// else. If the database is lost, a returning user is therefore the same user to the resource
// servers.
func (d *Delegation) newcomer(c *connector, p provider.Profile, now time.Time) *storage.User {
	mac := d.ring.MAC("identity", []byte(c.ID+"\x00"+c.Issuer+"\x00"+p.Subject))
	return &storage.User{
		ID:   identifier.User + base64.RawURLEncoding.EncodeToString(mac[:20]),
		Name: identifier.Name(p.Label, c.ID), CreatedAt: now, LastLoginAt: now,
	}
}

// Identities lists the accounts at providers that are linked to a user, oldest first.
func (d *Delegation) Identities(ctx context.Context, userID string) ([]storage.Identity, error) {
	out, err := d.cfg.Store.Identities(ctx, userID)
	if err != nil {
		return nil, fmt.Errorf("thirdparty: identities: %w", err)
	}
	return out, nil
}

// Disconnect unlinks an account at a provider from a user, ends everything that depends on it, and
// revokes its tokens if the provider supports that. It returns storage.ErrNotFound if the user has
// no such account, and storage.ErrLast if the user could no longer sign in. It returns
// storage.ErrSignedOut if the user's current session has ended.
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

// admission returns the ways to sign in. A provider that is no longer configured is not among them.
func (d *Delegation) admission() storage.Admission {
	by := storage.Admission{Passwords: !d.cfg.NoLocalLogin, RPIDs: d.cfg.PasskeyRPIDs}
	for _, p := range d.Providers() {
		by.Providers = append(by.Providers, p.ID)
	}
	return by
}
