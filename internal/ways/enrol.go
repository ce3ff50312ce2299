package ways

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// holder is a user in the form that the library needs.
type holder struct {
	storage.User
	credentials []webauthn.Credential
}

// WebAuthnID implements webauthn.User. The user handle reveals nothing about the user (WebAuthn
// §14.6.1).
func (h holder) WebAuthnID() []byte { return []byte(h.ID) }

// WebAuthnName implements webauthn.User.
func (h holder) WebAuthnName() string { return h.Name }

// WebAuthnDisplayName implements webauthn.User.
func (h holder) WebAuthnDisplayName() string { return h.Name }

// WebAuthnCredentials implements webauthn.User.
func (h holder) WebAuthnCredentials() []webauthn.Credential { return h.credentials }

// BeginPasskey begins to enroll a passkey. It must be discoverable and must verify the user, so
// that it counts as two factors and is sufficient for sign-in. The user's existing passkeys are
// excluded. browser identifies the browser that continues.
func (w *Ways) BeginPasskey(ctx context.Context, browser string, u storage.User) (Ceremony, error) {
	if w.auth == nil {
		return Ceremony{}, ErrNotOffered
	}
	known, err := w.passkeys(ctx, u.ID, w.cfg.Site.RPID)
	if err != nil {
		return Ceremony{}, err
	}
	creation, _, err := w.auth.BeginRegistration(holder{User: u},
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
			ResidentKey:        protocol.ResidentKeyRequirementRequired,
			RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification:   protocol.VerificationRequired,
		}),
		webauthn.WithExclusions(webauthn.Credentials(known).CredentialDescriptors()))
	if err != nil {
		return Ceremony{}, fmt.Errorf("ways: begin passkey: %w", err)
	}
	creation.Response.Timeout = int(ceremonyTTL.Milliseconds())
	return w.ceremony(browser, creation.Response, state{
		Purpose: enrol, UserID: u.ID, RPID: w.cfg.Site.RPID, Challenge: creation.Response.Challenge.String(),
	})
}

func (w *Ways) ceremony(browser string, options any, s state) (Ceremony, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return Ceremony{}, fmt.Errorf("ways: options: %w", err)
	}
	return Ceremony{Options: text, Sealed: w.seal(browser, s)}, nil
}

// FinishPasskey stores the passkey that a browser has created. It returns ErrName, ErrOver,
// ErrRefused, ErrKnown or storage.ErrFull. It returns storage.ErrNotFound if the account was
// deleted or disabled.
func (w *Ways) FinishPasskey(
	ctx context.Context, browser string, u storage.User, name string, a Answer,
) (storage.Way, error) {
	way, err := w.NewPasskey(ctx, browser, u, name, a)
	if err != nil {
		return storage.Way{}, err
	}
	switch err := w.cfg.Store.AddWay(ctx, way, w.in); {
	case errors.Is(err, storage.ErrExists):
		return storage.Way{}, ErrKnown
	case err != nil:
		return storage.Way{}, fmt.Errorf("ways: finish passkey: %w", err)
	}
	return way, nil
}

// NewPasskey verifies the passkey that a browser has created. The caller must store it. It returns
// ErrName, ErrOver or ErrRefused.
func (w *Ways) NewPasskey(
	ctx context.Context, browser string, u storage.User, name string, a Answer,
) (storage.Way, error) {
	if w.auth == nil {
		return storage.Way{}, ErrNotOffered
	}
	name, err := named(name)
	if err != nil {
		return storage.Way{}, err
	}
	s, err := w.begun(browser, enrol, u, a.Sealed)
	if err != nil {
		return storage.Way{}, w.refuseNew(ctx, u, storage.Passkey, err)
	}
	made, err := w.verifyNew(u, s, a.Response)
	if err != nil {
		return storage.Way{}, w.refuseNew(ctx, u, storage.Passkey, err)
	}
	if err := w.cfg.Store.Spend(ctx, spent, s.Challenge, s.expires()); err != nil {
		return storage.Way{}, w.refuseNew(ctx, u, storage.Passkey, over(err))
	}
	return storage.Way{
		ID: secrets.ID("way_"), UserID: u.ID, Kind: storage.Passkey, Name: name, RPID: s.RPID, CredentialID: made.ID,
		Data: stored(made), Counter: int64(made.Authenticator.SignCount), CreatedAt: w.cfg.Now(),
	}, nil
}

// begun opens the state of the user's enrollment. It returns ErrOver for any other state.
func (w *Ways) begun(browser string, p Purpose, u storage.User, sealed string) (state, error) {
	s, err := w.open(browser, p, sealed)
	if err == nil && s.UserID != u.ID {
		err = ended("it began for another person")
	}
	return s, err
}

// refuseNew logs why an enrollment was refused, and returns the error. Late, repeated or foreign
// forms may be attempts to add a method with a stolen form.
func (w *Ways) refuseNew(ctx context.Context, u storage.User, kind storage.WayKind, err error) error {
	if errors.Is(err, ErrOver) || errors.Is(err, ErrRefused) {
		w.cfg.Audit.Record(ctx, audit.WayRefused, audit.Person(u.ID, u.Name),
			slog.String("kind", string(kind)), slog.String("reason", err.Error()))
	}
	return err
}

// verifyNew verifies an authenticator's response about a new credential (WebAuthn §7.1).
func (w *Ways) verifyNew(u storage.User, s state, response []byte) (*webauthn.Credential, error) {
	if len(response) > maxAnswer {
		return nil, ErrRefused
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return nil, refused(err)
	}
	made, err := w.auth.CreateCredential(holder{User: u}, webauthn.SessionData{
		Challenge: s.Challenge, RelyingPartyID: s.RPID, UserID: []byte(u.ID),
		UserVerification: protocol.VerificationRequired, CredParams: webauthn.CredentialParametersDefault(),
	}, parsed)
	if err != nil {
		return nil, refused(err)
	}
	return made, nil
}

// stored returns the data of a passkey to store: all except the attestation, which is not
// requested.
func stored(c *webauthn.Credential) []byte {
	kept := *c
	kept.Attestation = webauthn.CredentialAttestation{}
	text, err := json.Marshal(kept)
	if err != nil {
		panic("ways: " + err.Error()) // cannot fail
	}
	return text
}

// credential decodes the result of stored.
func credential(way storage.Way) (c webauthn.Credential, err error) {
	if err := json.Unmarshal(way.Data, &c); err != nil {
		return c, fmt.Errorf("ways: the stored passkey %s: %w", way.ID, err)
	}
	c.Authenticator.SignCount = uint32(way.Counter)
	return c, nil
}

// passkeys returns a user's passkeys at a relying party.
func (w *Ways) passkeys(ctx context.Context, userID, rpID string) ([]webauthn.Credential, error) {
	all, err := w.cfg.Store.Ways(ctx, userID)
	if err != nil {
		return nil, fmt.Errorf("ways: passkeys: %w", err)
	}
	return credentialsAt(all, rpID)
}

func credentialsAt(all []storage.Way, rpID string) (out []webauthn.Credential, err error) {
	for _, way := range all {
		if way.Kind != storage.Passkey || way.RPID != rpID {
			continue
		}
		c, err := credential(way)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}
