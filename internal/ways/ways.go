// Package ways manages the authentication methods other than passwords and provider accounts:
// passkeys, authenticator apps and recovery codes. It determines when a second factor is missing.
// It does not remove a method that a user cannot do without. It is independent of HTTP: a caller
// passes the bytes from the browser.
package ways

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// Callers distinguish these errors, in addition to errors of storage and users.
var (
	// ErrNotOffered means that passkeys are not available at this issuer; Site has the reason.
	ErrNotOffered = errors.New("ways: passkeys do not work here")
	// ErrRefused means that an authenticator's answer is not accepted.
	ErrRefused = errors.New("ways: the passkey was not accepted")
	// ErrOver means that the ceremony is too old, was already finished, or began in another
	// browser. The user must begin again.
	ErrOver = errors.New("ways: begin again")
	// ErrKnown means that the passkey is already enrolled.
	ErrKnown = errors.New("ways: this passkey is known already")
	// ErrNone means that the user has no usable passkey.
	ErrNone = errors.New("ways: no passkey works here")
	// ErrName means that a name does not have 1 to 64 characters.
	ErrName = errors.New("ways: a name must have 1 to 64 characters")
	// ErrCode means that the first code of an app was wrong.
	ErrCode = errors.New("ways: the code is not right")
)

// UnknownPasskeyError means that no account has the passkey. A page informs the authenticator,
// which then stops offering it (WebAuthn §5.1.10.2).
type UnknownPasskeyError struct {
	RPID         string
	CredentialID []byte
}

// Error implements error.
func (e *UnknownPasskeyError) Error() string { return "ways: no account has this passkey" }

// Unwrap returns ErrRefused.
func (e *UnknownPasskeyError) Unwrap() error { return ErrRefused }

// Store is the part of a store that this package uses.
type Store interface {
	storage.Users
	storage.Ways
	storage.WayEnds
	storage.RecoveryCodes
	storage.WayCustody
	storage.Once
}

// Guesses counts guesses of codes and slows down guessing. *users.Users implements it.
type Guesses interface {
	Guess(
		ctx context.Context, what users.Guessed, account storage.User, a users.Attempt,
		check func(context.Context) error,
	) error
}

// Config configures Ways. Store, Ring and Site are required. Checking codes also requires Guesses.
type Config struct {
	Store  Store
	Ring   *secrets.Ring
	Site   Site
	Policy Policy
	// Passwords and Providers are the other authentication methods: passwords, and accounts at
	// providers, by provider id.
	Passwords bool
	Providers []string
	Guesses   Guesses
	// Name is shown by authenticators and apps next to the user's name. Default: the host.
	Name  string
	Now   func() time.Time
	Audit *audit.Recorder
	// Logger gets errors that a user cannot resolve. Default: discard.
	Logger *slog.Logger
}

// Ways manages the authentication methods of all users. It is safe for concurrent use.
type Ways struct {
	cfg     Config
	auth    *webauthn.WebAuthn // nil: passkeys are not available
	in      storage.Hash       // see In
	earlier *earlier
}

// In returns a Ways for a user who makes changes in a session. A change returns
// storage.ErrSignedOut if the session has ended.
func (w *Ways) In(session storage.Hash) *Ways {
	bound := *w
	bound.in = session
	return &bound
}

// New returns Ways.
func New(c Config) (*Ways, error) {
	if c.Store == nil || c.Ring == nil || c.Site.Host == "" {
		return nil, errors.New("ways: no store, no key or no site")
	}
	if c.Name == "" {
		c.Name = c.Site.Host
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Ways{cfg: c, earlier: &earlier{}}
	if !c.Site.Offered() {
		return w, nil
	}
	var err error
	w.auth, err = webauthn.New(&webauthn.Config{
		RPID:                  c.Site.RPID,
		RPDisplayName:         c.Name,
		RPOrigins:             []string{c.Site.Origin},
		AttestationPreference: protocol.PreferNoAttestation,
		// Some password managers return extension outputs that were not requested.
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore,
	})
	if err != nil {
		return nil, fmt.Errorf("ways: %w", err)
	}
	return w, nil
}

// Site returns the site where passkeys work.
func (w *Ways) Site() Site { return w.cfg.Site }

// Admission returns the authentication methods that are accepted.
func (w *Ways) Admission() storage.Admission {
	return storage.Admission{Passwords: w.cfg.Passwords, RPIDs: w.cfg.Site.RPIDs(), Providers: w.cfg.Providers}
}

// Listed is a method in a user's list.
type Listed struct {
	storage.Way
	// Works means that the method is accepted at the current host name. Apps always are.
	Works bool
}

// List returns the methods of a user, oldest first.
func (w *Ways) List(ctx context.Context, userID string) ([]Listed, error) {
	all, err := w.cfg.Store.Ways(ctx, userID)
	if err != nil {
		return nil, fmt.Errorf("ways: list: %w", err)
	}
	out := make([]Listed, len(all))
	for i, way := range all {
		out[i] = Listed{Way: way, Works: way.Kind == storage.App || w.cfg.Site.serves(way.RPID)}
	}
	return out, nil
}

// Factors counts a user's methods that work here.
func (w *Ways) Factors(ctx context.Context, userID string) (storage.Factors, error) {
	f, err := w.cfg.Store.Factors(ctx, userID, w.Admission())
	if err != nil {
		return f, fmt.Errorf("ways: factors: %w", err)
	}
	return f, nil
}

// Rename renames a method of a user, and returns both names. It returns ErrName, or
// storage.ErrNotFound if the user has no such method.
func (w *Ways) Rename(ctx context.Context, userID, id, name string) (before, after string, err error) {
	after, err = named(name)
	if err != nil {
		return "", "", err
	}
	before, err = w.cfg.Store.RenameWay(ctx, userID, id, after, w.in)
	if err != nil {
		return "", "", fmt.Errorf("ways: rename: %w", err)
	}
	return before, after, nil
}

// Remove removes a method of a user. It returns storage.ErrLast if the user could no longer sign
// in, and storage.ErrNotFound if the user has no such method.
func (w *Ways) Remove(ctx context.Context, userID, id string) error {
	if err := w.cfg.Store.RemoveWay(ctx, userID, id, w.Admission(), w.in); err != nil {
		return fmt.Errorf("ways: remove: %w", err)
	}
	return nil
}

// RemoveRecoveryCodes removes a user's recovery codes. It returns storage.ErrLast if the user could
// no longer sign in, and storage.ErrNotFound if the user has no codes.
func (w *Ways) RemoveRecoveryCodes(ctx context.Context, userID string) error {
	if err := w.cfg.Store.RemoveRecoveryCodes(ctx, userID, w.Admission(), w.in); err != nil {
		return fmt.Errorf("ways: remove recovery codes: %w", err)
	}
	return nil
}

// RemovePassword removes a user's password. It returns storage.ErrLast if the user could no longer
// sign in, and storage.ErrNotFound if the user has no password.
func (w *Ways) RemovePassword(ctx context.Context, userID string) error {
	if err := w.cfg.Store.RemovePassword(ctx, userID, w.Admission(), w.in); err != nil {
		return fmt.Errorf("ways: remove password: %w", err)
	}
	return nil
}
