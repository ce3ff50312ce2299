package mcpresource

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/issuer"
)

// The algorithms of proofs: asymmetric alone (RFC 9449 §4.2).
var (
	dpopAlgorithms = []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA, jose.ES384, jose.PS256, jose.RS256}
	dpopNames      = []string{"ES256", "EdDSA", "ES384", "PS256", "RS256"}
)

const (
	dpopType = "dpop+jwt"
	maxProof = 8 << 10 // bytes
	// The key comes with the request, so the limit keeps the caller from choosing how long it takes
	// to verify.
	minRSA, maxRSA = 2048, 4096 // bits
)

// dpopProof is a proof of possession (RFC 9449 §4.2), not verified yet.
type dpopProof struct {
	ID        string      `json:"jti"`   // REQUIRED
	Method    string      `json:"htm"`   // REQUIRED
	URI       string      `json:"htu"`   // REQUIRED, without query and fragment
	IssuedAt  json.Number `json:"iat"`   // REQUIRED
	TokenHash string      `json:"ath"`   // REQUIRED with an access token
	Nonce     string      `json:"nonce"` // REQUIRED when the server has given one

	issued     time.Time
	thumbprint string
	signed     *jose.JSONWebSignature
}

// parseProof reads a proof and its key.
func parseProof(header string) (*dpopProof, error) {
	if len(header) > maxProof {
		return nil, invalid("the proof is too long")
	}
	jws, err := jose.ParseSignedCompact(header, dpopAlgorithms)
	if err != nil || !issuer.HasType(jws, dpopType) {
		return nil, invalid("no DPoP proof of an accepted algorithm")
	}
	p := &dpopProof{signed: jws}
	key := jws.Signatures[0].Protected.JSONWebKey
	if key == nil || !isProofKey(key, jws.Signatures[0].Protected.Algorithm) {
		return nil, invalid("the proof has no public key, or one of no use")
	}
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, invalid("the key of the proof has no thumbprint")
	}
	p.thumbprint = base64.RawURLEncoding.EncodeToString(sum)
	if err := json.Unmarshal(jws.UnsafePayloadWithoutVerification(), p); err != nil {
		return nil, invalid("the claims of the proof cannot be read")
	}
	p.issued = issuer.NumericDate(p.IssuedAt)
	if p.ID == "" || p.issued.IsZero() {
		return nil, invalid("the proof lacks jti or iat")
	}
	return p, nil
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

// verify checks the signature by the key in the proof.
func (p *dpopProof) verify() error {
	if _, err := p.signed.Verify(*p.signed.Signatures[0].Protected.JSONWebKey); err != nil {
		return invalid("the signature of the proof is wrong")
	}
	return nil
}

// id is what is remembered of a proof: of fixed length, whatever its jti is. Two clients
// may choose the same jti.
func (p *dpopProof) id() string {
	h := sha256.New()
	h.Write([]byte(p.thumbprint))
	h.Write([]byte{0})
	h.Write([]byte(p.ID))
	return string(h.Sum(nil))
}

// Replays remembers what may be used once.
type Replays interface {
	// Use records id until then and reports whether it was new; of two concurrent calls, one gets
	// true. An id is 32 bytes of any value.
	Use(ctx context.Context, id string, until time.Time) (first bool, err error)
}

const memoryReplays = 100_000 // 16 MB when all are in use

func newMemoryReplays(size int, now func() time.Time) *replays {
	return &replays{bounded.New[string, struct{}](size, now)}
}

type replays struct {
	used *bounded.Map[string, struct{}]
}

func (m *replays) Use(_ context.Context, id string, until time.Time) (bool, error) {
	return m.used.Add(id, struct{}{}, until.Add(time.Nanosecond)), nil // a proof is good until then, and then
}
