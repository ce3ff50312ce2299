package keys

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/span"
)

// ErrVerify is returned for every token that this server did not issue: malformed, of another type
// or algorithm, with an unknown key, or with a wrong signature.
var ErrVerify = errors.New("keys: token is not valid")

// Sign returns claims as a signed JWT in compact form. Its header has alg, kid and typ, in this
// order. Signatures are deterministic (RFC 6979 for ES256), so equal claims under the same key give
// the same token. A repeated refresh can thus get the same reply without storing it. No algorithm
// is "none" (AS-119).
//
// The JWS is not assembled by go-jose, because go-jose always signs ECDSA with fresh randomness.
func (m *Manager) Sign(ctx context.Context, typ string, claims any) (_ string, err error) {
	ctx, end := span.Begin(ctx, "sign")
	defer func() { end(err) }()
	s, err := m.load(ctx)
	if err != nil {
		return "", fmt.Errorf("keys: sign: %w", err)
	}
	if s.signer == nil {
		return "", fmt.Errorf("keys: sign: %w", s.signErr)
	}
	header, err := json.Marshal(struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
		Type      string `json:"typ"`
	}{s.signer.alg, s.signer.id, typ})
	if err != nil {
		return "", fmt.Errorf("keys: sign: %w", err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("keys: sign: %w", err)
	}
	b64 := base64.RawURLEncoding
	token := make([]byte, 0, b64.EncodedLen(len(header))+b64.EncodedLen(len(payload))+345)
	token = append(b64.AppendEncode(token, header), '.')
	token = b64.AppendEncode(token, payload)
	signature, err := s.signer.sign(token)
	if err != nil {
		return "", fmt.Errorf("keys: sign: %w", err)
	}
	token = append(token, '.')
	return string(b64.AppendEncode(token, signature)), nil
}

// sign returns the JWS signature of the signing input (RFC 7515 §5.1, RFC 7518 §3).
func (s *signer) sign(input []byte) ([]byte, error) {
	switch key := s.key.(type) {
	case ed25519.PrivateKey:
		return ed25519.Sign(key, input), nil
	case *ecdsa.PrivateKey:
		digest := sha256.Sum256(input)
		der, err := key.Sign(nil, digest[:], crypto.SHA256) // no randomness: RFC 6979
		if err != nil {
			return nil, err
		}
		return rawECDSA(der, 32)
	}
	digest := sha256.Sum256(input)
	return s.key.Sign(nil, digest[:], crypto.SHA256) // PKCS #1 v1.5 needs no randomness
}

// rawECDSA converts an ASN.1 signature to the concatenation of R and S, each of size bytes (RFC
// 7518 §3.4).
func rawECDSA(der []byte, size int) ([]byte, error) {
	var sig struct{ R, S *big.Int }
	if rest, err := asn1.Unmarshal(der, &sig); err != nil || len(rest) != 0 {
		return nil, errors.New("malformed ECDSA signature")
	}
	out := make([]byte, 2*size)
	sig.R.FillBytes(out[:size])
	sig.S.FillBytes(out[size:])
	return out, nil
}

// Verify returns the payload of a JWT of type typ that this server signed. It checks no claims, so
// an expired token verifies. Any other token is ErrVerify. If the key is unknown while the store is
// unavailable, Verify returns another error, because the token may be valid.
//
// The payload is shared: do not change it.
func (m *Manager) Verify(ctx context.Context, token, typ string) ([]byte, error) {
	s, err := m.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("keys: verify: %w", err)
	}
	key := verifiedKey(token, typ)
	if payload, ok := s.verified.get(key); ok {
		return payload, nil
	}
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA, jose.RS256})
	if err != nil {
		return nil, ErrVerify
	}
	h := jws.Signatures[0].Protected
	if got, _ := h.ExtraHeaders[jose.HeaderType].(string); got != typ {
		return nil, ErrVerify
	}
	pub, ok := s.public[h.KeyID]
	if !ok { // another replica signs with a new key immediately if all others were revoked
		if s, err = m.newer(ctx, s); err != nil {
			return nil, fmt.Errorf("keys: verify: %w", err)
		}
		pub, ok = s.public[h.KeyID]
	}
	if !ok || pub.Algorithm != h.Algorithm { // the key determines the algorithm, not the token
		return nil, ErrVerify
	}
	payload, err := jws.Verify(pub)
	if err != nil {
		return nil, ErrVerify
	}
	s.verified.put(key, payload)
	return payload, nil
}

// JWKS returns the published keys as a JWK Set with its ETag.
func (m *Manager) JWKS(ctx context.Context) (jwks []byte, etag string, err error) {
	s, err := m.load(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("keys: %w", err)
	}
	return s.jwks, s.etag, nil
}
