package storage

import (
	"context"
	"time"
)

// MaxGrace is the longest grace that RotateRefresh knows of.
const MaxGrace = 10 * time.Minute

// Redemptions exchanges codes and refresh tokens, each of them once.
type Redemptions interface {
	// RedeemCode consumes a code and makes the first refresh token of the grant good,
	// in one round trip on the way of success. Of N concurrent calls one succeeds.
	//
	// Errors: ErrNotFound; ErrMismatch when client, challenge or (if given) redirect
	// URI differ and ErrResource when a given resource does, in which cases the code
	// stays untouched, so that guessing does not spend it; ErrExpired; ErrSpent when a matching request comes a second
	// time, in which case the grant has been revoked (OAuth 2.1 §4.1.3) and the
	// returned Redemption names it; ErrRevoked when the grant was cut off, be it by an
	// earlier second use. Of a code that was redeemed one digest is left, of code and
	// challenge: a second request matches with both of them, client and resource. The second
	// use of a code that names no grant is ErrNotFound.
	RedeemCode(ctx context.Context, r RedeemCode) (Redemption, error)
	// RotateRefresh exchanges a refresh token for its successor, in one round trip
	// on the way of success. Of N concurrent calls exactly one gets a Rotation with
	// Replayed false. Within Grace after that rotation the same token gets the same
	// successor again (Replayed true), also when that has been rotated in turn.
	//
	// A numbered token that is newer than the store knows was issued by a database that
	// has lost it since: it is rotated as well (Recovered true), unless it is expired.
	//
	// Errors: ErrNotFound; ErrMismatch (another client's token; untouched); ErrResource
	// (a given resource is not the grant's; untouched);
	// ErrExpired (idle or absolute); ErrRevoked; ErrPaused (untouched); ErrSuperseded; ErrSpent
	// when it was rotated more than Grace ago, in which case the grant has been revoked (OAuth 2.1 §4.3.1)
	// and the returned Rotation names it. A grant that was revoked before is
	// ErrRevoked, so ErrSpent always means that this call has found the reuse.
	RotateRefresh(ctx context.Context, r RotateRefresh) (Rotation, error)
}

// RedeemCode is a request to exchange a code.
type RedeemCode struct {
	Hash        Hash
	GrantID     string // that the code names; "" for a code of an earlier version, which names none
	ClientID    string
	Challenge   string // computed from the presented verifier
	RedirectURI string // "" when the token request has none (OAuth 2.1 §10.2)
	Resource    string // canonical; "" when the token request names none
	Refresh     *Refresh
	From        string // the network that the client asks from, for the person; "": not known
	Now         time.Time
}

// Redemption is the outcome of RedeemCode.
type Redemption struct {
	Grant Grant
	// Generation is that of the first refresh token, issued at Now; 0: it has a row, under
	// Refresh.Hash, or there is none.
	Generation int64
}

// Refresh is a refresh token about to be made good. It is numbered, or has a row: the store
// says which in its answer.
type Refresh struct {
	Secret    Hash      // of the secret of a grant whose tokens are numbered from here on
	Hash      Hash      // of the token, if it has a row
	ExpiresAt time.Time // idle expiry; the store cuts it to the absolute end of the grant
}

// PresentedRefresh is a refresh token that a client presents: a NumberedRefresh or a
// HashedRefresh.
type PresentedRefresh interface{ presented() }

// NumberedRefresh is a refresh token that says which one of its grant it is. It has no row:
// the grant knows the generation of the newest one. That the token is genuine the
// caller has seen before; that its grant is, Secret shows.
type NumberedRefresh struct {
	GrantID    string
	Generation int64 // the first is 1
	IssuedAt   time.Time
	ExpiresAt  time.Time // idle expiry, for a token that the store has lost
	Secret     Hash      // of the secret of the grant, which its tokens carry
}

// HashedRefresh is the hash of a refresh token that has a row, as they all had before step
// 12 of the schema.
type HashedRefresh Hash

func (NumberedRefresh) presented() {}
func (HashedRefresh) presented()   {}

// RotateRefresh is a request to exchange a refresh token.
type RotateRefresh struct {
	Token    PresentedRefresh
	ClientID string
	Resource string        // canonical; "" when the request names none
	Next     Refresh       // the successor; of a numbered token only ExpiresAt counts
	Sealed   []byte        // of a HashedRefresh: what its successor is made from, sealed, for replies within Grace
	Grace    time.Duration // at most MaxGrace; zero: the second use is reuse
	Outage   time.Duration // how much longer Grace is while the successor is unused; not for a HashedRefresh
	From     string        // the network that the client asks from, for the person; "": not known
	Now      time.Time
}

// Rotation is the outcome of RotateRefresh.
type Rotation struct {
	Grant      Grant
	RotatedAt  time.Time // when the token was first rotated, and its successor issued
	Generation int64     // of the successor; 0: it has a row
	Sealed     []byte    // of a HashedRefresh: the winner's
	Replayed   bool
	Recovered  bool // the store had lost the token
}
