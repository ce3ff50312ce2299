// Package secrets is the one source of randomness and the one user of the master
// key: it mints tokens and ids, and a Ring derives every other key and seals what
// must be read back.
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

// KeySize is the least length of a master key, in bytes.
const KeySize = 32

// ErrOpen is returned for anything that was not sealed by this ring for this
// purpose and associated data, without saying which of them differs.
var ErrOpen = errors.New("secrets: cannot open")

// TokenSize is how many characters Token adds to its prefix.
const TokenSize = 43

// Token returns prefix followed by 256 random bits in base64url, 43 characters of
// A-Z a-z 0-9 - _ (clients paste them into URLs and Basic headers unescaped). Codes, secrets
// and the seeds of refresh tokens are made by it (OAuth 2.1 §7.7, AS-04).
func Token(prefix string) string {
	var b [32]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// Bytes returns n random bytes, for what has a form of its own.
func Bytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails since Go 1.24
	return b
}

// ID returns prefix followed by 22 characters of A-Z a-z 0-9 - _: an identifier that cannot
// be guessed, with 80 random bits, but is not a credential. It begins with the time, in
// milliseconds, and ids sort by byte in the order of their times, so that the rows and index
// entries whose keys they are lie together when they are young and in use, and a new one goes
// to the end of an index that is in memory there, however large the rest has grown.
func ID(prefix string) string { return IDAt(prefix, time.Now()) }

// IDAt returns an ID that says that it was made at a time.
func IDAt(prefix string, at time.Time) string { return prefix + id(at) }

// ordered is base64url in the order of ASCII.
var ordered = base64.NewEncoding("-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz").WithPadding(
	base64.NoPadding,
)

// id sets the first of the 48 bits of the time, which stays unused for 4,000 years, so that no
// id begins with a hyphen.
func id(at time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], (1<<47|uint64(at.UnixMilli()))<<16)
	rand.Read(b[6:])
	return ordered.EncodeToString(b[:])
}

// TimeOf returns when an id of ID was made, by the clock of who made it; ok is false for what is none.
func TimeOf(id string) (at time.Time, ok bool) {
	_, body, _ := strings.Cut(id, "_")
	b, err := ordered.DecodeString(body)
	if err != nil || len(b) != 16 || b[0]>>7 == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[:8]) >> 16 &^ (1 << 47))), true
}

// Hash is the digest under which a token is stored. The tokens hashed here carry
// 256 random bits, so neither salt nor stretching adds anything (AS-06).
func Hash(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// Ring seals and derives under one primary master key, and opens under that one
// and any older ones. It is safe for concurrent use.
type Ring struct {
	masters []master // primary first
}

// master is a master key with what has been derived from it: the purposes are few and
// fixed, and deriving costs more than using.
type master struct {
	key  []byte
	tag  [4]byte
	kept *sync.Map // purpose to cipher.AEAD, or to a MAC key
}

// NewRing returns a ring of master keys, the primary first. Each must have at
// least KeySize bytes.
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

// Key derives a key of n bytes for a purpose from the primary master key (HKDF,
// RFC 5869). Equal purposes give equal keys.
func (r *Ring) Key(purpose string, n int) []byte { return derive(r.masters[0].key, purpose, n) }

// Keys derives a key for a purpose from every master key, the primary first, for
// callers that must also accept what an older key made.
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

// Fingerprint identifies the primary master key without revealing it.
func (r *Ring) Fingerprint() []byte { return derive(r.masters[0].key, "fingerprint", 16) }

// Seal encrypts plaintext with AES-256-GCM under a key derived for purpose and
// binds it to ad: key tag (4 bytes), nonce, ciphertext.
func (r *Ring) Seal(purpose string, plaintext, ad []byte) []byte {
	m := r.masters[0]
	return m.aead(purpose).Seal(m.tag[:], nil, plaintext, ad)
}

// Open reverses Seal for the same purpose and ad, under whichever master key of
// the ring sealed it. Any failure is ErrOpen.
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

// Reseal opens what Seal made and, unless the primary key sealed it, seals it again
// under that one. It reports whether it did; sealed is returned as it is otherwise.
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
