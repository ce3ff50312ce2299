package ways

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Ask describes a request for a passkey.
type Ask struct {
	Purpose Purpose
	// UserID is the known user. It is "" for SignIn: the browser offers its passkeys, so the page
	// does not reveal to strangers who has one (PE-08).
	UserID string
	// RPID is the relying party of the passkey, one of the Site. If "", it is the relying party for
	// new passkeys or, for a known user, the first one with a passkey of that user.
	RPID string
}

// Proven is a user who has proved possession of a passkey.
type Proven struct {
	User storage.User
	Way  storage.Way
	// AskedAt is the time of the request. The passkey may have answered at any time since then.
	AskedAt time.Time
}

// BeginSignIn requests a passkey. It returns ErrNone if a known user has no passkey.
func (w *Ways) BeginSignIn(ctx context.Context, browser string, ask Ask) (Ceremony, error) {
	if w.auth == nil {
		return Ceremony{}, ErrNotOffered
	}
	if ask.Purpose != SignIn && ask.UserID == "" || ask.Purpose == SignIn && ask.UserID != "" {
		return Ceremony{}, fmt.Errorf("ways: %q of %q makes no sense", ask.Purpose, ask.UserID)
	}
	rpID, allowed, err := w.asked(ctx, ask)
	if err != nil {
		return Ceremony{}, err
	}
	assertion, _, err := w.auth.BeginDiscoverableLogin(
		webauthn.WithLoginRelyingPartyID(rpID),
		webauthn.WithAllowedCredentials(webauthn.Credentials(allowed).CredentialDescriptors()),
		webauthn.WithUserVerification(verification(ask.Purpose)))
	if err != nil {
		return Ceremony{}, fmt.Errorf("ways: begin sign-in: %w", err)
	}
	assertion.Response.Timeout = int(ceremonyTTL.Milliseconds())
	return w.ceremony(browser, assertion.Response, state{
		Purpose: ask.Purpose, UserID: ask.UserID, RPID: rpID, Challenge: assertion.Response.Challenge.String(),
	})
}

// verification returns whether the authenticator must verify the user. It must unless the passkey
// is only a second factor (PE-07).
func verification(p Purpose) protocol.UserVerificationRequirement {
	if p == Second {
		return protocol.VerificationPreferred
	}
	return protocol.VerificationRequired
}

// asked returns the relying party to use, and the allowed passkeys of a known user.
func (w *Ways) asked(ctx context.Context, ask Ask) (rpID string, allowed []webauthn.Credential, err error) {
	at := w.cfg.Site.RPIDs()
	if ask.RPID != "" {
		if !w.cfg.Site.serves(ask.RPID) {
			return "", nil, ErrNone
		}
		at = []string{ask.RPID}
	}
	if ask.UserID == "" {
		return at[0], nil, nil
	}
	all, err := w.cfg.Store.Ways(ctx, ask.UserID)
	if err != nil {
		return "", nil, fmt.Errorf("ways: begin sign-in: %w", err)
	}
	for _, rpID := range at {
		if allowed, err = credentialsAt(all, rpID); err != nil || len(allowed) > 0 {
			return rpID, allowed, err
		}
	}
	return "", nil, ErrNone
}

// FinishSignIn returns the user of a passkey. It returns ErrOver, or ErrRefused for an answer that
// is not accepted. If no account has the passkey, the error is an *UnknownPasskeyError.
func (w *Ways) FinishSignIn(ctx context.Context, browser string, p Purpose, a Answer) (Proven, error) {
	if w.auth == nil {
		return Proven{}, ErrNotOffered
	}
	s, err := w.open(browser, p, a.Sealed)
	var out Proven
	if err == nil {
		out, err = w.prove(ctx, s, a.Response)
	}
	if errors.Is(err, ErrRefused) || errors.Is(err, ErrOver) {
		request.Of(ctx).Note(audit.Person(out.User.ID, out.User.Name)) // for the sign-in log
		w.cfg.Audit.Record(ctx, audit.LoginFailed, audit.Person(out.User.ID, out.User.Name),
			slog.String("reason", err.Error()))
		return Proven{}, err
	}
	return out, err
}

