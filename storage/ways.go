package storage

import (
	"context"
	"errors"
	"time"
)

// Way is a passkey or an authenticator app by which a person signs in.
type Way struct {
	ID     string // "way_" + random
	UserID string
	Kind   WayKind
	Name   string // the person's own, for people to read
	// RPID is the relying party for which a passkey was made (WebAuthn §5.4.2); it works for no
	// other one. "" for an app.
	RPID         string
	CredentialID []byte // what a passkey is found by, unique; nil for an app
	Data         []byte // a passkey's public credential; an app's secret, sealed
	// Counter is how often a passkey has signed, as far as it counts (WebAuthn §6.1.1); of an app,
	// the time step of the last code (RFC 6238 §5.2).
	Counter    int64
	CreatedAt  time.Time
	LastUsedAt time.Time // zero: never
}

// WayKind is what a way is.
type WayKind string

// The kinds of ways. A passkey lets a person in alone, an app beside something else.
const (
	Passkey WayKind = "passkey"
	App     WayKind = "app"
)

// MaxWays is how many ways a person has at most, and MaxApps how many of them are apps: a guess may
// be a code of any of these.
const (
	MaxWays = 20
	MaxApps = 5
)

// Factors are all that a person can prove with who they are, as far as it is admitted.
type Factors struct {
	Password      bool
	Passkeys      int
	Apps          int
	RecoveryCodes int // that are left
	Identities    int // accounts at providers
	// AdminEnrolled: some person with a role, who need not be this person, has a passkey or an app.
	AdminEnrolled bool
}

// Alone counts the ways that let a person in without another one. The verbs of WayEnds count the same.
func (f Factors) Alone() int {
	n := f.Passkeys + f.Identities
	if f.Password {
		n++
	}
	return n
}

// ErrSignedOut: the session has ended in which a person wanted to change something.
var ErrSignedOut = errors.New("storage: the session has ended")

// Ways holds passkeys and authenticator apps. Here and in WayEnds, RecoveryCodes and Accounts, in is the
// session in which a person changes their ways in, the zero Hash for the operator: ErrSignedOut when it has
// ended or is another person's, and nothing changes. So a change that was sent before StopEverything does
// not take place after it.
type Ways interface {
	// AddWay stores a way. ErrNotFound when the account is gone or disabled; ErrExists when the id
	// or the credential is taken, by any person; ErrFull when the person has MaxWays already, or
	// for an app MaxApps.
	AddWay(ctx context.Context, w Way, in Hash) error
	// Ways returns the ways of a user, oldest first.
	Ways(ctx context.Context, userID string) ([]Way, error)
	// PasskeyOwner returns the passkey with a credential id, and whose it is. ErrNotFound.
	PasskeyOwner(ctx context.Context, credentialID []byte) (Way, User, error)
	// UseWay records a use of a way: its counter moves from one value to another, which may be the
	// same, and its data is replaced unless it is nil. ErrChanged when the counter is another one;
	// ErrNotFound.
	UseWay(ctx context.Context, u WayUse) error
	// RenameWay gives a way of a user another name, and returns the one before. ErrNotFound when the user has
	// no such way.
	RenameWay(ctx context.Context, userID, id, name string, in Hash) (before string, err error)
}

// WayUse is a use of a way.
type WayUse struct {
	ID       string
	From, To int64
	Data     []byte
	Now      time.Time
}

// Admission is what lets people in as the server is configured.
type Admission struct {
	Passwords bool     // accounts with a password sign in
	RPIDs     []string // the relying parties for which passkeys work
	Providers []string // the ids of those at which people sign in
}

// WayEnds takes ways in away. A person keeps at least one that lets them in alone, of those that are
// admitted: a passkey, a password, or an account at a provider. Of concurrent removals that together
// would leave none, one at least is ErrLast.
type WayEnds interface {
	// RemoveWay removes a way. ErrNotFound when the user has no such way; ErrLast.
	RemoveWay(ctx context.Context, userID, id string, by Admission, in Hash) error
	// RemovePassword removes the password of a user; sessions stay. ErrNotFound when there is none;
	// ErrLast.
	RemovePassword(ctx context.Context, userID string, by Admission, in Hash) error
	// RemoveRecoveryCodes removes the recovery codes of a user. ErrNotFound when there are none;
	// ErrLast when nothing lets the person in alone.
	RemoveRecoveryCodes(ctx context.Context, userID string, by Admission, in Hash) error
	// TakeWay removes a way for the operator, even if it is the last one. ErrNotFound.
	TakeWay(ctx context.Context, userID, id string) error
	// Factors counts what a user has that is admitted, in one round trip. ErrNotFound when the user is gone.
	Factors(ctx context.Context, userID string, by Admission) (Factors, error)
}

// RecoveryCodes are for people who have lost their other ways in. Each is good once.
type RecoveryCodes interface {
	// ReplaceRecoveryCodes makes these the only codes of a user. ErrNotFound when the account is
	// gone or disabled.
	ReplaceRecoveryCodes(ctx context.Context, userID string, codes []Hash, in Hash) error
	// CheckRecoveryCode returns nil for a code that PutSession would spend. ErrSpent when it was used;
	// ErrNotFound when the user has no such code, or is gone or disabled.
	CheckRecoveryCode(ctx context.Context, userID string, code Hash) error
}

// WayCustody is for operators: another master key, another host name.
type WayCustody interface {
	// SealedWays returns up to limit apps with an id greater than after, by id.
	SealedWays(ctx context.Context, after string, limit int) ([]Way, error)
	// ResealWay replaces the data of an app, if it still is old. ErrSpent when it is not, or when
	// there is no such app.
	ResealWay(ctx context.Context, id string, old, sealed []byte) error
	// PasskeyHosts counts the passkeys of each relying party, by its id. Passkeys of every other one
	// count as another way in, whether or not they are admitted.
	PasskeyHosts(ctx context.Context, by Admission) ([]PasskeyHost, error)
}

// PasskeyHost is what rests on a relying party.
type PasskeyHost struct {
	RPID     string
	Passkeys int
	People   int // who have them
	Only     int // who have nothing else that lets them in
}
