package users

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// SetupTTL is the lifetime of a setup link.
const SetupTTL = time.Hour

// SetupOpen reports whether the first administrator is still missing.
func (u *Users) SetupOpen(ctx context.Context) (bool, error) { return u.cfg.Store.SetupOpen(ctx) }

// SetupLink returns a new one-time link for creating the first administrator, and invalidates
// earlier links. The token is in the fragment, which browsers do not send, so that logs on the way
// do not contain it. It returns ErrExists if an administrator exists.
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

// CheckSetup returns nil if the token of a setup link is valid, or else the error that
// CompleteSetup would return. It does not use up the token.
func (u *Users) CheckSetup(ctx context.Context, token string) error {
	switch err := u.cfg.Store.CheckSetupToken(ctx, secrets.Hash(token), u.cfg.Now()); {
	case errors.Is(err, storage.ErrExists):
		return ErrExists
	case err != nil:
		return fmt.Errorf("users: setup: %w", err)
	}
	return nil
}

// CompleteSetup uses up the token of a setup link and creates the first administrator. After
// ErrName, ErrPassword or ErrCommon the token remains valid. storage.ErrNotFound and
// storage.ErrExpired concern the token. ErrExists means that an administrator exists.
func (u *Users) CompleteSetup(ctx context.Context, token, name, password string) (storage.User, error) {
	// Check this before hashing, so that strangers cannot make the server hash passwords.
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
