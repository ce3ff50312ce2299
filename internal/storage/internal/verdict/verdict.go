// Package verdict determines why a code or refresh token was refused. Backends accept one in the
// WHERE clause of a single UPDATE. When that changes no row, they read the row and ask this
// package, so that both backends return the same cause.
package verdict

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Code is a stored code with its grant.
type Code struct {
	storage.Code
	Grant  storage.Grant
	UsedAt time.Time
	Cut    bool // the client is deleted, or the user is gone or disabled
}

// Spent returns the digest that remains of a redeemed code, in place of its hash. It can only be
// computed from both code and challenge.
func Spent(r storage.RedeemCode) storage.Hash {
	return sha256.Sum256(append(r.Hash[:], r.Challenge...))
}

// Judge returns why r was refused. ErrSpent means that the grant must be revoked. Nil means that
// the row has changed since: try again.
func (c Code) Judge(r storage.RedeemCode) error {
	switch {
	case c.UsedAt.IsZero() && c.Hash != r.Hash:
		return storage.ErrNotFound
	case c.Grant.ClientID != r.ClientID, !c.presented(r):
		return storage.ErrMismatch
	case r.Resource != "" && c.Grant.Resource != r.Resource:
		return storage.ErrResource
	case !c.Grant.RevokedAt.IsZero(), c.Cut:
		return storage.ErrRevoked
	case !c.UsedAt.IsZero():
		return storage.ErrSpent
	case over(c.ExpiresAt, r.Now), over(c.Grant.ExpiresAt, r.Now):
		return storage.ErrExpired
	}
	return nil
}

// Waits reports whether the code was issued for the approval a and could be redeemed now.
func (c Code) Waits(a storage.Approval) bool {
	r := storage.RedeemCode{
		Hash: a.Code.Hash, ClientID: a.Grant.ClientID, Challenge: a.Code.Challenge,
		RedirectURI: a.Code.RedirectURI, Resource: a.Grant.Resource, Now: a.Now,
	}
	return c.Judge(r) == nil && c.Grant.UserID == a.Grant.UserID && slices.Equal(c.Grant.Scopes, a.Grant.Scopes)
}

// presented reports whether r contains the values that the code is bound to, as far as they are
// stored.
func (c Code) presented(r storage.RedeemCode) bool {
	if c.Hash != r.Hash {
		return c.Hash == Spent(r)
	}
	return c.Challenge == r.Challenge && (r.RedirectURI == "" || c.RedirectURI == r.RedirectURI)
}

// over compares in whole milliseconds, as the database does.
func over(expires, now time.Time) bool { return expires.UnixMilli() <= now.UnixMilli() }
