package transmit

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/mcp-authd/mcp-authd/internal/secevent"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// claims is the payload of a token (RFC 8417 §2.2, SSF 1.0 §4).
type claims struct {
	Issuer   string                    `json:"iss"`
	ID       string                    `json:"jti"`
	IssuedAt int64                     `json:"iat"`
	Audience string                    `json:"aud"`
	Subject  any                       `json:"sub_id"`
	Events   map[string]map[string]any `json:"events"`
}

// uris maps each kind to the URI of its event.
var uris = map[string]string{
	storage.KindSessionRevoked:   secevent.SessionRevoked,
	storage.KindCredentialChange: secevent.CredentialChange,
	storage.KindAccountDisabled:  secevent.AccountDisabled,
	storage.KindAccountEnabled:   secevent.AccountEnabled,
	storage.KindAccountPurged:    secevent.AccountPurged,
	storage.KindGrantRevoked:     secevent.GrantRevoked,
	storage.KindVerification:     secevent.Verification,
}

// claims returns the payload of a delivery. Except for iat, it is the same in each attempt.
func (t *Transmitter) claims(r Receiver, d storage.Delivery) (claims, error) {
	uri, ok := uris[d.Kind]
	if !ok { // from a later version
		return claims{}, fmt.Errorf("transmit: the event %q is not known", d.Kind)
	}
	event := map[string]any{}
	if err := json.Unmarshal(d.Detail, &event); err != nil {
		return claims{}, fmt.Errorf("transmit: the detail of %s: %w", d.ID, err)
	}
	c := claims{
		Issuer: t.Issuer, ID: d.ID, IssuedAt: t.Now().Unix(), Audience: r.Audience,
		Events: map[string]map[string]any{uri: event},
	}
	if d.Kind == storage.KindVerification { // about the stream (SSF 1.0 §8.1.4.1)
		c.Subject = map[string]string{"format": "opaque", "id": r.ID}
		return c, nil
	}
	c.Subject = map[string]string{"format": "iss_sub", "iss": t.Issuer, "sub": d.Subject}
	maps.Copy(event, map[string]any{"event_timestamp": d.At.Unix()})
	return c, nil
}
