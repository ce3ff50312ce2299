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

// MAC authenticates entries to the installation: who has only the database can neither make an entry nor change
// one. Each entry also has its number in a chain of its writer, so that one that is missing leaves a gap.
// A MAC depends on nothing but the entry, and so can be checked for each entry alone.
type MAC struct{ key []byte }

// macSize is how many bytes of HMAC-SHA256 an entry has (RFC 2104 §5).
const macSize = 16

// Link is the place of an entry in the chain of its writer.
type Link struct {
	Chain  string // id
	Number int64  // from 0 on, without gaps
}

var (
	errNoMAC  = errors.New("it has no MAC of a writer of this log")
	errBadMAC = errors.New("it is not what its writer wrote: its MAC does not match")
)

// Seal returns a leaf with its MAC:
//
//	CHAIN.NUMBER.MAC
//
// of the chain and number of the entry, and 16 bytes of HMAC-SHA256 in base64url.
func (m *MAC) Seal(leaf []byte, at Link) []byte {
	place := at.Chain + "." + strconv.FormatInt(at.Number, 10)
	return verify.WithMAC(leaf, place+"."+base64.RawURLEncoding.EncodeToString(m.sum(place, leaf)))
}

// Check returns the link of a sealed leaf. errNoMAC and errBadMAC say what is wrong with it.
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

// sum computes the MAC of a place, in which no NUL is, and a leaf.
func (m *MAC) sum(place string, leaf []byte) []byte {
	h := hmac.New(sha256.New, m.key)
	h.Write([]byte(place))
	h.Write([]byte{0})
	h.Write(leaf)
	return h.Sum(nil)[:macSize]
}
