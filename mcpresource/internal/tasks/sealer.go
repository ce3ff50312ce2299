package tasks

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
)

// ErrState means that a state was not sealed here, was changed, belongs to another user or
// operation, or has expired. It does not say which.
var ErrState = errors.New("mcpresource: state is not valid")

const (
	minSealKey  = 32
	maxSealed   = 1 << 20
	sealPurpose = "mcp-authd state 1"
)

// Sealer protects data that a client must return to the server, such as the requestState of MCP
// 2026-07-28 ("Multi Round-Trip Requests"), object handles and cursors. The client can neither read
// nor change it, no other user can use it, and it expires. Until then it can be used repeatedly.
// For an effect that must happen once, use Once of package gosdk.
type Sealer struct {
	keys []cipher.AEAD // the first encrypts
	now  func() time.Time
}

// NewSealer returns a Sealer. Keys must have at least 32 bytes. The first encrypts and all decrypt,
// so that keys can be replaced. All replicas need the same keys. Without keys it generates one for
// the life of this process.
func NewSealer(keys ...[]byte) (*Sealer, error) {
	if len(keys) == 0 {
		key := make([]byte, minSealKey)
		rand.Read(key) // never fails
		keys = [][]byte{key}
	}
	s := &Sealer{now: time.Now}
	for _, k := range keys {
		if len(k) < minSealKey {
			return nil, errors.New("mcpresource: a key of a Sealer has fewer than 32 bytes")
		}
		aead, err := newAEAD(k, sealPurpose)
		if err != nil {
			return nil, err
		}
		s.keys = append(s.keys, aead)
	}
	return s, nil
}

// newAEAD derives a key for purpose, so that the secret can also be used for other purposes.
func newAEAD(secret []byte, purpose string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, purpose, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Seal encrypts state for p and an operation, such as "tools/call" with its name and arguments. The
// result expires after life.
func (s *Sealer) Seal(p *token.Principal, operation string, state []byte, life time.Duration) string {
	plain := binary.BigEndian.AppendUint64(nil, uint64(s.now().Add(life).UnixMilli()))
	plain = append(plain, state...)
	return base64.RawURLEncoding.EncodeToString(s.keys[0].Seal(nil, nil, plain, bound(p, operation)))
}

// Open returns the state that was sealed for p and operation. It returns ErrState if sealed is not
// valid.
func (s *Sealer) Open(p *token.Principal, operation, sealed string) ([]byte, error) {
	// The decoder skips line breaks. A value must have only one spelling, because Once compares
	// used values.
	if len(sealed) > maxSealed || strings.ContainsAny(sealed, "\r\n") {
		return nil, ErrState
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return nil, ErrState
	}
	for _, key := range s.keys {
		plain, err := key.Open(nil, nil, raw, bound(p, operation))
		if err != nil || len(plain) < 8 {
			continue
		}
		if until := int64(binary.BigEndian.Uint64(plain)); s.now().UnixMilli() >= until {
			return nil, ErrState
		}
		return plain[8:], nil
	}
	return nil, ErrState
}

// bound returns the data that a state is bound to. Its length is fixed, so different pairs never
// collide.
func bound(p *token.Principal, operation string) []byte {
	who, what := sha256.Sum256([]byte(p.Key())), sha256.Sum256([]byte(operation))
	return append(who[:], what[:]...)
}
