// Package users manages local accounts. It checks passwords, slows down guessing, and creates the
// first administrator through a one-time link.
package users

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/alexedwards/argon2id"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/mail"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// These errors are distinguished by callers.
var (
	// ErrWrong means a failed sign-in: unknown account, wrong password, or disabled account.
	ErrWrong = errors.New("users: wrong name or password")
	// ErrName means that identifier.ValidName refuses the name.
	ErrName = errors.New(
		"users: a name must have 1 to 64 letters, digits or . _ - @ +, must not begin like an id (usr_, mcp_, grt_ and " +
			"others), and must not be ., .., operator or system",
	)
	// ErrPassword means that the password does not have 8 to 1024 bytes.
	ErrPassword = errors.New("users: a password has 8 to 1024 bytes")
	// ErrCommon means that the password is the account name or a common password.
	ErrCommon = errors.New(
		"users: this password is one of the most common ones, or the name of the account; choose another",
	)
	// ErrMail means that the address is not a valid mail address.
	ErrMail = errors.New("users: the address is not a mail address such as alice@example.com")
	// ErrLink means that a link is not valid: unknown, used, expired, stopped or replaced, or for a
	// disabled account. Strangers cannot tell these cases apart.
	ErrLink = errors.New("users: the link is not valid, or no longer valid")
	// ErrBrowser means that the link was requested in another browser.
	ErrBrowser = errors.New("users: the link works only in the browser that requested it")
	// ErrDisabled means that the account is disabled.
	ErrDisabled = errors.New("users: the account is disabled")
	// ErrLast means that the last administrator would be lost.
	ErrLast = errors.New("users: the last administrator")
	// ErrOtherWays means that the user has other authentication methods, so a link must be delayed.
	ErrOtherWays = errors.New("users: the person has other ways in")
	// ErrExists means that the name is taken.
	ErrExists = errors.New("users: the name is taken")
	// ErrUnknown means that the account does not exist.
	ErrUnknown = errors.New("users: no such account")
)

// Store is the part of a store that this package uses.
type Store interface {
	storage.Users
	storage.Accounts
	storage.Roles
	storage.Setup
	storage.Failures
	storage.OneTimeLinks
	storage.LinkStops
	// Factors is the method of storage.WayEnds, and Ways that of storage.Ways.
	Factors(ctx context.Context, userID string, by storage.Admission) (storage.Factors, error)
	Ways(ctx context.Context, userID string) ([]storage.Way, error)
}

// Config configures Users. Store is required.
type Config struct {
	Store Store
	// Params are the parameters of argon2id. Default: 19 MiB, two passes, one lane, as OWASP
	// recommends; about 30 ms.
	Params *argon2id.Params
	// MaxConcurrent limits the number of concurrent hashes, and so the memory that a burst of
	// sign-ins uses. Default: the number of processors plus one, at most 4.
	MaxConcurrent int
	// Providers are the ids of the providers for sign-in.
	Providers []string
	Links     LinkPolicy
	Now       func() time.Time
	// Sleep waits, or returns the context's error. Default: a timer.
	Sleep    func(context.Context, time.Duration) error
	Notifier *notice.Notifier // nil: users are not notified of changes
	Audit    *audit.Recorder
	Logger   *slog.Logger
}

// Users is the set of local accounts. It is safe for concurrent use.
type Users struct {
	cfg      Config
	hasher   *hasher
	throttle *throttle
	resets   *resets
}

