package transmit

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/mcp-authd/mcp-authd/secevent"
	"github.com/mcp-authd/mcp-authd/storage"
)

// claims are the payload of a token (RFC 8417 §2.2, SSF 1.0 §4).
type claims struct {
	Issuer   string                    `json:"iss"`
	ID       string                    `json:"jti"`
	IssuedAt int64                     `json:"iat"`
	Audience string                    `json:"aud"`
	Subject  any                       `json:"sub_id"`
	Events   map[string]map[string]any `json:"events"`
}

// uris are the events of the kinds.
var uris = map[string]string{
	storage.KindSessionRevoked:   secevent.SessionRevoked,
	storage.KindCredentialChange: secevent.CredentialChange,
	storage.KindAccountDisabled:  secevent.AccountDisabled,
	storage.KindAccountEnabled:   secevent.AccountEnabled,
	storage.KindAccountPurged:    secevent.AccountPurged,
	storage.KindGrantRevoked:     secevent.GrantRevoked,
	storage.KindVerification:     secevent.Verification,
}

// claims says what a delivery is about. It says the same at each try, but for when it was issued.
func (t *Transmitter) claims(r Receiver, d storage.Delivery) (claims, error) {
	uri, ok := uris[d.Kind]
	if !ok { // of a later version
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
	if d.Kind == storage.KindVerification { // SSF 1.0 §8.1.4.1: about the stream
		c.Subject = map[string]string{"format": "opaque", "id": r.ID}
		return c, nil
	}
	c.Subject = map[string]string{"format": "iss_sub", "iss": t.Issuer, "sub": d.Subject}
	maps.Copy(event, map[string]any{"event_timestamp": d.At.Unix()})
	return c, nil
}
