package grant

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
	"github.com/mcp-authd/mcp-authd/keys"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// RefreshPrefix tells people and scanners what a refresh token is.
const RefreshPrefix = "mcprt_"

// A refresh token says which one of its grant it is, so that the store keeps no row for it:
//
//	"mcprt_" base64url( kind generation issued secret [key] grant mac )
//	bytes:              1    4          6      16     32    rest  16
//
// The mac, under the token key, covers all before it, and is checked before the store is
// asked. The secret is that of the grant, of which the store has the digest: a token is good
// with both only, so neither the token key nor the database makes one, nor do both of them.
// The generation counts the tokens of the grant, and issued is in milliseconds since 1970.
// The key is in tokens of the kind that is bound to one: its thumbprint (RFC 9449 §5). A server of
// an earlier version does not know that kind, and leaves such a token alone.
const (
	kindNumbered   = 1
	kindBound      = 2
	secretSize     = 16
	refreshMACSize = 16
	refreshSize    = 1 + 4 + 6 + secretSize + refreshMACSize // without the grant
	keySize        = sha256.Size                             // of a thumbprint
	maxGrantID     = 64
)

// RefreshToken is a refresh token that is numbered.
type RefreshToken struct {
	GrantID    string
	Generation int64
	IssuedAt   time.Time
	Secret     [secretSize]byte // of the grant
	Key        string           // thumbprint of the key that the token is bound to; "": none
}

// secretHash is what the store has of the secret of a grant.
func secretHash(secret [secretSize]byte) storage.Hash { return sha256.Sum256(secret[:]) }

// Compose returns the token as clients get it. Equal tokens give equal text.
func (t RefreshToken) Compose(key []byte) string {
	kind, key32 := byte(kindNumbered), []byte(nil)
	if t.Key != "" {
		kind = kindBound
		key32, _ = base64.RawURLEncoding.DecodeString(t.Key) // made by package dpop, or read from a token
	}
	b := make([]byte, 0, refreshSize+len(key32)+len(t.GrantID))
	b = binary.BigEndian.AppendUint32(append(b, kind), uint32(t.Generation))
	ms := uint64(t.IssuedAt.UnixMilli())
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(ms>>32)), uint32(ms))
	b = append(append(append(b, t.Secret[:]...), key32...), t.GrantID...)
	return RefreshPrefix + base64.RawURLEncoding.EncodeToString(append(b, refreshMAC(key, b)...))
}

// Successor returns the token that t turns into when it is rotated at a time.
func (t RefreshToken) Successor(at time.Time) RefreshToken {
	t.Generation, t.IssuedAt = t.Generation+1, at
	return t
}

func refreshMAC(key, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return h.Sum(nil)[:refreshMACSize]
}

