package users

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Attempt is an attempt to sign in.
type Attempt struct {
	Name, Password string
	// Network is the part of the client address that failures are counted by, such as its /24 or
	// /64. Wider lists the enclosing networks that are also counted, smallest first.
	Network string
	Wider   []string
	// KnownBrowser is the browser, if a user has signed in from it before. Failures in other
	// browsers do not slow that user down in this one.
	KnownBrowser KnownBrowser

	of Guessed // "": the password
}

// KnownBrowser is a browser that the user Name has already used to sign in. ID distinguishes it
// from the user's other browsers.
type KnownBrowser struct{ Name, ID string }

// known reports whether the user who signs in has used this browser before. An attacker who also
// has an account gains nothing from a browser that is known for that account.
func (a Attempt) known() bool { return a.Name != "" && strings.EqualFold(a.KnownBrowser.Name, a.Name) }

// ThrottledError means that there were too many attempts. The password was not checked.
type ThrottledError struct {
	RetryAfter time.Duration
	Counted    Counted
}

// Counted is the kind of count that was exceeded.
type Counted string

// Attempts are counted by account and by network, and codes of authenticator apps also separately.
// ByServer means that passwords arrive faster than the server can hash them.
const (
	ByAccount Counted = "account"
	ByNetwork Counted = "network"
	ByServer  Counted = "server"
	ByCode    Counted = "code" // wrong codes for an account
)

// Error implements error.
func (e *ThrottledError) Error() string {
	return fmt.Sprintf("users: too many attempts for the %s, try again in %s", e.Counted, e.RetryAfter)
}

// Authenticate checks a name and password. It returns ErrWrong or a *ThrottledError if they are not
// accepted. An unknown account takes as long as a wrong password (PE-08). The sign-in may require
// more than a password; SignedIn records it when it is complete.
func (u *Users) Authenticate(ctx context.Context, a Attempt) (storage.User, error) {
	release, err := u.throttle.enter(ctx, a)
	if err != nil {
		u.recordRefusal(ctx, a, err)
		return storage.User{}, err
	}
	defer release()
	account, err := u.cfg.Store.UserByName(ctx, a.Name)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return storage.User{}, fmt.Errorf("users: authenticate: %w", err)
	}
	hash := account.PasswordHash
	if account.Disabled {
		hash = ""
	}
	ok, stale, err := u.hasher.matches(ctx, a.Password, hash, a.known())
	switch {
	case err != nil:
		return storage.User{}, err
	case !ok:
		request.Of(ctx).Note(audit.Person(account.ID, account.Name)) // for the sign-in log
		u.cfg.Audit.Record(ctx, audit.LoginFailed, audit.Person(account.ID, account.Name),
			slog.String("network", a.Network), slog.String("reason", refusedFor(account)))
		if err := u.count(ctx, a); err != nil {
			return storage.User{}, fmt.Errorf("users: authenticate: %w", err)
		}
		return storage.User{}, ErrWrong
	}
	u.accepted(ctx, a, account, stale)
	return account, nil
}

const countTime = 5 * time.Second

// count counts a failure even if the caller has disconnected. Otherwise guesses would be free.
func (u *Users) count(ctx context.Context, a Attempt) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTime)
	defer cancel()
	return u.throttle.failed(ctx, a)
}

// accepted performs the steps after a correct password. Their errors do not prevent the sign-in.
func (u *Users) accepted(ctx context.Context, a Attempt, account storage.User, stale bool) {
	u.forgive(ctx, a, account)
	if stale {
		u.cfg.Logger.InfoContext(ctx,
			"password hash has another cost than configured; it is renewed when the password is set", "user",
			account.ID)
	}
}

func (u *Users) forgive(ctx context.Context, a Attempt, account storage.User) {
	if err := u.throttle.cleared(ctx, a); err != nil {
		u.cfg.Logger.WarnContext(ctx, "failed sign-ins not forgotten", "user", account.ID, "error", err)
	}
}

// SignedIn records that a user has signed in. methods are the authentication methods of the
// session. An error does not prevent the sign-in.
func (u *Users) SignedIn(ctx context.Context, account storage.User, network string, methods []string) {
	u.cfg.Audit.Record(ctx, audit.LoginSucceeded, audit.Person(account.ID, account.Name),
		slog.String("network", network), slog.String("methods", strings.Join(methods, " ")))
	if err := u.cfg.Store.TouchLogin(ctx, account.ID, u.cfg.Now()); err != nil {
		u.cfg.Logger.WarnContext(ctx, "sign-in not recorded", "user", account.ID, "error", err)
	}
}

func (u *Users) recordRefusal(ctx context.Context, a Attempt, err error) {
	if errors.As(err, new(*ThrottledError)) {
		account, _ := u.cfg.Store.UserByName(ctx, a.Name) // only for the log
		u.recordThrottled(ctx, account, a, err)
	}
}

func (u *Users) recordThrottled(ctx context.Context, account storage.User, a Attempt, err error) {
	var throttled *ThrottledError
	if errors.As(err, &throttled) {
		u.cfg.Audit.Record(ctx, audit.LoginThrottled, audit.Person(account.ID, account.Name),
			slog.String("network", a.Network), slog.String("counted", string(throttled.Counted)))
	}
}

// refusedFor returns the reason why a name and password were not accepted, for the log. An unknown
// name is not logged, because users type passwords into the wrong field.
func refusedFor(account storage.User) string {
	switch {
	case account.ID == "":
		return "unknown account"
	case account.Disabled:
		return "disabled"
	}
	return "wrong password"
}
