// Package secrets is the only source of randomness and the only user of the master key. It creates
// tokens and IDs. A Ring derives every other key, and encrypts data that must be read back.
package secrets

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// KeySize is the minimum length of a master key, in bytes.
const KeySize = 32

// ErrOpen is returned for data that this ring did not seal for this purpose and associated data. It
// does not say which of them differs.
var ErrOpen = errors.New("secrets: cannot open")

// TokenSize is the number of characters that Token adds to its prefix.
const TokenSize = 43

// Token returns prefix followed by 256 random bits in base64url: 43 characters of A-Z a-z 0-9 - _.
// Clients can paste them into URLs and Basic headers unescaped. It creates codes, secrets and the
// seeds of refresh tokens (OAuth 2.1 §7.7, AS-04).
func Token(prefix string) string {
	var b [32]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// Bytes returns n random bytes, for values with their own format.
func Bytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails since Go 1.24
	return b
}

// ID returns prefix followed by 22 characters of A-Z a-z 0-9 - _. It is an identifier with 80
// random bits that cannot be guessed, but is not a credential. It starts with the time in
// milliseconds, and byte order is time order. Rows and index entries that are young and in use
// therefore lie together. A new one goes to the end of an index, which is in memory there, however
// large the rest has grown.
func ID(prefix string) string { return IDAt(prefix, time.Now()) }

// IDAt returns an ID with the given time.
func IDAt(prefix string, at time.Time) string { return prefix + id(at) }

// ordered is base64url in ASCII order.
var ordered = base64.NewEncoding("-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz").WithPadding(
	base64.NoPadding,
)

// id sets the first of the 48 bits of the time, which is unused for 4,000 years, so that no ID
// starts with a hyphen.
func id(at time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], (1<<47|uint64(at.UnixMilli()))<<16)
	rand.Read(b[6:])
	return ordered.EncodeToString(b[:])
}

// TimeOf returns when an ID was created, by the clock of its creator. ok is false if id is not an
// ID.
func TimeOf(id string) (at time.Time, ok bool) {
	_, body, _ := strings.Cut(id, "_")
	b, err := ordered.DecodeString(body)
	if err != nil || len(b) != 16 || b[0]>>7 == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[:8]) >> 16 &^ (1 << 47))), true
}

// Hash returns the digest of a token for storage. The tokens hashed here have 256 random bits, so
// salt or stretching would add nothing (AS-06).
func Hash(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// Ring encrypts and derives with a primary master key, and decrypts with that key and any older
// ones. It is safe for concurrent use.
type Ring struct {
	masters []master // primary first
}

// master is a master key with a cache of derived keys. Purposes are few and fixed, and deriving
// costs more than using.
type master struct {
	key  []byte
	tag  [4]byte
	kept *sync.Map // purpose to cipher.AEAD, or to a MAC key
}

// NewRing returns a ring of master keys, the primary first. Each must have at least KeySize bytes.
func NewRing(masters ...[]byte) (*Ring, error) {
	if len(masters) == 0 {
		return nil, errors.New("secrets: no master key")
	}
	r := &Ring{}
	for i, m := range masters {
		if len(m) < KeySize {
			return nil, fmt.Errorf("secrets: master key %d has %d bytes, want at least %d", i, len(m), KeySize)
		}
		r.masters = append(r.masters, master{key: m, tag: keyTag(m), kept: &sync.Map{}})
	}
	return r, nil
}

// Key derives a key of n bytes for a purpose from the primary master key (HKDF, RFC 5869). Equal
// purposes give equal keys.
func (r *Ring) Key(purpose string, n int) []byte { return derive(r.masters[0].key, purpose, n) }

// Keys derives a key for a purpose from every master key, the primary first. It is for callers that
// must also accept the output of an older key.
func (r *Ring) Keys(purpose string, n int) [][]byte {
	out := make([][]byte, len(r.masters))
	for i, m := range r.masters {
		out[i] = derive(m.key, purpose, n)
	}
	return out
}

// MAC returns HMAC-SHA256 of data under the primary key of a purpose.
func (r *Ring) MAC(purpose string, data []byte) [32]byte {
	m := r.masters[0]
	key, ok := m.kept.Load("mac:" + purpose)
	if !ok {
		key, _ = m.kept.LoadOrStore("mac:"+purpose, derive(m.key, purpose, 32))
	}
	return [32]byte(mac(key.([]byte), data))
}

// Fingerprint returns bytes that identify the primary master key without revealing it.
func (r *Ring) Fingerprint() []byte { return derive(r.masters[0].key, "fingerprint", 16) }

// Seal encrypts plaintext with AES-256-GCM under a key derived for purpose, and binds it to ad. The
// result is the key tag (4 bytes), the nonce and the ciphertext.
func (r *Ring) Seal(purpose string, plaintext, ad []byte) []byte {
	m := r.masters[0]
	return m.aead(purpose).Seal(m.tag[:], nil, plaintext, ad)
}

// Open reverses Seal for the same purpose and ad, with any master key of the ring. It returns
// ErrOpen for any failure.
func (r *Ring) Open(purpose string, sealed, ad []byte) ([]byte, error) {
	if len(sealed) < 4 {
		return nil, ErrOpen
	}
	for _, m := range r.masters {
		if m.tag != [4]byte(sealed) {
			continue
		}
		if out, err := m.aead(purpose).Open(nil, nil, sealed[4:], ad); err == nil {
			return out, nil
		}
	}
	return nil, ErrOpen
}

func (m master) aead(purpose string) cipher.AEAD {
	a, ok := m.kept.Load("seal:" + purpose)
	if !ok {
		a, _ = m.kept.LoadOrStore("seal:"+purpose, newAEAD(m.key, purpose))
	}
	return a.(cipher.AEAD)
}

// Reseal encrypts sealed again under the primary key, unless that key already sealed it. It reports
// whether it did. Otherwise it returns sealed unchanged.
func (r *Ring) Reseal(purpose string, sealed, ad []byte) (out []byte, changed bool, err error) {
	primary := Ring{masters: r.masters[:1]}
	if _, err := primary.Open(purpose, sealed, ad); err == nil {
		return sealed, false, nil
	}
	plain, err := r.Open(purpose, sealed, ad)
	if err != nil {
		return nil, false, err
	}
	return r.Seal(purpose, plain, ad), true, nil
}

func newAEAD(master []byte, purpose string) cipher.AEAD {
	block, err := aes.NewCipher(derive(master, "seal:"+purpose, 32))
	if err != nil {
		panic("secrets: " + err.Error()) // a 32 byte key is always valid
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("secrets: " + err.Error())
	}
	return aead
}

func keyTag(master []byte) [4]byte { return [4]byte(derive(master, "key tag", 4)) }

func derive(master []byte, purpose string, n int) []byte {
	k, err := hkdf.Key(sha256.New, master, nil, "mcp-authd "+purpose, n)
	if err != nil {
		panic("secrets: " + err.Error()) // only for lengths beyond 255 hashes
	}
	return k
}

func mac(key, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return h.Sum(nil)
}
