// Package ways keeps the ways in beside passwords and accounts at providers: passkeys, authenticator
// apps and recovery codes. It says when a second factor is missing, and takes none away that a
// person could not do without. It knows no HTTP: a caller hands over the bytes that a browser sent.
package ways

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/storage"
)

// The errors that a caller tells apart, beside those of storage and of users.
var (
	// ErrNotOffered: passkeys do not work at this issuer; Site says why.
	ErrNotOffered = errors.New("ways: passkeys do not work here")
	// ErrRefused is every answer of an authenticator that is not accepted.
	ErrRefused = errors.New("ways: the passkey was not accepted")
	// ErrOver: what was begun is too old, was finished before, or began in another browser. The
	// person begins again.
	ErrOver = errors.New("ways: begin again")
	// ErrKnown: the passkey is enrolled already.
	ErrKnown = errors.New("ways: this passkey is known already")
	// ErrNone: the person has no passkey that works here.
	ErrNone = errors.New("ways: no passkey works here")
	// ErrName: a name has 1 to 64 characters.
	ErrName = errors.New("ways: a name has 1 to 64 characters")
	// ErrCode: the first code of an app was not right.
	ErrCode = errors.New("ways: the code is not right")
)

// UnknownPasskeyError says that no account has the passkey (any more). A page tells the
// authenticator, which then no longer offers it (WebAuthn §5.1.10.2).
type UnknownPasskeyError struct {
	RPID         string
	CredentialID []byte
}

// Error implements error.
func (e *UnknownPasskeyError) Error() string { return "ways: no account has this passkey" }

// Unwrap makes it a refusal.
func (e *UnknownPasskeyError) Unwrap() error { return ErrRefused }

// Store is what this package needs of a store.
type Store interface {
	storage.Users
	storage.Ways
	storage.WayEnds
	storage.RecoveryCodes
	storage.WayCustody
	storage.Once
}

// Guesses slows down callers who guess codes, and counts for it. *users.Users does.
type Guesses interface {
	Guess(
		ctx context.Context, what users.Guessed, account storage.User, a users.Attempt,
		check func(context.Context) error,
	) error
}

// Config configures Ways. Store, Ring and Site are required, Guesses for all that checks codes.
type Config struct {
	Store  Store
	Ring   *secrets.Ring
	Site   Site
	Policy Policy
	// Passwords and Providers are what else lets people in: accounts with a password, and those at
	// providers, by their ids.
	Passwords bool
	Providers []string
	Guesses   Guesses
	// Name is what authenticators and apps show beside the person's name. Default: the host.
	Name  string
	Now   func() time.Time
	Audit *audit.Recorder
	// Logger is told what a person cannot mend. Default: discard.
	Logger *slog.Logger
}

// Ways are the ways in of all people. It is safe for concurrent use.
type Ways struct {
	cfg     Config
	auth    *webauthn.WebAuthn // nil: passkeys are not offered
	in      storage.Hash       // see In
	earlier *earlier
}

// In returns the same ways, for a person who changes theirs in a session: a change is
// storage.ErrSignedOut once that has ended.
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
		// Some password managers return extension outputs that were not asked for.
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore,
	})
	if err != nil {
		return nil, fmt.Errorf("ways: %w", err)
	}
	return w, nil
}

// Site says where passkeys work.
func (w *Ways) Site() Site { return w.cfg.Site }

// Admission is what lets people in.
func (w *Ways) Admission() storage.Admission {
	return storage.Admission{Passwords: w.cfg.Passwords, RPIDs: w.cfg.Site.RPIDs(), Providers: w.cfg.Providers}
}

// Listed is a way of a person, for them to see.
type Listed struct {
	storage.Way
	// Works: it lets the person in at the present host name. Apps always do.
	Works bool
}

// List returns the ways of a person, oldest first.
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

// Factors counts what a person has that works here.
func (w *Ways) Factors(ctx context.Context, userID string) (storage.Factors, error) {
	f, err := w.cfg.Store.Factors(ctx, userID, w.Admission())
	if err != nil {
		return f, fmt.Errorf("ways: factors: %w", err)
	}
	return f, nil
}

// Rename gives a way of a person another name, and returns both. ErrName; storage.ErrNotFound when it is not
// theirs.
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

// Remove removes a way of a person. storage.ErrLast when nothing else would let them in;
// storage.ErrNotFound when it is not theirs.
func (w *Ways) Remove(ctx context.Context, userID, id string) error {
	if err := w.cfg.Store.RemoveWay(ctx, userID, id, w.Admission(), w.in); err != nil {
		return fmt.Errorf("ways: remove: %w", err)
	}
	return nil
}

// RemoveRecoveryCodes leaves a person without recovery codes. It returns storage.ErrLast when nothing
// else would let them in, and storage.ErrNotFound when they have no codes.
func (w *Ways) RemoveRecoveryCodes(ctx context.Context, userID string) error {
	if err := w.cfg.Store.RemoveRecoveryCodes(ctx, userID, w.Admission(), w.in); err != nil {
		return fmt.Errorf("ways: remove recovery codes: %w", err)
	}
	return nil
}

// RemovePassword leaves a person without a password. storage.ErrLast when nothing else would let
// them in; storage.ErrNotFound when there is none.
func (w *Ways) RemovePassword(ctx context.Context, userID string) error {
	if err := w.cfg.Store.RemovePassword(ctx, userID, w.Admission(), w.in); err != nil {
		return fmt.Errorf("ways: remove password: %w", err)
	}
	return nil
}