// DecodeRefresh takes a token apart without believing it, and returns with it the bytes
// that its mac is of, and the mac.
func DecodeRefresh(text string) (t RefreshToken, signed, mac []byte, ok bool) {
	text, ok = strings.CutPrefix(text, RefreshPrefix)
	if !ok || len(text) > base64.RawURLEncoding.EncodedLen(refreshSize+keySize+maxGrantID) {
		return t, nil, nil, false
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || base64.RawURLEncoding.EncodeToString(b) != text || !wellSized(b) {
		return t, nil, nil, false
	}
	signed, mac = b[:len(b)-refreshMACSize], b[len(b)-refreshMACSize:]
	t.Generation = int64(binary.BigEndian.Uint32(b[1:]))
	t.IssuedAt = time.UnixMilli(int64(binary.BigEndian.Uint16(b[5:]))<<32 | int64(binary.BigEndian.Uint32(b[7:]))).UTC()
	t.Secret = [secretSize]byte(b[11:])
	rest := signed[11+secretSize:]
	if b[0] == kindBound {
		t.Key, rest = base64.RawURLEncoding.EncodeToString(rest[:keySize]), rest[keySize:]
	}
	t.GrantID = string(rest)
	return t, signed, mac, true
}

// wellSized reports whether b is of a kind that there is, and has a grant of a length that one has.
func wellSized(b []byte) bool {
	if len(b) <= refreshSize {
		return false
	}
	grant := len(b) - refreshSize
	switch b[0] {
	case kindNumbered:
	case kindBound:
		grant -= keySize
	default:
		return false
	}
	return 0 < grant && grant <= maxGrantID
}

// RefreshTokens makes refresh tokens and reads them.
type RefreshTokens struct {
	Keys    *keys.Manager // has the token key
	Ring    *secrets.Ring
	IdleTTL time.Duration // ends a token that is not used
}

// purposeSuccessor is what the seeds of successors are sealed for.
const purposeSuccessor = "refresh successor"

// presentedRefresh is a refresh token that a client presents, as far as it can be told
// without the store.
type presentedRefresh struct {
	token  storage.PresentedRefresh
	opened RefreshToken // when it is numbered
	digest storage.Hash
}

// read tells what a refresh token is that this server may have issued.
// refusal.ErrUnknownToken for everything else, which costs no query.
func (r *RefreshTokens) read(ctx context.Context, text string) (p presentedRefresh, err error) {
	if len(text) == len(RefreshPrefix)+secrets.TokenSize && strings.HasPrefix(text, RefreshPrefix) {
		hash := storage.Hash(secrets.Hash(text)) // of before they were numbered
		return presentedRefresh{token: storage.HashedRefresh(hash), digest: hash}, nil
	}
	t, signed, mac, ok := DecodeRefresh(text)
	if !ok {
		return p, refusal.ErrUnknownToken
	}
	if !hmac.Equal(mac, refreshMAC(r.Keys.TokenKey(), signed)) {
		newer, err := r.Keys.NewerTokenKey(ctx)
		if err != nil {
			return p, refusal.Unavailable(err)
		}
		if !hmac.Equal(mac, refreshMAC(newer, signed)) {
			return p, refusal.ErrUnknownToken
		}
	}
	return presentedRefresh{opened: t, digest: secrets.Hash(text), token: storage.NumberedRefresh{
		GrantID: t.GrantID, Generation: t.Generation, IssuedAt: t.IssuedAt,
		ExpiresAt: t.IssuedAt.Add(r.IdleTTL), Secret: secretHash(t.Secret),
	}}, nil
}

// heldBy checks that a client has the key that the token is bound to. An *oauth.Error.
func (p presentedRefresh) heldBy(proof Proof) error {
	switch {
	case p.opened.Key == "", p.opened.Key == proof.Thumbprint:
		return nil
	case !proof.Given():
		return errRefreshProof
	}
	return errRefreshKey
}

// nextRefresh is a refresh token about to be issued.
type nextRefresh struct {
	seed string // 256 random bits: the token itself if it has a row
	storage.Refresh
}

// next returns a token that may be issued.
func (r *RefreshTokens) next(now time.Time) nextRefresh {
	seed := secrets.Token(RefreshPrefix)
	return nextRefresh{seed: seed, Refresh: storage.Refresh{
		Secret: secretHash(seedSecret(seed)), Hash: secrets.Hash(seed), ExpiresAt: now.Add(r.IdleTTL),
	}}
}

// seedSecret is the secret of a grant whose first token is made from seed.
func seedSecret(seed string) [secretSize]byte {
	digest := sha256.Sum256([]byte("secret of the grant " + seed))
	return [secretSize]byte(digest[:])
}

// first is the token that the store has made good of a seed: the first numbered one
// of a grant or, of generation 0, one that has a row. One that has a row cannot be bound to a key, so
// it is "" then.
func (r *RefreshTokens) first(seed, grantID string, generation int64, at time.Time, key string) string {
	switch {
	case generation == 0 && key != "":
		return ""
	case generation == 0:
		return seed
	}
	t := RefreshToken{GrantID: grantID, Generation: generation, IssuedAt: at, Secret: seedSecret(seed), Key: key}
	return t.Compose(r.Keys.TokenKey())
}

// successor is the refresh token that a rotation has made good, the same for a replay.
func (r *RefreshTokens) successor(
	presented presentedRefresh, next nextRefresh, rotation storage.Rotation,
) (string, error) {
	if _, ok := presented.token.(storage.NumberedRefresh); ok {
		return presented.opened.Successor(rotation.RotatedAt).Compose(r.Keys.TokenKey()), nil
	}
	seed := next.seed
	if rotation.Replayed {
		opened, err := r.Ring.Open(purposeSuccessor, rotation.Sealed, presented.digest[:])
		if err != nil {
			return "", err
		}
		seed = string(opened)
	}
	return r.first(seed, rotation.Grant.ID, rotation.Generation, rotation.RotatedAt, presented.opened.Key), nil
}

// sealSeed keeps what the successor of a token with a row is made from, for replays.
func (r *RefreshTokens) sealSeed(presented presentedRefresh, next nextRefresh) []byte {
	if _, ok := presented.token.(storage.HashedRefresh); !ok {
		return nil
	}
	return r.Ring.Seal(purposeSuccessor, []byte(next.seed), presented.digest[:])
}

// replayableID is the jti of the access token that a refresh token turns into: the
// same for a replay with the same key, and unguessable without the master key.
func (r *RefreshTokens) replayableID(hash storage.Hash, scopes oauth.Scopes, proof Proof) string {
	data := append(hash[:], scopes.String()...)
	if proof.Given() {
		data = append(append(data, 0), proof.Thumbprint...)
	}
	mac := r.Ring.MAC("access token id", data)
	return base64.RawURLEncoding.EncodeToString(mac[:20])
}
