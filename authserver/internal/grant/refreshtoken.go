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
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// RefreshPrefix shows users and secret scanners that a value is a refresh token.
const RefreshPrefix = "mcprt_"

// A refresh token contains its number within the grant, so that the store keeps no row for it:
//
//	"mcprt_" base64url( kind generation issued secret [key] grant mac )
//	bytes:              1    4          6      16     32    rest  16
//
// The mac uses the token key and covers everything before it. It is checked before the store is
// asked. The secret belongs to the grant, and the store keeps its digest. A valid token needs both,
// so neither the token key nor the database is enough to make one, and not even both together. The
// generation counts the tokens of the grant, and issued is in milliseconds since 1970. The key is
// present in the kind that is bound to one, as a thumbprint (RFC 9449 §5). Earlier versions of the
// server do not know that kind, and ignore such a token.
const (
	kindNumbered   = 1
	kindBound      = 2
	secretSize     = 16
	refreshMACSize = 16
	refreshSize    = 1 + 4 + 6 + secretSize + refreshMACSize // without the grant
	keySize        = sha256.Size                             // of a thumbprint
	maxGrantID     = 64
)

// RefreshToken is a numbered refresh token.
type RefreshToken struct {
	GrantID    string
	Generation int64
	IssuedAt   time.Time
	Secret     [secretSize]byte // of the grant
	Key        string           // thumbprint of the key that the token is bound to, or ""
}

// secretHash returns the stored digest of a grant's secret.
func secretHash(secret [secretSize]byte) storage.Hash { return sha256.Sum256(secret[:]) }

// Compose returns the token in the form for clients. Equal tokens give equal text.
func (t RefreshToken) Compose(key []byte) string {
	kind, key32 := byte(kindNumbered), []byte(nil)
	if t.Key != "" {
		kind = kindBound
		key32, _ = base64.RawURLEncoding.DecodeString(t.Key) // valid: made by package dpop, or read from a token
	}
	b := make([]byte, 0, refreshSize+len(key32)+len(t.GrantID))
	b = binary.BigEndian.AppendUint32(append(b, kind), uint32(t.Generation))
	ms := uint64(t.IssuedAt.UnixMilli())
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(ms>>32)), uint32(ms))
	b = append(append(append(b, t.Secret[:]...), key32...), t.GrantID...)
	return RefreshPrefix + base64.RawURLEncoding.EncodeToString(append(b, refreshMAC(key, b)...))
}

// Successor returns the token that replaces t at a rotation.
func (t RefreshToken) Successor(at time.Time) RefreshToken {
	t.Generation, t.IssuedAt = t.Generation+1, at
	return t
}

func refreshMAC(key, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return h.Sum(nil)[:refreshMACSize]
}

// DecodeRefresh decodes a token without verifying it. It also returns the mac and the bytes that it
// covers.
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

// wellSized reports whether b has a known kind and a grant id of valid length.
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

// RefreshTokens creates and reads refresh tokens.
type RefreshTokens struct {
	Keys    *keys.Manager // holds the token key
	Ring    *secrets.Ring
	IdleTTL time.Duration // lifetime of an unused token
}

// purposeSuccessor is the purpose for sealing the seeds of successors.
const purposeSuccessor = "refresh successor"

// presentedRefresh is a presented refresh token, as far as it can be read without the store.
type presentedRefresh struct {
	token  storage.PresentedRefresh
	opened RefreshToken // if it is numbered
	digest storage.Hash
}

// read parses a refresh token of this server. For all other values it returns
// refusal.ErrUnknownToken without a query.
func (r *RefreshTokens) read(ctx context.Context, text string) (p presentedRefresh, err error) {
	if len(text) == len(RefreshPrefix)+secrets.TokenSize && strings.HasPrefix(text, RefreshPrefix) {
		hash := storage.Hash(secrets.Hash(text)) // an old token without a number
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

// heldBy checks that a client holds the key that the token is bound to. Its error is an
// *oauth.Error.
func (p presentedRefresh) heldBy(proof Proof) error {
	switch {
	case p.opened.Key == "", p.opened.Key == proof.Thumbprint:
		return nil
	case !proof.Given():
		return errRefreshProof
	}
	return errRefreshKey
}

// nextRefresh is a refresh token that may be issued.
type nextRefresh struct {
	seed string // 256 random bits: the token itself if it has a row
	storage.Refresh
}

// next returns a new token that may be issued.
func (r *RefreshTokens) next(now time.Time) nextRefresh {
	seed := secrets.Token(RefreshPrefix)
	return nextRefresh{seed: seed, Refresh: storage.Refresh{
		Secret: secretHash(seedSecret(seed)), Hash: secrets.Hash(seed), ExpiresAt: now.Add(r.IdleTTL),
	}}
}

// seedSecret returns the secret of a grant whose first token is made from seed.
func seedSecret(seed string) [secretSize]byte {
	digest := sha256.Sum256([]byte("secret of the grant " + seed))
	return [secretSize]byte(digest[:])
}

// first returns the token for a seed that the store has accepted: the first numbered token of a
// grant or, for generation 0, a token with a row. A token with a row cannot be bound to a key; then
// first returns "".
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

// successor returns the refresh token after a rotation, the same for a replay.
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

// sealSeed returns the sealed seed for the successor of a token with a row, for replays.
func (r *RefreshTokens) sealSeed(presented presentedRefresh, next nextRefresh) []byte {
	if _, ok := presented.token.(storage.HashedRefresh); !ok {
		return nil
	}
	return r.Ring.Seal(purposeSuccessor, []byte(next.seed), presented.digest[:])
}

// replayableID returns the jti of the access token for a refresh. It is the same for a replay with
// the same key, and cannot be guessed without the master key.
func (r *RefreshTokens) replayableID(hash storage.Hash, scopes oauth.Scopes, proof Proof) string {
	data := append(hash[:], scopes.String()...)
	if proof.Given() {
		data = append(append(data, 0), proof.Thumbprint...)
	}
	mac := r.Ring.MAC("access token id", data)
	return base64.RawURLEncoding.EncodeToString(mac[:20])
}
