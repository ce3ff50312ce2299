package trust

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/jwks"
)

// maxKeySet limits the size of a key set, in bytes (AS-205).
const maxKeySet = 256 << 10

// issuerKeys limits the key sets of issuers. Each assertion is tried with every matching key, so
// the keys must be shorter than elsewhere. SPIFFE bundles mark keys with the use jwt-svid.
var issuerKeys = jwks.Parser{
	MaxBytes:      maxKeySet,
	MaxKeys:       100,
	MaxRSA:        8192,
	Uses:          []string{"jwt-svid"},
	RefuseSecrets: true,
}

// parseKeySet parses a key set, which must have at least one key that can verify a signature.
func parseKeySet(raw []byte) ([]jose.JSONWebKey, error) {
	keys, err := issuerKeys.Parse(raw)
	if err == nil && len(keys) == 0 {
		err = errors.New("the key set has no key that can verify a signature")
	}
	return keys, err
}

// verify reports whether one of the keys has signed the token. A key with an alg verifies no other
// algorithm (RFC 7517 §4.4), and each key type verifies only its own algorithms.
func (t *token) verify(keys []jose.JSONWebKey) bool {
	return slices.ContainsFunc(keys, func(k jose.JSONWebKey) bool {
		if t.kid != "" && k.KeyID != "" && k.KeyID != t.kid || !fits(k, t.alg) {
			return false
		}
		var key any = k.Key
		if ed, ok := key.(ed25519.PublicKey); ok && t.alg == string(ed25519Name) {
			key = ed25519Verifier(ed)
		}
		_, err := t.signed.Verify(key)
		return err == nil
	})
}

func fits(k jose.JSONWebKey, alg string) bool {
	if k.Algorithm != "" && oldName(k.Algorithm) != oldName(alg) {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")
	case *ecdsa.PublicKey:
		return alg == map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[key.Curve.Params().BitSize]
	case ed25519.PublicKey:
		return oldName(alg) == string(jose.EdDSA)
	}
	return false
}

func oldName(algorithm string) string {
	if algorithm == string(ed25519Name) {
		return string(jose.EdDSA)
	}
	return algorithm
}

// ed25519Verifier verifies the algorithm name Ed25519, which go-jose does not support yet.
type ed25519Verifier ed25519.PublicKey

// VerifyPayload implements jose.OpaqueVerifier.
func (k ed25519Verifier) VerifyPayload(payload, signature []byte, alg jose.SignatureAlgorithm) error {
	if alg != ed25519Name || !ed25519.Verify(ed25519.PublicKey(k), payload, signature) {
		return jose.ErrCryptoFailure
	}
	return nil
}
