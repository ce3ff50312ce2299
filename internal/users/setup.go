package users

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
)

// SetupTTL is how long a setup link is good.
const SetupTTL = time.Hour

// SetupOpen reports whether there is no administrator yet.
func (u *Users) SetupOpen(ctx context.Context) (bool, error) { return u.cfg.Store.SetupOpen(ctx) }

// SetupLink makes a new one-time link by which the first administrator is created,
// and makes earlier ones invalid. The token stands in the fragment, which browsers
// do not send, so that it reaches no log on the way. ErrExists when there is an
// administrator.
func (u *Users) SetupLink(ctx context.Context, issuer string) (link string, expires time.Time, err error) {
	token := secrets.Token("")
	now := u.cfg.Now()
	expires = now.Add(SetupTTL)
	switch err := u.cfg.Store.PutSetupToken(ctx, secrets.Hash(token), expires, now); {
	case errors.Is(err, storage.ErrExists):
		return "", time.Time{}, ErrExists
	case err != nil:
		return "", time.Time{}, fmt.Errorf("users: setup link: %w", err)
	}
	return issuer + "/setup#token=" + token, expires, nil
}

// CheckSetup reports nil when the token of a setup link is good, else the error that
// CompleteSetup would have for it. It spends nothing.
func (u *Users) CheckSetup(ctx context.Context, token string) error {
	switch err := u.cfg.Store.CheckSetupToken(ctx, secrets.Hash(token), u.cfg.Now()); {
	case errors.Is(err, storage.ErrExists):
		return ErrExists
	case err != nil:
		return fmt.Errorf("users: setup: %w", err)
	}
	return nil
}

// CompleteSetup spends the token of a setup link and creates the first
// administrator. ErrName, ErrPassword and ErrCommon leave the token unspent;
// storage.ErrNotFound and storage.ErrExpired mean the token, ErrExists that there is
// an administrator already.
func (u *Users) CompleteSetup(ctx context.Context, token, name, password string) (storage.User, error) {
	// Before the password is hashed: strangers must not have that work done for them.
	if err := u.CheckSetup(ctx, token); err != nil {
		return storage.User{}, err
	}
	account, err := u.prepare(ctx, Account{Name: name, Password: password, Role: storage.Administrator})
	if err != nil {
		return storage.User{}, err
	}
	switch err := u.cfg.Store.CreateFirstAdmin(ctx, secrets.Hash(token), account, u.cfg.Now()); {
	case errors.Is(err, storage.ErrExists):
		return storage.User{}, ErrExists
	case err != nil:
		return storage.User{}, fmt.Errorf("users: setup: %w", err)
	}
	u.cfg.Audit.Record(ctx, audit.SetupCompleted, audit.Person(account.ID, account.Name))
	return account, nil
}
