package users

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// OpenLinks returns up to limit usable links with a hash greater than after.
func (u *Users) OpenLinks(ctx context.Context, after storage.Hash, limit int) ([]storage.OneTimeLink, error) {
	out, err := u.cfg.Store.OpenLinks(ctx, after, limit, u.cfg.Now())
	if err != nil {
		return nil, fmt.Errorf("users: open links: %w", err)
	}
	return out, nil
}

// WithdrawLinks ends the invitation for a name, and every link of the account with that name or id,
// whose user is notified. It returns the number of links, or ErrLink for 0.
func (u *Users) WithdrawLinks(ctx context.Context, name string) (int, error) {
	now := u.cfg.Now()
	account, unknown := u.Find(ctx, name)
	if unknown != nil && !errors.Is(unknown, ErrUnknown) {
		return 0, unknown
	}
	if unknown == nil {
		name = account.Name
	}
	invited := u.cfg.Store.StopInvitation(ctx, name, now)
	if invited != nil && !errors.Is(invited, storage.ErrNotFound) {
		return 0, linkError(invited)
	}
	ended := 0
	if invited == nil {
		ended = 1
		u.cfg.Audit.Record(ctx, audit.LinkStopped, audit.Person("", name))
	}
	if unknown != nil {
		return ended, linkError(invited)
	}
	n, err := u.cfg.Store.StopLinks(ctx, account.ID, now)
	switch {
	case err != nil:
		return ended, linkError(err)
	case n > 0:
		u.stopped(ctx, account.ID)
		return ended + n, nil
	}
	return ended, linkError(invited)
}
