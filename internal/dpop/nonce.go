package dpop

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// NonceHeader is the header in which a server gives a nonce (RFC 9449 §8).
const NonceHeader = "DPoP-Nonce"

// NonceTime is how long one nonce is given out; it is taken as long again.
const NonceTime = 150 * time.Second

// Nonces are values that proofs have to carry, so that none is of use that was made ahead of time
// (RFC 9449 §8, §9). They are made of the time and a key, so that there is nothing to store, and
// all replicas with the key take them. Any number of requests may use the same one.
type Nonces struct {
	key     []byte
	purpose string
}

// NewNonces returns the nonces of a key for a purpose. Those of two purposes differ.
func NewNonces(key []byte, purpose string) *Nonces { return &Nonces{key, purpose} }

// At returns what proofs carry at a time.
func (n *Nonces) At(now time.Time) string {
	mac := hmac.New(sha256.New, n.key)
	mac.Write([]byte(n.purpose))
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(now.Unix()/int64(NonceTime/time.Second))))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// Knows reports whether a nonce is the present one, or the one before or after it: clocks of replicas differ.
func (n *Nonces) Knows(nonce string, now time.Time) bool {
	same := func(at time.Time) bool { return hmac.Equal([]byte(nonce), []byte(n.At(at))) }
	return same(now) || same(now.Add(-NonceTime)) || same(now.Add(NonceTime))
}
