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
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// vault seals the tokens and claims from providers (AS-223). Each row is an envelope: its own data
// key sealed by the master key, and the content sealed by the data key. Both are bound to the whole
// row, so an envelope copied into a row for another provider or user does not open. For a new
// master key, only the data key has to be sealed again.
type vault struct{ ring *secrets.Ring }

// bound returns the data that an envelope is bound to: the row, its connector, and the account and
// user that own the tokens.
func bound(u storage.Upstream) []byte {
	out, _ := json.Marshal([]string{"upstream", u.ID, u.Connector, u.Subject, u.UserID}) // encoding strings cannot fail
	return out
}

// holding is the content of an envelope.
type holding struct {
	Tokens provider.Tokens `json:"tokens"`
	// Renewed are newer tokens whose owner the provider has not confirmed yet. They are used only
	// to ask for the owner and to renew.
	Renewed *provider.Tokens `json:"renewed,omitempty"`
	Profile provider.Profile `json:"profile"`
	// Source identifies the provider of the tokens: see connector.source.
	Source string `json:"source,omitempty"`
}

// latest returns the tokens with the current refresh token.
func (h holding) latest() provider.Tokens {
	if h.Renewed != nil {
		return *h.Renewed
	}
	return h.Tokens
}

// redacted is printed in place of secrets.
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
	layout      = 2 // first byte of an envelope
	// layoutID marks envelopes of earlier versions, which are bound to the row ID alone. Only
	// settle reads them.
	layoutID = 1
)

// errUnopened means that none of the master keys opens the envelope.
var errUnopened = errors.New("the tokens cannot be opened: add the master key that sealed them to the old ones")

// seal returns the envelope of a row, under a new data key: layout (1 byte), length of the sealed
// key (2), sealed key, sealed content.
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

// open reverses seal. Every failure is secrets.ErrOpen.
func (v vault) open(u storage.Upstream) (holding, error) { return v.unseal(layout, u.Sealed, bound(u)) }

// convert seals to the whole row an envelope that an earlier version sealed to its ID.
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

// reseal seals the data key under the primary master key, unless it already is.
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

// byID reports whether an earlier version sealed the row.
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
