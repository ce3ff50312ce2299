package thirdparty

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// vault seals what providers gave us (AS-223). Each row is an envelope: a data key of its
// own, sealed by the master key, and the content under the data key. Both are bound to the
// whole row, so that none opens that was copied over another one, or whose tokens would go
// to another provider or person. Another master key needs only the data key sealed again.
type vault struct{ ring *secrets.Ring }

// bound is what an envelope is bound to: the row, whose tokens lie in it, and where they
// are good.
func bound(u storage.Upstream) []byte {
	out, _ := json.Marshal([]string{"upstream", u.ID, u.Connector, u.Subject, u.UserID}) // strings never fail
	return out
}

// holding is the content of an envelope.
type holding struct {
	Tokens provider.Tokens `json:"tokens"`
	// Renewed came after Tokens, and the provider has not said yet whose they are. They serve to ask
	// that, and to renew; nothing else.
	Renewed *provider.Tokens `json:"renewed,omitempty"`
	Profile provider.Profile `json:"profile"`
	// Source is where the tokens come from: see connector.source.
	Source string `json:"source,omitempty"`
}

// latest are the tokens whose refresh token the provider takes next.
func (h holding) latest() provider.Tokens {
	if h.Renewed != nil {
		return *h.Renewed
	}
	return h.Tokens
}

// redacted is how what must not be read prints.
const redacted = "[redacted]"

// LogValue implements slog.LogValuer.
func (holding) LogValue() slog.Value { return slog.StringValue(redacted) }

// String implements fmt.Stringer.
func (holding) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (holding) GoString() string { return redacted }

const (
	keyPurpose  = "upstream key"
	dataKeySize = 32
	layout      = 2 // the first byte of an envelope
	// layoutID is that of the versions before, whose envelopes are bound to the id of the
	// row alone. See settle for when they are read.
	layoutID = 1
)

// errUnopened: no master key that we have sealed it.
var errUnopened = errors.New("the tokens cannot be opened: add the master key that sealed them to the old ones")

// seal makes the envelope of a row, under a new data key:
// layout (1 byte), length of the sealed key (2), sealed key, sealed content.
func (v vault) seal(u storage.Upstream, h holding) ([]byte, error) {
	content, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("thirdparty: seal: %w", err)
	}
	var key [dataKeySize]byte
	rand.Read(key[:]) // never fails since Go 1.24
	to := bound(u)
	return envelope(v.ring.Seal(keyPurpose, key[:], to), dataCipher(key[:]).Seal(nil, nil, content, to)), nil
}

// open reverses seal. Any failure is secrets.ErrOpen.
func (v vault) open(u storage.Upstream) (holding, error) { return v.unseal(layout, u.Sealed, bound(u)) }

// convert seals to the whole row what a version before has sealed to its id.
func (v vault) convert(u storage.Upstream) ([]byte, error) {
	h, err := v.unseal(layoutID, u.Sealed, []byte(u.ID))
	if err != nil || h.Profile.Subject != u.Subject {
		return nil, secrets.ErrOpen
	}
	return v.seal(u, h)
}

func (v vault) unseal(form byte, sealed, to []byte) (h holding, err error) {
	lock, content, err := split(form, sealed)
	if err != nil {
		return h, err
	}
	key, err := v.ring.Open(keyPurpose, lock, to)
	if err != nil || len(key) != dataKeySize {
		return h, secrets.ErrOpen
	}
	plain, err := dataCipher(key).Open(nil, nil, content, to)
	if err != nil {
		return h, secrets.ErrOpen
	}
	if err := json.Unmarshal(plain, &h); err != nil {
		return h, secrets.ErrOpen
	}
	return h, nil
}

// reseal seals the data key under the primary master key, unless it is already.
func (v vault) reseal(u storage.Upstream) (out []byte, changed bool, err error) {
	lock, content, err := split(layout, u.Sealed)
	if err != nil {
		return nil, false, err
	}
	lock, changed, err = v.ring.Reseal(keyPurpose, lock, bound(u))
	if err != nil || !changed {
		return u.Sealed, false, err
	}
	return envelope(lock, content), true, nil
}

func envelope(lock, content []byte) []byte {
	out := binary.BigEndian.AppendUint16([]byte{layout}, uint16(len(lock)))
	return append(append(out, lock...), content...)
}

// byID reports whether a version before has sealed the row.
func byID(sealed []byte) bool { return len(sealed) > 0 && sealed[0] == layoutID }

func split(form byte, sealed []byte) (lock, content []byte, err error) {
	if len(sealed) < 3 || sealed[0] != form {
		return nil, nil, secrets.ErrOpen
	}
	n, rest := int(binary.BigEndian.Uint16(sealed[1:])), sealed[3:]
	if n > len(rest) {
		return nil, nil, secrets.ErrOpen
	}
	return rest[:n], rest[n:], nil
}

func dataCipher(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("thirdparty: " + err.Error()) // a 32 byte key is always valid
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("thirdparty: " + err.Error())
	}
	return aead
}