// New returns Users.
func New(c Config) (*Users, error) {
	if c.Store == nil {
		return nil, errors.New("users: no store")
	}
	if err := c.Links.Validate(); err != nil {
		return nil, fmt.Errorf("users: %w", err)
	}
	c.Links = c.Links.withDefaults()
	if c.Params == nil {
		c.Params = &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}
	}
	if c.MaxConcurrent <= 0 {
		c.MaxConcurrent = min(runtime.GOMAXPROCS(0)+1, 4)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Users{
		cfg:      c,
		hasher:   newHasher(c.Params, c.MaxConcurrent),
		throttle: newThrottle(c),
		resets:   newResets(c.Now),
	}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// SetMail replaces the mail address of an account. "" removes it. It returns ErrMail if the address
// is not valid. The old address gets no notice: the operator decides where mail goes.
func (u *Users) SetMail(ctx context.Context, name, address string) error {
	if err := checkMail(address); err != nil {
		return err
	}
	account, err := u.Find(ctx, name)
	if err != nil {
		return err
	}
	return u.changed(ctx, account, "mail", u.cfg.Store.SetMail(ctx, account.ID, address))
}

// SetRole sets the role of an account, or removes it for "", which ends its sessions. Setting a
// role also ends the open links into the account, because the user of such a link would get the
// role. It returns ErrUnknown or ErrLast.
func (u *Users) SetRole(ctx context.Context, name string, role storage.Role) error {
	account, err := u.Find(ctx, name)
	if err != nil {
		return err
	}
	err = u.cfg.Store.SetRole(ctx, account.ID, role)
	if errors.Is(err, storage.ErrLast) {
		return ErrLast
	}
	if err := u.changed(ctx, account, "role", err); err != nil || role == "" {
		return err
	}
	n, err := u.cfg.Store.StopLinks(ctx, account.ID, u.cfg.Now())
	if err != nil {
		return fmt.Errorf("users: end links: %w", err)
	}
	if n > 0 {
		u.stopped(ctx, account.ID)
	}
	return nil
}

func checkMail(address string) error {
	if address == "" {
		return nil
	}
	if _, err := mail.ParseAddress(address); err != nil {
		return ErrMail
	}
	return nil
}

// Create adds an account. It returns ErrName, ErrPassword, ErrCommon or ErrExists.
func (u *Users) Create(ctx context.Context, name, password string, admin bool) (storage.User, error) {
	a := Account{Name: name, Password: password}
	if admin {
		a.Role = storage.Administrator
	}
	return u.Add(ctx, a)
}

// Account is a new account.
type Account struct {
	Name, Password string
	Role           storage.Role
	Mail           string // "": the user gets no mail
}

// Add adds an account. In addition to the errors of Create, it returns ErrMail.
func (u *Users) Add(ctx context.Context, a Account) (storage.User, error) {
	if err := checkMail(a.Mail); err != nil {
		return storage.User{}, err
	}
	account, err := u.prepare(ctx, a)
	if err != nil {
		return storage.User{}, err
	}
	switch err := u.cfg.Store.CreateUser(ctx, account); {
	case errors.Is(err, storage.ErrExists):
		return storage.User{}, ErrExists
	case err != nil:
		return storage.User{}, fmt.Errorf("users: create: %w", err)
	}
	u.cfg.Audit.Record(ctx, audit.UserCreated, audit.Person(account.ID, account.Name))
	return account, nil
}

// prepare checks a new account and hashes its password.
func (u *Users) prepare(ctx context.Context, a Account) (storage.User, error) {
	if !identifier.ValidName(a.Name) {
		return storage.User{}, ErrName
	}
	hash, err := u.hash(ctx, a.Name, a.Password)
	if err != nil {
		return storage.User{}, err
	}
	return storage.User{
		ID: NewID(), Name: a.Name, PasswordHash: hash, Role: a.Role, Mail: a.Mail, CreatedAt: u.cfg.Now(),
	}, nil
}

// NewID returns an id for a new account.
func NewID() string { return secrets.ID(identifier.User) }

func (u *Users) hash(ctx context.Context, name, password string) (string, error) {
	switch {
	case len(password) < minPassword || len(password) > maxPassword:
		return "", ErrPassword
	case isCommon(name, password):
		return "", ErrCommon
	}
	return u.hasher.hash(ctx, password)
}

const (
	minPassword = 8
	maxPassword = 1024
)

// Find returns the account with a name, or with an id if the text has the form of an id, or
// ErrUnknown. It never looks up an id as a name. An earlier version allowed names that look like
// ids, and such an account must not replace a deleted one.
func (u *Users) Find(ctx context.Context, nameOrID string) (storage.User, error) {
	find := u.cfg.Store.UserByName
	if identifier.Is(nameOrID) {
		find = u.cfg.Store.User
	}
	account, err := find(ctx, nameOrID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return account, ErrUnknown
	case err != nil:
		return account, fmt.Errorf("users: find: %w", err)
	}
	return account, nil
}

// List returns up to limit accounts with names after the given one.
func (u *Users) List(ctx context.Context, after string, limit int) ([]storage.User, error) {
	return u.cfg.Store.ListUsers(ctx, after, limit)
}

// SetPassword replaces a password and ends the user's sessions. Unless keepGrants is set, it also
// revokes the user's grants (OAuth 2.1 §4.3.3). It returns ErrPassword or ErrCommon.
func (u *Users) SetPassword(ctx context.Context, name, password string, keepGrants bool) error {
	account, err := u.Find(ctx, name)
	if err != nil {
		return err
	}
	hash, err := u.hash(ctx, account.Name, password)
	if err != nil {
		return err
	}
	err = u.passwordSet(ctx, account, u.cfg.Store.SetPassword(ctx, account.ID, hash, !keepGrants, u.cfg.Now()))
	if err == nil {
		u.forgiveTries(ctx, account)
	}
	return err
}

// Within is the session of a user who makes a change.
type Within struct {
	Session    storage.Hash
	TwoFactors bool // the user has proved two factors in it
}

// ChangePassword replaces the password at the user's request in a session, and keeps the user's
// grants. It returns storage.ErrSignedOut if the session has ended.
func (u *Users) ChangePassword(ctx context.Context, account storage.User, password string, in Within) error {
	hash, err := u.hash(ctx, account.Name, password)
	if err != nil {
		return err
	}
	err = u.passwordSet(ctx, account,
		u.cfg.Store.ChangePassword(ctx, account.ID, hash, in.Session, u.cfg.Now()))
	if err == nil && in.TwoFactors {
		u.forgiveTries(ctx, account)
	}
	return err
}

func (u *Users) passwordSet(ctx context.Context, account storage.User, err error) error {
	if err = u.changed(ctx, account, "password", err); err == nil {
		u.cfg.Notifier.Tell(ctx, account.ID, notice.Change{Kind: notice.PasswordChanged})
	}
	return err
}

// Disable ends every session and grant of an account and refuses its sign-ins.
func (u *Users) Disable(ctx context.Context, name string) error {
	return u.setDisabled(ctx, name, true)
}

// Enable lets an account sign in again.
func (u *Users) Enable(ctx context.Context, name string) error {
	return u.setDisabled(ctx, name, false)
}

func (u *Users) setDisabled(ctx context.Context, name string, disabled bool) error {
	account, err := u.Find(ctx, name)
	if err != nil {
		return err
	}
	what := "enabled"
	if disabled {
		what = "disabled"
	}
	return u.changed(ctx, account, what, u.cfg.Store.SetUserDisabled(ctx, account.ID, disabled, u.cfg.Now()))
}

// Delete removes an account and all of its data.
func (u *Users) Delete(ctx context.Context, name string) error {
	account, err := u.Find(ctx, name)
	if err != nil {
		return err
	}
	if err := u.cfg.Store.DeleteUser(ctx, account.ID, u.cfg.Now()); err != nil {
		return fmt.Errorf("users: delete: %w", err)
	}
	u.cfg.Audit.Record(ctx, audit.UserDeleted, audit.Person(account.ID, account.Name))
	return nil
}

func (u *Users) changed(ctx context.Context, account storage.User, what string, err error) error {
	if err != nil {
		return fmt.Errorf("users: change: %w", err)
	}
	u.cfg.Audit.Record(ctx, audit.UserChanged, audit.Person(account.ID, account.Name), slog.String("what", what))
	return nil
}
