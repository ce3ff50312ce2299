package dcr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

const (
	maxJWKS    = 8 << 10 // bytes of a key set; an RSA-4096 key has about 800
	maxKeys    = 16
	minRSABits = 2048
)

// parseKeys reads a JSON Web Key Set (RFC 7517 §5) and returns its keys that can verify
// a signature. A set with a private or a symmetric key is refused as a whole: the client that
// publishes one has lost it, and must learn of it. Keys of kinds that we do not know
// are passed over (RFC 7517 §5).
func parseKeys(raw []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	switch err := json.Unmarshal(raw, &set); {
	case len(raw) > maxJWKS:
		return nil, fmt.Errorf("the key set is larger than %d bytes", maxJWKS)
	case err != nil || set.Keys == nil:
		return nil, errors.New("the key set is not a JSON Web Key Set")
	case len(set.Keys) > maxKeys:
		return nil, fmt.Errorf("the key set has more than %d keys", maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, one := range set.Keys {
		var secret struct{ D, K json.RawMessage }
		if err := json.Unmarshal(one, &secret); err != nil || secret.D != nil || secret.K != nil {
			return nil, errors.New("the key set has a private or a symmetric key, or one that is no object")
		}
		var k jose.JSONWebKey
		if err := k.UnmarshalJSON(one); err != nil || !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" {
			continue
		}
		if rsa, ok := k.Key.(interface{ Size() int }); ok && rsa.Size()*8 < minRSABits {
			continue
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// noKeys reports whether a key set is well formed and empty.
func noKeys(raw []byte) bool {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	return json.Unmarshal(raw, &set) == nil && set.Keys != nil && len(set.Keys) == 0
}

// checkKeys is parseKeys for a registration: a set without a usable key is of no use,
// and the canonical form is what is kept.
func checkKeys(raw []byte) ([]byte, error) {
	keys, err := parseKeys(raw)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, errors.New(
			"the key set has no public key that can verify a signature (EC, OKP, or RSA of 2048 bits and more)",
		)
	}
	var b bytes.Buffer
	err = json.Compact(&b, raw)
	return b.Bytes(), err
}
