// Package authkit is a software authenticator, and the browser around it, for tests of passkeys. It
// makes ES256 credentials without attestation. A test can change counter, flags, origin and relying
// party.
package authkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
)

// Authenticator holds passkeys. Its fields control its next response.
type Authenticator struct {
	Origin   string // of the requesting page
	Verified bool   // user verification (UV)
	// Counter is added to a passkey's counter at each signature. 0 means no counter.
	Counter  uint32
	Passkeys []*Passkey
}

// Passkey is a credential.
type Passkey struct {
	ID         []byte
	RPID       string
	UserHandle []byte
	Counter    uint32
	key        *ecdsa.PrivateKey
}

// New returns an authenticator with a counter and user verification, in a browser at an origin.
func New(origin string) *Authenticator {
	return &Authenticator{Origin: origin, Verified: true, Counter: 1}
}

// These are flags of authenticator data (WebAuthn §6.1).
const (
	flagPresent  = 1 << 0
	flagVerified = 1 << 2
	flagAttested = 1 << 6
)

// creation and request are the options that the authenticator uses.
type (
	creation struct {
		Challenge string `json:"challenge"`
		RP        struct {
			ID string `json:"id"`
		} `json:"rp"`
		User struct {
			ID string `json:"id"`
		} `json:"user"`
		ExcludeCredentials []descriptor `json:"excludeCredentials"`
	}
	request struct {
		Challenge        string       `json:"challenge"`
		RPID             string       `json:"rpId"`
		AllowCredentials []descriptor `json:"allowCredentials"`
	}
	descriptor struct {
		ID string `json:"id"`
	}
)

// Create does what navigator.credentials.create does. Options and the returned credential are JSON.
func (a *Authenticator) Create(options []byte) ([]byte, error) {
	var o creation
	if err := json.Unmarshal(options, &o); err != nil {
		return nil, err
	}
	for _, p := range a.Passkeys {
		if listed(o.ExcludeCredentials, p.ID) {
			return nil, fmt.Errorf("authkit: this authenticator is registered already")
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	p := &Passkey{ID: make([]byte, 32), RPID: o.RP.ID, key: key}
	if p.UserHandle, err = base64.RawURLEncoding.DecodeString(o.User.ID); err != nil {
		return nil, err
	}
	rand.Read(p.ID)
	a.Passkeys = append(a.Passkeys, p)
	attested, err := p.attested()
	if err != nil {
		return nil, err
	}
	object, err := webauthncbor.Marshal(map[string]any{
		"fmt": "none", "attStmt": map[string]any{}, "authData": append(a.data(p, flagAttested), attested...),
	})
	if err != nil {
		return nil, err
	}
	return answer(p, map[string]any{
		"clientDataJSON": encode(a.client("webauthn.create", o.Challenge)), "attestationObject": encode(object),
		"transports": []string{"internal"},
	})
}

// attested returns the attested credential data (WebAuthn §6.5.1).
func (p *Passkey) attested() ([]byte, error) {
	point, err := p.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		return nil, err
	}
	public, err := webauthncbor.Marshal(webauthncose.EC2PublicKeyData{
		PublicKeyData: webauthncose.PublicKeyData{
			KeyType: int64(webauthncose.EllipticKey), Algorithm: int64(webauthncose.AlgES256),
		},
		Curve: int64(webauthncose.P256), XCoord: point[1:33], YCoord: point[33:],
	})
	if err != nil {
		return nil, err
	}
	out := make([]byte, 16, 128) // the AAGUID
	out = binary.BigEndian.AppendUint16(out, uint16(len(p.ID)))
	return append(append(out, p.ID...), public...), nil
}

// Get does what navigator.credentials.get does, with the newest matching passkey. Options are JSON.
func (a *Authenticator) Get(options []byte) ([]byte, error) {
	var o request
	if err := json.Unmarshal(options, &o); err != nil {
		return nil, err
	}
	for _, p := range slices.Backward(a.Passkeys) {
		if p.RPID == o.RPID && (len(o.AllowCredentials) == 0 || listed(o.AllowCredentials, p.ID)) {
			return a.Sign(p, o.Challenge)
		}
	}
	return nil, fmt.Errorf("authkit: no passkey for %q", o.RPID)
}

// Sign signs a challenge with a passkey, even if the options do not allow that passkey.
func (a *Authenticator) Sign(p *Passkey, challenge string) ([]byte, error) {
	p.Counter += a.Counter
	data, client := a.data(p, 0), a.client("webauthn.get", challenge)
	digest := sha256.Sum256(client)
	signed := sha256.Sum256(append(slices.Clone(data), digest[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, p.key, signed[:])
	if err != nil {
		return nil, err
	}
	return answer(p, map[string]any{
		"clientDataJSON": encode(client), "authenticatorData": encode(data), "signature": encode(signature),
		"userHandle": encode(p.UserHandle),
	})
}

// data returns the authenticator data without attested credential data (WebAuthn §6.1).
func (a *Authenticator) data(p *Passkey, flags byte) []byte {
	flags |= flagPresent
	if a.Verified {
		flags |= flagVerified
	}
	rp := sha256.Sum256([]byte(p.RPID))
	return binary.BigEndian.AppendUint32(append(rp[:], flags), p.Counter)
}

// client returns the client data (WebAuthn §5.8.1).
func (a *Authenticator) client(ceremony, challenge string) []byte {
	text, err := json.Marshal(map[string]any{
		"type": ceremony, "challenge": challenge, "origin": a.Origin, "crossOrigin": false,
	})
	if err != nil {
		panic(err)
	}
	return text
}

func answer(p *Passkey, response map[string]any) ([]byte, error) {
	return json.Marshal(map[string]any{
		"id": encode(p.ID), "rawId": encode(p.ID), "type": "public-key", "response": response,
		"clientExtensionResults": map[string]any{}, "authenticatorAttachment": "platform",
	})
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func listed(all []descriptor, id []byte) bool {
	return slices.ContainsFunc(all, func(d descriptor) bool { return d.ID == encode(id) })
}
