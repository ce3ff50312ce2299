package trust

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// Bounds of a key set (AS-205).
const (
	maxKeySet = 256 << 10 // bytes
	maxKeys   = 100
	minRSA    = 2048 // bits: RFC 7518 §3.3 has "2048 bits or larger"
	maxRSA    = 8192 // issuers have no longer ones, and each takes its time
)

// uses are the values of use for keys that sign assertions: SPIFFE bundles have one of their own.
var uses = []string{"", "sig", "jwt-svid"}

// parseKeySet reads a JSON Web Key Set (RFC 7517 §5). One with a private or a symmetric key is refused
// as a whole: who has published one has lost it. Keys of kinds that are not known are passed over.
func parseKeySet(raw []byte) (out []jose.JSONWebKey, err error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	switch err := json.Unmarshal(raw, &set); {
	case len(raw) > maxKeySet:
		return nil, fmt.Errorf("the key set is larger than %d KiB", maxKeySet>>10)
	case err != nil || set.Keys == nil:
		return nil, errors.New("not a JSON Web Key Set")
	case len(set.Keys) > maxKeys:
		return nil, fmt.Errorf("the key set has more than %d keys", maxKeys)
	}
	for _, one := range set.Keys {
		var secret struct{ D, K json.RawMessage }
		if err := json.Unmarshal(one, &secret); err != nil || secret.D != nil || secret.K != nil {
			return nil, errors.New("the key set has a private or a symmetric key, or one that is no object")
		}
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(one); err == nil && verifies(key) {
			out = append(out, key)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the key set has no key that can verify a signature")
	}
	return out, nil
}

// verifies reports whether signatures may be verified with a key (RFC 7517 §4.2, RFC 7518 §3.3).
func verifies(key jose.JSONWebKey) bool {
	if !key.Valid() || !key.IsPublic() || !slices.Contains(uses, key.Use) {
		return false
	}
	r, isRSA := key.Key.(*rsa.PublicKey)
	return !isRSA || r.N.BitLen() >= minRSA && r.N.BitLen() <= maxRSA
}

// verify reports whether one of the keys has signed the token. A key that is bound to an algorithm
// verifies no other (RFC 7517 §4.4), and each kind of key only those that are its own.
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

// ed25519Verifier verifies under the new name, which go-jose does not know yet.
type ed25519Verifier ed25519.PublicKey

// VerifyPayload implements jose.OpaqueVerifier.
func (k ed25519Verifier) VerifyPayload(payload, signature []byte, alg jose.SignatureAlgorithm) error {
	if alg != ed25519Name || !ed25519.Verify(ed25519.PublicKey(k), payload, signature) {
		return jose.ErrCryptoFailure
	}
	return nil
}
