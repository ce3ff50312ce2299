// Package dpop reads and makes proofs of possession (RFC 9449). A client signs a proof to show that
// it has the key that its tokens are bound to. The authorization server uses the package at the
// token endpoint, and the guard in front of an MCP server.
package dpop

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Header is the header with a proof, and Type the typ of a proof.
const (
	Header = "DPoP"
	Type   = "dpop+jwt"
)

const (
	// MaxSize is the maximum length of a proof, in bytes.
	MaxSize = 8 << 10
	// Window is how far the clock of a client may differ, either way.
	Window = 5 * time.Minute
	// leeway is how far the clock of a client may differ if a proof states its own validity.
	leeway = 30 * time.Second
	// The key comes with the request, so the limit keeps the caller from choosing how long
	// verification takes.
	minRSA, maxRSA = 2048, 4096 // bits
	maxID          = 512        // bytes of a jti
)

// algorithms lists the algorithms of proofs, all asymmetric (RFC 9449 §4.2).
var algorithms = []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA, jose.ES384, jose.PS256, jose.RS256}

// Algorithms returns the names of the algorithms that a proof may be signed with.
func Algorithms() []string {
	names := make([]string, len(algorithms))
	for i, a := range algorithms {
		names[i] = string(a)
	}
	return names
}

// Error says why a proof is invalid. It is for logs, and never quotes the proof.
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

// ErrNonce is returned for a proof without this server's nonce, if the checks before that have
// passed. The client may retry with the nonce.
const ErrNonce = Error("the proof has not the nonce of this server")

// Proof is a proof of possession (RFC 9449 §4.2). Other members are ignored, such as content_digest
// of older drafts for MCP.
type Proof struct {
	ID        string  `json:"jti"`   // REQUIRED
	Method    string  `json:"htm"`   // REQUIRED
	URI       string  `json:"htu"`   // REQUIRED, without query and fragment
	IssuedAt  float64 `json:"iat"`   // REQUIRED
	TokenHash string  `json:"ath"`   // REQUIRED with an access token
	Nonce     string  `json:"nonce"` // REQUIRED if the server has issued one

	// Not in RFC 9449, but RFC 7519 §4.1.4 and §4.1.5 apply to any JWT.
	Expires   *float64 `json:"exp"`
	NotBefore *float64 `json:"nbf"`

	issued     time.Time
	thumbprint string
	signed     *jose.JSONWebSignature
}

// Parse parses a proof and its key without verifying the signature. It returns an Error.
func Parse(text string) (*Proof, error) {
	if len(text) > MaxSize {
		return nil, Error("the proof is too long")
	}
	jws, err := jose.ParseSignedCompact(text, algorithms)
	if err != nil || !hasType(jws) {
		return nil, Error("no DPoP proof of an accepted algorithm")
	}
	p := &Proof{signed: jws}
	key := jws.Signatures[0].Protected.JSONWebKey
	if key == nil || !isProofKey(key, jws.Signatures[0].Protected.Algorithm) {
		return nil, Error("the proof has no public key, or one of no use")
	}
	if p.thumbprint, err = thumbprint(key); err != nil {
		return nil, Error("the key of the proof has no thumbprint")
	}
	if err := json.Unmarshal(jws.UnsafePayloadWithoutVerification(), p); err != nil {
		return nil, Error("the claims of the proof cannot be read")
	}
	p.issued = numericDate(p.IssuedAt)
	if p.ID == "" || len(p.ID) > maxID || p.issued.IsZero() {
		return nil, Error("the proof lacks jti or iat")
	}
	return p, nil
}

// hasType checks the media type in the header, whose "application/" may be omitted (RFC 7515
// §4.1.9).
func hasType(jws *jose.JSONWebSignature) bool {
	typ, _ := jws.Signatures[0].Protected.ExtraHeaders[jose.HeaderType].(string)
	return strings.TrimPrefix(strings.ToLower(typ), "application/") == Type
}

func isProofKey(k *jose.JSONWebKey, algorithm string) bool {
	if !k.Valid() || !k.IsPublic() || k.Algorithm != "" && k.Algorithm != algorithm {
		return false
	}
	if r, ok := k.Key.(*rsa.PublicKey); ok {
		return minRSA <= r.N.BitLen() && r.N.BitLen() <= maxRSA
	}
	return true
}

// numericDate converts a NumericDate (RFC 7519 §2). An invalid one counts as absent.
func numericDate(f float64) time.Time {
	if f <= 0 || f > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(f), 0)
}

// Verify checks the signature with the key in the proof.
func (p *Proof) Verify() error {
	if _, err := p.signed.Verify(*p.signed.Signatures[0].Protected.JSONWebKey); err != nil {
		return Error("the signature of the proof is wrong")
	}
	return nil
}

// Thumbprint returns the thumbprint of the key in the proof (RFC 7638), as in cnf.jkt.
func (p *Proof) Thumbprint() string { return p.thumbprint }

// Digest returns 32 bytes that identify a proof, for any jti. It includes the key, because two
// clients may choose the same jti.
func (p *Proof) Digest() string {
	h := sha256.New()
	h.Write([]byte(p.thumbprint))
	h.Write([]byte{0})
	h.Write([]byte(p.ID))
	return string(h.Sum(nil))
}

// Until returns the last instant of the proof's validity.
func (p *Proof) Until() time.Time { return p.issued.Add(Window) }

// TokenHash returns the ath for an access token.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Thumbprint returns the thumbprint of a public key (RFC 7638), as in cnf.jkt and dpop_jkt.
func Thumbprint(key crypto.PublicKey) (string, error) { return thumbprint(&jose.JSONWebKey{Key: key}) }

func thumbprint(key *jose.JSONWebKey) (string, error) {
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(sum), nil
}

// IsThumbprint reports whether a string has the form of a thumbprint.
func IsThumbprint(s string) bool {
	b, err := base64.RawURLEncoding.DecodeString(s)
	return err == nil && len(b) == sha256.Size && base64.RawURLEncoding.EncodeToString(b) == s
}
