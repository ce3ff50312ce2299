package ways

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Accepted lists the passkeys that an authenticator may continue to offer. It has the form for
// PublicKeyCredential.signalAllAcceptedCredentials (WebAuthn §5.1.10.3). Only the user may see it.
type Accepted struct {
	RPID                     string   `json:"rpId"`
	UserID                   string   `json:"userId"`
	AllAcceptedCredentialIDs []string `json:"allAcceptedCredentialIds"`
}

// Accepted returns a user's passkeys at each active relying party.
func (w *Ways) Accepted(ctx context.Context, userID string) ([]Accepted, error) {
	all, err := w.cfg.Store.Ways(ctx, userID)
	if err != nil {
		return nil, fmt.Errorf("ways: accepted: %w", err)
	}
	var out []Accepted
	for _, rpID := range w.cfg.Site.RPIDs() {
		a := Accepted{RPID: rpID, UserID: encode([]byte(userID)), AllAcceptedCredentialIDs: []string{}}
		for _, way := range all {
			if way.Kind == storage.Passkey && way.RPID == rpID {
				a.AllAcceptedCredentialIDs = append(a.AllAcceptedCredentialIDs, encode(way.CredentialID))
			}
		}
		out = append(out, a)
	}
	return out, nil
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
