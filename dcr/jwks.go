package dcr

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/mcp-authd/mcp-authd/internal/jwks"
)

const maxJWKS = 8 << 10 // bytes of a key set; an RSA-4096 key takes about 800

// clientKeys bounds the key sets of clients.
var clientKeys = jwks.Parser{MaxBytes: maxJWKS, MaxKeys: 16, RefuseSecrets: true}

// checkKeys validates the key set of a registration and returns it in compact form. The set must
// contain a usable public key.
func checkKeys(raw []byte) ([]byte, error) {
	keys, err := clientKeys.Parse(raw)
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
