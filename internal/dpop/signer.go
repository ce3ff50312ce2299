package dpop

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Signer makes the proofs of a client. It is safe for concurrent use.
type Signer struct {
	signer     jose.Signer
	thumbprint string
}

// Generate returns a Signer with a new key for ES256.
func Generate() (*Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return NewSigner(key)
}

// Algorithm returns the algorithm of a private key: P-256, P-384, Ed25519, or RSA.
func Algorithm(key crypto.Signer) (jose.SignatureAlgorithm, error) {
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		switch k.Curve {
		case elliptic.P256():
			return jose.ES256, nil
		case elliptic.P384():
			return jose.ES384, nil
		}
	case ed25519.PrivateKey:
		return jose.EdDSA, nil
	case *rsa.PrivateKey:
		return jose.RS256, nil
	}
	return "", fmt.Errorf("dpop: no algorithm for a key of type %T", key)
}

// NewSigner returns a Signer for a private key that Algorithm supports.
func NewSigner(key crypto.Signer) (*Signer, error) {
	algorithm, err := Algorithm(key)
	if err != nil {
		return nil, err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key},
		(&jose.SignerOptions{EmbedJWK: true}).WithType(Type))
	if err != nil {
		return nil, err
	}
	print, err := Thumbprint(key.Public())
	return &Signer{signer, print}, err
}

// Thumbprint returns the thumbprint of the public key (RFC 7638), as in cnf.jkt and dpop_jkt.
func (s *Signer) Thumbprint() string { return s.thumbprint }

// Claims describes the request that a proof is for.
type Claims struct {
	Method string
	URL    string // of the request; query and fragment are removed (RFC 9449 §4.2)
	Token  string // the presented access token; "" for none
	Nonce  string // issued by the server; "" for none
	Now    time.Time
}

// Proof returns a proof with a new jti: the value of Header for one request.
func (s *Signer) Proof(c Claims) (string, error) {
	target, err := url.Parse(c.URL)
	if err != nil {
		return "", fmt.Errorf("dpop: %w", err)
	}
	target.RawQuery, target.ForceQuery, target.Fragment, target.RawFragment = "", false, "", ""
	hash := ""
	if c.Token != "" {
		hash = TokenHash(c.Token)
	}
	payload, err := json.Marshal(struct {
		ID        string `json:"jti"`
		Method    string `json:"htm"`
		URI       string `json:"htu"`
		IssuedAt  int64  `json:"iat"`
		TokenHash string `json:"ath,omitempty"`
		Nonce     string `json:"nonce,omitempty"`
	}{rand.Text(), c.Method, target.String(), c.Now.Unix(), hash, c.Nonce})
	if err != nil {
		return "", err
	}
	signed, err := s.signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
