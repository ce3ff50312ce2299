// Package verdict says why a code or refresh token was not accepted. Backends
// decide acceptance in the WHERE clause of one UPDATE; when that touches no row
// they read the row and ask here, so that both name the same cause.
package verdict

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// Code is a stored code with its grant.
type Code struct {
	storage.Code
	Grant  storage.Grant
	UsedAt time.Time
	Cut    bool // the client is deleted, or the user is gone or disabled
}

// Spent is what is left of a code that was redeemed: a digest that takes code and challenge
// to make. It stands where the code's own digest stood.
func Spent(r storage.RedeemCode) storage.Hash {
	return sha256.Sum256(append(r.Hash[:], r.Challenge...))
}

// Judge names the cause for which r was refused. ErrSpent means that the grant is
// to be revoked. Nil means that nothing is wrong, so something changed in between:
// try again.
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

// Waits reports whether an approval is the one that the code was given for, and the code could be
// redeemed.
func (c Code) Waits(a storage.Approval) bool {
	r := storage.RedeemCode{
		Hash: a.Code.Hash, ClientID: a.Grant.ClientID, Challenge: a.Code.Challenge,
		RedirectURI: a.Code.RedirectURI, Resource: a.Grant.Resource, Now: a.Now,
	}
	return c.Judge(r) == nil && c.Grant.UserID == a.Grant.UserID && slices.Equal(c.Grant.Scopes, a.Grant.Scopes)
}

// presented reports whether r carries what the code is bound to, as far as that is kept.
func (c Code) presented(r storage.RedeemCode) bool {
	if c.Hash != r.Hash {
		return c.Hash == Spent(r)
	}
	return c.Challenge == r.Challenge && (r.RedirectURI == "" || c.RedirectURI == r.RedirectURI)
}

// over compares in whole milliseconds, as the database does.
func over(expires, now time.Time) bool { return expires.UnixMilli() <= now.UnixMilli() }
