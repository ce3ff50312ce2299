package storage

import (
	"context"
	"time"
)

// MaxGrace is the longest grace that RotateRefresh supports.
const MaxGrace = 10 * time.Minute

// Redemptions exchanges codes and refresh tokens. Each works once.
type Redemptions interface {
	// RedeemCode uses up a code and activates the first refresh token of the grant. Success takes
	// one round trip. One of N concurrent calls succeeds.
	//
	// Errors: ErrNotFound. ErrMismatch if the client, challenge or (if given) redirect URI differ,
	// and ErrResource if a given resource does. Both leave the code unused, so that guessing does
	// not spend it. ErrExpired. ErrRevoked if the grant was revoked, also by an earlier second use.
	//
	// ErrSpent if a matching request comes a second time. The grant has then been revoked (OAuth
	// 2.1 §4.1.3), and the returned Redemption names it. A redeemed code leaves one digest, of code
	// and challenge. A second request matches if both agree with it, and client and resource with
	// the grant. The second use of a code that names no grant is ErrNotFound.
	RedeemCode(ctx context.Context, r RedeemCode) (Redemption, error)
	// RotateRefresh exchanges a refresh token for its successor. Success takes one round trip.
	// Exactly one of N concurrent calls gets a Rotation with Replayed false. Within Grace after
	// that rotation, the same token gets the same successor again (Replayed true), even if the
	// successor has itself been rotated.
	//
	// A numbered token that is newer than the store knows was issued by a database that has since
	// lost it. It is also rotated (Recovered true), unless it is expired.
	//
	// Errors: ErrNotFound. ErrMismatch for another client's token, which stays unused. ErrResource
	// if a given resource is not the grant's; the token stays unused. ErrExpired (idle or
	// absolute). ErrRevoked. ErrPaused; the token stays unused. ErrSuperseded.
	//
	// ErrSpent if the token was rotated more than Grace ago. The grant has then been revoked (OAuth
	// 2.1 §4.3.1), and the returned Rotation names it. A grant that was already revoked is
	// ErrRevoked, so ErrSpent always means that this call found the reuse.
	RotateRefresh(ctx context.Context, r RotateRefresh) (Rotation, error)
}

// RedeemCode is a request to exchange a code.
type RedeemCode struct {
	Hash        Hash
	GrantID     string // named by the code; "" for a code of an earlier version, which names none
	ClientID    string
	Challenge   string // computed from the presented verifier
	RedirectURI string // "" when the token request has none (OAuth 2.1 §10.2)
	Resource    string // canonical; "" when the token request names none
	Refresh     *Refresh
	From        string // the network of the client, for the user to see; "": not known
	Now         time.Time
}

// Redemption is the result of RedeemCode.
type Redemption struct {
	Grant Grant
	// Generation is the generation of the first refresh token, issued at Now. 0: the token has a
	// row under Refresh.Hash, or does not exist.
	Generation int64
}

// Refresh is a refresh token about to be activated. It is numbered or has a row; the store's answer
// says which.
type Refresh struct {
	Secret    Hash      // of the secret of a grant whose tokens are numbered from now on
	Hash      Hash      // of the token, if it has a row
	ExpiresAt time.Time // idle expiry; the store limits it to the grant's absolute expiry
}

// PresentedRefresh is a refresh token presented by a client: a NumberedRefresh or a HashedRefresh.
type PresentedRefresh interface{ presented() }

// NumberedRefresh is a refresh token that contains its generation. It has no row: the grant stores
// the generation of its newest token. The caller has already checked that the token is genuine.
// Secret shows that its grant is.
type NumberedRefresh struct {
	GrantID    string
	Generation int64 // the first is 1
	IssuedAt   time.Time
	ExpiresAt  time.Time // idle expiry, used for a token that the store has lost
	Secret     Hash      // of the grant's secret, which its tokens carry
}

// HashedRefresh is the hash of a refresh token that has a row. Before step 12 of the schema, every
// refresh token had one.
type HashedRefresh Hash

func (NumberedRefresh) presented() {}
func (HashedRefresh) presented()   {}

// RotateRefresh is a request to exchange a refresh token.
type RotateRefresh struct {
	Token    PresentedRefresh
	ClientID string
	Resource string        // canonical; "" when the request names none
	Next     Refresh       // the successor; for a numbered token only ExpiresAt counts
	Sealed   []byte        // for a HashedRefresh: the sealed input of its successor, for replies within Grace
	Grace    time.Duration // at most MaxGrace; zero: any second use is reuse
	Outage   time.Duration // extends Grace while the successor is unused; not for a HashedRefresh
	From     string        // the network of the client, for the user to see; "": not known
	Now      time.Time
}

// Rotation is the result of RotateRefresh.
type Rotation struct {
	Grant      Grant
	RotatedAt  time.Time // when the token was first rotated and its successor issued
	Generation int64     // of the successor; 0: it has a row
	Sealed     []byte    // for a HashedRefresh: the value of the call that rotated it
	Replayed   bool
	Recovered  bool // the store had lost the token
}
