package authserver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
)

// A refresh token says which one of its grant it is, so that the store keeps no row for it:
//
//	"mcprt_" base64url( kind generation issued secret grant mac )
//	bytes:              1    4          6      16     rest  16
//
// The mac, under the token key, covers all before it, and is checked before the store is
// asked. The secret is that of the grant, of which the store has the digest: a token is good
// with both only, so neither the token key nor the database makes one, nor do both of them.
// The generation counts the tokens of the grant, and issued is in milliseconds since 1970.
const (
	kindNumbered   = 1
	secretSize     = 16
	refreshMACSize = 16
	refreshSize    = 1 + 4 + 6 + secretSize + refreshMACSize // without the grant
	maxGrantID     = 64
)

// refreshToken is a refresh token that is numbered.
type refreshToken struct {
	grantID    string
	generation int64
	issuedAt   time.Time
	secret     [secretSize]byte
}

// secretHash is what the store has of the secret of a grant.
func secretHash(secret [secretSize]byte) storage.Hash { return sha256.Sum256(secret[:]) }

// compose returns the token as clients get it. Equal tokens give equal text.
func (t refreshToken) compose(key []byte) string {
	b := make([]byte, 0, refreshSize+len(t.grantID))
	b = binary.BigEndian.AppendUint32(append(b, kindNumbered), uint32(t.generation))
	ms := uint64(t.issuedAt.UnixMilli())
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(ms>>32)), uint32(ms))
	b = append(append(b, t.secret[:]...), t.grantID...)
	return refreshPrefix + base64.RawURLEncoding.EncodeToString(append(b, refreshMAC(key, b)...))
}

// successor returns the token that t turns into when it is rotated at a time.
func (t refreshToken) successor(at time.Time) refreshToken {
	t.generation, t.issuedAt = t.generation+1, at
	return t
}

func refreshMAC(key, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return h.Sum(nil)[:refreshMACSize]
}

// decodeRefresh takes a token apart without believing it, and returns with it the bytes
// that its mac is of, and the mac.
func decodeRefresh(text string) (t refreshToken, signed, mac []byte, ok bool) {
	text, ok = strings.CutPrefix(text, refreshPrefix)
	if !ok || len(text) > base64.RawURLEncoding.EncodedLen(refreshSize+maxGrantID) {
		return t, nil, nil, false
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) <= refreshSize || b[0] != kindNumbered || base64.RawURLEncoding.EncodeToString(b) != text {
		return t, nil, nil, false
	}
	signed, mac = b[:len(b)-refreshMACSize], b[len(b)-refreshMACSize:]
	t.generation = int64(binary.BigEndian.Uint32(b[1:]))
	t.issuedAt = time.UnixMilli(int64(binary.BigEndian.Uint16(b[5:]))<<32 | int64(binary.BigEndian.Uint32(b[7:]))).UTC()
	t.secret = [secretSize]byte(b[11:])
	t.grantID = string(signed[11+secretSize:])
	return t, signed, mac, true
}

// presentedRefresh is a refresh token that a client presents, as far as it can be told
// without the store.
type presentedRefresh struct {
	token  storage.PresentedRefresh
	opened refreshToken // when it is numbered
	digest storage.Hash
}

// readRefresh tells what a refresh token is that this server may have issued.
// storage.ErrNotFound for everything else, which costs no query.
func (s *Server) readRefresh(ctx context.Context, text string) (p presentedRefresh, err error) {
	if len(text) == len(refreshPrefix)+secrets.TokenSize && strings.HasPrefix(text, refreshPrefix) {
		hash := storage.Hash(secrets.Hash(text)) // of before they were numbered
		return presentedRefresh{token: storage.HashedRefresh(hash), digest: hash}, nil
	}
	t, signed, mac, ok := decodeRefresh(text)
	if !ok {
		return p, storage.ErrNotFound
	}
	if !hmac.Equal(mac, refreshMAC(s.keys.TokenKey(), signed)) {
		newer, err := s.keys.NewerTokenKey(ctx)
		if err != nil {
			return p, refusal.Unavailable(err)
		}
		if !hmac.Equal(mac, refreshMAC(newer, signed)) {
			return p, storage.ErrNotFound
		}
	}
	return presentedRefresh{opened: t, digest: secrets.Hash(text), token: storage.NumberedRefresh{
		GrantID: t.grantID, Generation: t.generation, IssuedAt: t.issuedAt,
		ExpiresAt: t.issuedAt.Add(s.cfg.Tokens.RefreshIdleTTL), Secret: secretHash(t.secret),
	}}, nil
}

// nextRefresh is a refresh token about to be issued.
type nextRefresh struct {
	seed string // 256 random bits: the token itself if it has a row
	storage.Refresh
}

func (s *Server) newRefresh(now time.Time) nextRefresh {
	seed := secrets.Token(refreshPrefix)
	return nextRefresh{seed: seed, Refresh: storage.Refresh{
		Secret: secretHash(seedSecret(seed)), Hash: secrets.Hash(seed), ExpiresAt: now.Add(s.cfg.Tokens.RefreshIdleTTL),
	}}
}

// seedSecret is the secret of a grant whose first token is made from seed.
func seedSecret(seed string) [secretSize]byte {
	digest := sha256.Sum256([]byte("secret of the grant " + seed))
	return [secretSize]byte(digest[:])
}

// firstRefresh is the token that the store has made good of a seed: the first numbered one
// of a grant or, of generation 0, one that has a row.
func (s *Server) firstRefresh(seed, grantID string, generation int64, at time.Time) string {
	if generation == 0 {
		return seed
	}
	t := refreshToken{grantID: grantID, generation: generation, issuedAt: at, secret: seedSecret(seed)}
	return t.compose(s.keys.TokenKey())
}
