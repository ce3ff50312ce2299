// Package authkit is an authenticator in software, and the browser around it, for tests of passkeys:
// ES256 credentials without attestation, whose counter, flags, origin and relying party a test can bend.
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

// Authenticator holds passkeys. Its fields are what it says of itself with the next answer.
type Authenticator struct {
	Origin   string // of the page that asks
	Verified bool   // the person was verified (UV)
	// Counter is added to that of a passkey with each signature; 0: it does not count.
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

// New returns an authenticator that counts and verifies, in a browser at an origin.
func New(origin string) *Authenticator {
	return &Authenticator{Origin: origin, Verified: true, Counter: 1}
}

// The flags of authenticator data (WebAuthn §6.1).
const (
	flagPresent  = 1 << 0
	flagVerified = 1 << 2
	flagAttested = 1 << 6
)

// creation and request are what is read of the options.
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

// Create is navigator.credentials.create with options in JSON; it returns the credential in JSON.
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

// attested is the attested credential data (WebAuthn §6.5.1).
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

// Get is navigator.credentials.get with options in JSON, by the newest passkey that fits.
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

// Sign answers a challenge by a passkey, whether or not it was asked for.
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

// data is the authenticator data without what is attested (WebAuthn §6.1).
func (a *Authenticator) data(p *Passkey, flags byte) []byte {
	flags |= flagPresent
	if a.Verified {
		flags |= flagVerified
	}
	rp := sha256.Sum256([]byte(p.RPID))
	return binary.BigEndian.AppendUint32(append(rp[:], flags), p.Counter)
}

// client is the client data (WebAuthn §5.8.1).
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
