package storage

import (
	"context"
	"errors"
	"time"
)

// Way is an authentication method of a user: a passkey or an authenticator app.
type Way struct {
	ID     string // "way_" + random
	UserID string
	Kind   WayKind
	Name   string // chosen by the user, for display
	// RPID is the relying party of a passkey (WebAuthn §5.4.2); a passkey works for no other. ""
	// for an app.
	RPID         string
	CredentialID []byte // the lookup key of a passkey, unique; nil for an app
	Data         []byte // a passkey's public credential; an app's secret, sealed
	// Counter is the signature counter of a passkey, if it counts (WebAuthn §6.1.1). For an app, it
	// is the time step of the last code (RFC 6238 §5.2).
	Counter    int64
	CreatedAt  time.Time
	LastUsedAt time.Time // zero: never
}

// WayKind is the kind of an authentication method.
type WayKind string

// The kinds of authentication methods. A passkey is enough to sign in; an app is a second factor.
const (
	Passkey WayKind = "passkey"
	App     WayKind = "app"
)

// MaxWays is the maximum number of authentication methods of a user. MaxApps limits the apps among
// them, because a guess may match the code of any app.
const (
	MaxWays = 20
	MaxApps = 5
)

// Factors counts the admitted authentication factors of a user.
type Factors struct {
	Password      bool
	Passkeys      int
	Apps          int
	RecoveryCodes int // unused ones
	Identities    int // accounts at providers
	// AdminEnrolled: any user with a role, not necessarily this one, has a passkey or an app.
	AdminEnrolled bool
}

// Alone counts the factors that are enough to sign in. The verbs of WayEnds count in the same way.
func (f Factors) Alone() int {
	n := f.Passkeys + f.Identities
	if f.Password {
		n++
	}
	return n
}

// ErrSignedOut: the session that requested the change has ended.
var ErrSignedOut = errors.New("storage: the session has ended")

// Ways stores passkeys and authenticator apps.
//
// Here and in WayEnds, RecoveryCodes and Accounts, in is the session of the user who makes the
// change, and the zero Hash for an administrator. If that session has ended or is another user's,
// the verb returns ErrSignedOut and changes nothing. So a change sent before StopEverything cannot
// take place after it.
type Ways interface {
	// AddWay stores an authentication method. It returns ErrNotFound if the account is gone or
	// disabled, and ErrExists if any user has the id or the credential. It returns ErrFull if the
	// user already has MaxWays, or MaxApps for an app.
	AddWay(ctx context.Context, w Way, in Hash) error
	// Ways returns the authentication methods of a user, oldest first.
	Ways(ctx context.Context, userID string) ([]Way, error)
	// PasskeyOwner returns the passkey with a credential id, and its user. It returns ErrNotFound.
	PasskeyOwner(ctx context.Context, credentialID []byte) (Way, User, error)
	// UseWay records a use of an authentication method. It sets the counter from From to To, which
	// may be equal, and replaces the data unless it is nil. It returns ErrChanged if the counter is
	// not From, and ErrNotFound.
	UseWay(ctx context.Context, u WayUse) error
	// RenameWay renames an authentication method of a user, and returns the previous name. It
	// returns ErrNotFound if the user does not have it.
	RenameWay(ctx context.Context, userID, id, name string, in Hash) (before string, err error)
}

// WayUse is a use of an authentication method.
type WayUse struct {
	ID       string
	From, To int64
	Data     []byte
	Now      time.Time
}

// Admission says which authentication methods the server's configuration admits.
type Admission struct {
	Passwords bool     // passwords are admitted
	RPIDs     []string // the relying parties whose passkeys work
	Providers []string // the ids of the providers for sign-in
}

// WayEnds removes authentication methods. A user keeps at least one admitted method that is enough
// to sign in: a passkey, a password, or an account at a provider. If concurrent removals would
// together leave none, at least one of them returns ErrLast.
type WayEnds interface {
	// RemoveWay removes a passkey or an app. It returns ErrNotFound if the user does not have it,
	// or ErrLast.
	RemoveWay(ctx context.Context, userID, id string, by Admission, in Hash) error
	// RemovePassword removes the password of a user; sessions stay. It returns ErrNotFound if the
	// user has no password, or ErrLast.
	RemovePassword(ctx context.Context, userID string, by Admission, in Hash) error
	// RemoveRecoveryCodes removes the recovery codes of a user. It returns ErrNotFound if the user
	// has none, and ErrLast if no other method is enough to sign in.
	RemoveRecoveryCodes(ctx context.Context, userID string, by Admission, in Hash) error
	// TakeWay removes a passkey or an app for an administrator, even if it is the last one. It
	// returns ErrNotFound.
	TakeWay(ctx context.Context, userID, id string) error
	// Factors counts a user's admitted factors, in one round trip. It returns ErrNotFound if the
	// user is gone.
	Factors(ctx context.Context, userID string, by Admission) (Factors, error)
}

// RecoveryCodes stores codes for users who have lost their other authentication methods. Each works
// once.
type RecoveryCodes interface {
	// ReplaceRecoveryCodes replaces all codes of a user. It returns ErrNotFound if the account is
	// gone or disabled.
	ReplaceRecoveryCodes(ctx context.Context, userID string, codes []Hash, in Hash) error
	// CheckRecoveryCode returns nil for a code that PutSession would accept. It returns ErrSpent if
	// the code was used, and ErrNotFound if the user has no such code, or is gone or disabled.
	CheckRecoveryCode(ctx context.Context, userID string, code Hash) error
}

// WayCustody is for administrators who change the master key or the host name.
type WayCustody interface {
	// SealedWays returns up to limit apps with an id greater than after, by id.
	SealedWays(ctx context.Context, after string, limit int) ([]Way, error)
	// ResealWay replaces the data of an app if it still equals old. It returns ErrSpent if it does
	// not, or if the app does not exist.
	ResealWay(ctx context.Context, id string, old, sealed []byte) error
	// PasskeyHosts counts the passkeys of each relying party, by its id. Passkeys of all other
	// relying parties count as another method to sign in, admitted or not.
	PasskeyHosts(ctx context.Context, by Admission) ([]PasskeyHost, error)
}

// PasskeyHost counts the passkeys of a relying party and their users.
type PasskeyHost struct {
	RPID     string
	Passkeys int
	People   int // who have such a passkey
	Only     int // who have no other method to sign in
}
