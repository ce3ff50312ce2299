package dpop

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// NonceHeader is the header with a server's nonce (RFC 9449 §8).
const NonceHeader = "DPoP-Nonce"

// NonceTime is how long one nonce is issued. It is accepted for as long again.
const NonceTime = 150 * time.Second

// Nonces are values that proofs must contain, so that proofs cannot be made in advance (RFC 9449
// §8, §9). They are computed from the time and a key. Nothing is stored, and all replicas with the
// key accept them. Any number of requests may use the same nonce.
type Nonces struct {
	key     []byte
	purpose string
}

// NewNonces returns the nonces of a key for a purpose. Different purposes have different nonces.
func NewNonces(key []byte, purpose string) *Nonces { return &Nonces{key, purpose} }

// At returns the nonce at a time.
func (n *Nonces) At(now time.Time) string {
	mac := hmac.New(sha256.New, n.key)
	mac.Write([]byte(n.purpose))
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(now.Unix()/int64(NonceTime/time.Second))))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// Knows reports whether a nonce is the current, the previous or the next one. The next one is
// accepted because the clocks of replicas differ.
func (n *Nonces) Knows(nonce string, now time.Time) bool {
	same := func(at time.Time) bool { return hmac.Equal([]byte(nonce), []byte(n.At(at))) }
	return same(now) || same(now.Add(-NonceTime)) || same(now.Add(NonceTime))
}