// prove verifies an assertion. With a refusal it also returns the passkey's user, if known.
func (w *Ways) prove(ctx context.Context, s state, response []byte) (Proven, error) {
	if len(response) > maxAnswer {
		return Proven{}, ErrRefused
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return Proven{}, refused(err)
	}
	out := Proven{AskedAt: s.expires().Add(-ceremonyTTL)}
	out.Way, out.User, err = w.cfg.Store.PasskeyOwner(ctx, parsed.RawID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		_, _ = w.verify(decoyOf(s, parsed), s, parsed) // takes as long as for a known passkey (PE-08)
		return out, &UnknownPasskeyError{RPID: s.RPID, CredentialID: parsed.RawID}
	case err != nil:
		return Proven{}, fmt.Errorf("ways: finish sign-in: %w", err)
	}
	used, err := w.verify(out, s, parsed)
	if err != nil {
		return out, err
	}
	if err := w.cfg.Store.Spend(ctx, spent, s.Challenge, s.expires()); err != nil {
		return out, over(err)
	}
	return w.used(ctx, out, used)
}

// verify verifies an assertion with a passkey and its owner (WebAuthn §7.2).
func (w *Ways) verify(p Proven, s state, parsed *protocol.ParsedCredentialAssertionData) (*webauthn.Credential, error) {
	known, err := credential(p.Way)
	if err != nil {
		return nil, err
	}
	used, err := w.auth.ValidateLogin(holder{User: p.User, credentials: []webauthn.Credential{known}},
		webauthn.SessionData{
			Challenge: s.Challenge, RelyingPartyID: s.RPID, UserID: []byte(p.User.ID),
			UserVerification: verification(s.Purpose),
		}, parsed)
	switch {
	case err != nil:
		return nil, refused(err)
	case p.Way.RPID != s.RPID:
		return nil, refused(errors.New("a passkey of another relying party"))
	case s.UserID != "" && s.UserID != p.User.ID:
		return nil, refused(errors.New("another person's passkey"))
	case s.UserID == "" && len(parsed.Response.UserHandle) == 0:
		return nil, refused(errors.New("no user handle")) // WebAuthn §7.2 step 6
	case p.User.Disabled:
		return nil, refused(errors.New("disabled"))
	}
	return used, nil
}

// used records the use of a passkey. If the counter has decreased, there may be a copy of the
// authenticator (WebAuthn §6.1.1). This is logged and the sign-in is refused.
func (w *Ways) used(ctx context.Context, p Proven, used *webauthn.Credential) (Proven, error) {
	if used.Authenticator.CloneWarning {
		w.cfg.Audit.Record(ctx, audit.PasskeyCounter, audit.Person(p.User.ID, p.User.Name),
			slog.String("way", p.Way.ID), slog.Int64("counter", p.Way.Counter))
		return p, refused(errors.New("the counter went back"))
	}
	use := storage.WayUse{
		ID: p.Way.ID, From: p.Way.Counter, To: int64(used.Authenticator.SignCount), Now: w.cfg.Now(),
	}
	used.Authenticator.CloneWarning = false
	if data := stored(used); !bytes.Equal(data, p.Way.Data) {
		use.Data = data
	}
	switch err := w.cfg.Store.UseWay(ctx, use); {
	case errors.Is(err, storage.ErrChanged), errors.Is(err, storage.ErrNotFound):
		return p, ended("the passkey was used, or removed, at the same moment")
	case err != nil:
		return Proven{}, fmt.Errorf("ways: finish sign-in: %w", err)
	}
	p.Way.Counter, p.Way.LastUsedAt = use.To, use.Now
	return p, nil
}
