package auditlog

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/audit/verify"
)

// MAC authenticates entries, so that an attacker with only the database cannot create or change
// one. It covers the entry's number in its writer's chain, so that a missing entry leaves a gap. It
// can be checked for each entry alone.
type MAC struct{ key []byte }

// macSize is the number of bytes kept of each HMAC-SHA256 (RFC 2104 §5).
const macSize = 16

// Link is the position of an entry in its writer's chain.
type Link struct {
	Chain  string // id
	Number int64  // from 0, without gaps
}

var (
	errNoMAC  = errors.New("it has no MAC of a writer of this log")
	errBadMAC = errors.New("it is not what its writer wrote: its MAC does not match")
)

// Seal returns a leaf with its MAC:
//
//	CHAIN.NUMBER.MAC
//
// where MAC is 16 bytes of HMAC-SHA256 in base64url.
func (m *MAC) Seal(leaf []byte, at Link) []byte {
	place := at.Chain + "." + strconv.FormatInt(at.Number, 10)
	return verify.WithMAC(leaf, place+"."+base64.RawURLEncoding.EncodeToString(m.sum(place, leaf)))
}

// Check returns the link of a sealed leaf, errNoMAC or errBadMAC.
func (m *MAC) Check(leaf []byte) (Link, error) {
	bare, text := verify.CutMAC(leaf)
	if text == "" {
		return Link{}, errNoMAC
	}
	end := strings.LastIndexByte(text, '.')
	if end < 0 {
		return Link{}, errBadMAC
	}
	sum, err := base64.RawURLEncoding.Strict().DecodeString(text[end+1:])
	if err != nil || !hmac.Equal(sum, m.sum(text[:end], bare)) {
		return Link{}, errBadMAC
	}
	chain, digits, _ := strings.Cut(text[:end], ".")
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return Link{}, errBadMAC
	}
	return Link{chain, number}, nil
}

// sum returns the MAC of a leaf at a place. The place must not contain NUL.
func (m *MAC) sum(place string, leaf []byte) []byte {
	h := hmac.New(sha256.New, m.key)
	h.Write([]byte(place))
	h.Write([]byte{0})
	h.Write(leaf)
	return h.Sum(nil)[:macSize]
}
