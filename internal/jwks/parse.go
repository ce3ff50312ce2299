package jwks

import (
	"cmp"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// minRSA and maxRSA bound RSA keys that verify signatures, in bits (RFC 7518 §3.3: "2048 bits or larger"). A
// longer key takes longer to verify with.
const minRSA, maxRSA = 2048, 16384

// Parser parses JSON Web Key Sets (RFC 7517 §5).
type Parser struct {
	MaxBytes int // longest set, in bytes
	MaxKeys  int // most keys of a set
	MaxRSA   int // longest RSA key, in bits; default 16384
	// Uses are values of use for keys that sign, besides "sig" and none.
	Uses []string
	// RefuseSecrets refuses a set that publishes a private or a symmetric key: its owner has lost the key,
	// and must learn of it. Otherwise such keys are skipped.
	RefuseSecrets bool
}

type document struct {
	Keys []json.RawMessage `json:"keys"`
}

// Empty reports whether raw is a key set without keys.
func Empty(raw []byte) bool {
	var set document
	return json.Unmarshal(raw, &set) == nil && set.Keys != nil && len(set.Keys) == 0
}

// Parse returns the keys of a set that can verify signatures (RFC 7517 §5). It skips keys of unknown kinds,
// keys with missing or broken members, and keys for another use.
func (p Parser) Parse(raw []byte) (out []jose.JSONWebKey, err error) {
	if len(raw) > p.MaxBytes {
		return nil, fmt.Errorf("the key set is larger than %d bytes", p.MaxBytes)
	}
	var set document
	switch err := json.Unmarshal(raw, &set); {
	case err != nil || set.Keys == nil:
		return nil, errors.New("not a JSON Web Key Set")
	case len(set.Keys) > p.MaxKeys:
		return nil, fmt.Errorf("the key set has more than %d keys", p.MaxKeys)
	}
	for _, one := range set.Keys {
		if p.RefuseSecrets && secret(one) {
			return nil, errors.New("the key set has a private or a symmetric key, or one that is no object")
		}
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(one); err == nil && p.verifies(key) {
			out = append(out, key)
		}
	}
	return out, nil
}

// secret reports whether a key has a member of a private or symmetric key (RFC 7518 §6), or is no object.
func secret(key json.RawMessage) bool {
	var members struct{ D, K json.RawMessage }
	err := json.Unmarshal(key, &members)
	return err != nil || members.D != nil || members.K != nil
}

// verifies reports whether a key may verify signatures (RFC 7517 §4.2, RFC 7518 §3.3).
func (p Parser) verifies(key jose.JSONWebKey) bool {
	if !key.Valid() || !key.IsPublic() {
		return false
	}
	if key.Use != "" && key.Use != "sig" && !slices.Contains(p.Uses, key.Use) {
		return false
	}
	r, isRSA := key.Key.(*rsa.PublicKey)
	return !isRSA || r.N.BitLen() >= minRSA && r.N.BitLen() <= cmp.Or(p.MaxRSA, maxRSA)
}
