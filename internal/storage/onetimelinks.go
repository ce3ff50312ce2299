package storage

import (
	"context"
	"time"
)

// OneTimeLink is an invitation, recovery or password reset link.
type OneTimeLink struct {
	Hash Hash // of its token
	// StopHash is the hash of the token with which the user can stop the link; zero: there is no
	// such token.
	StopHash Hash
	Kind     LinkKind
	UserID   string // "" of an invitation
	Name     string // of an invitation: the name of the new account
	Role     Role   // of an invitation
	Mail     string // of an invitation: the mail address of the new account
	// Groups are the groups that an invited account joins.
	Groups []string
	// Browser is the hash of the only browser that may use the link; zero: any.
	Browser   Hash
	NotBefore time.Time
	ExpiresAt time.Time
	CreatedAt time.Time
}

// LinkKind is the purpose of a link.
type LinkKind string

// The kinds of links.
const (
	LinkInvite  LinkKind = "invite"  // an administrator invites a user
	LinkRecover LinkKind = "recover" // an administrator restores a user's access
	LinkReset   LinkKind = "reset"   // a user has forgotten the password, and gets the link by mail
)

// MaxResets is the maximum number of links of kind LinkReset of a user. It is higher than the
// number of requests that package users allows unauthenticated visitors.
const MaxResets = 60

// OneTimeLinks stores links that work once. A used or stopped link is removed. So ErrNotFound only
// says that the link does not work.
type OneTimeLinks interface {
	// PutLink stores a link. A new invitation replaces the earlier one of its name, and a new
	// LinkRecover the earlier one of its user. It returns ErrExists for an invitation whose name is
	// taken. For another link, it returns ErrNotFound if its user is gone or disabled, and ErrFull
	// if the user has MaxResets.
	PutLink(ctx context.Context, l OneTimeLink, now time.Time) error
	// Link returns the link whose token, or whose stop token, has a hash. It returns ErrNotFound or
	// ErrExpired. It does not use up the link.
	Link(ctx context.Context, h Hash, now time.Time) (OneTimeLink, error)
	// AcceptInvitation uses up an invitation and creates its user with the link's name, mail and
	// role, in one transaction. It returns the user's groups: the link's groups that still exist.
	// It returns ErrNotFound or ErrExpired. It returns ErrExists, without using up the link, if the
	// name or the passkey is taken.
	AcceptInvitation(ctx context.Context, a Acceptance) (User, []string, error)
	// RecoverAccount uses up a recovery or reset link, in one transaction. It replaces the password
	// of its user and adds the passkey. It ends the user's sessions, sign-ins in progress and other
	// links, revokes the grants, and forgets the consents. A LinkReset does not end a LinkRecover.
	//
	// ErrNotFound, ErrExpired. ErrEarly before NotBefore. ErrMismatch in another browser.
	// ErrRevoked if the account is disabled. ErrExists if the passkey is taken, and ErrFull like
	// AddWay. None of these errors uses up the link.
	RecoverAccount(ctx context.Context, r Recovery) (User, error)
}

// LinkStops ends unused links.
type LinkStops interface {
	// StopLink ends a link by the hash of its stop token, and returns it. It returns ErrNotFound.
	StopLink(ctx context.Context, stop Hash, now time.Time) (OneTimeLink, error)
	// StopLinks ends every link of a user, and returns how many could still have been used.
	StopLinks(ctx context.Context, userID string, now time.Time) (int, error)
	// RecoveryLink returns the usable LinkRecover of a user, or ErrNotFound.
	RecoveryLink(ctx context.Context, userID string, now time.Time) (OneTimeLink, error)
	// StopInvitation ends the invitation of a name. It returns ErrNotFound.
	StopInvitation(ctx context.Context, name string, now time.Time) error
	// OpenLinks returns up to limit links that can be used, now or later, with a hash greater than
	// after, by hash.
	OpenLinks(ctx context.Context, after Hash, limit int, now time.Time) ([]OneTimeLink, error)
}

// Recovery is the use of a recovery or reset link.
type Recovery struct {
	Hash         Hash // of the link's token
	Browser      Hash // of the browser that uses it
	PasswordHash string
	Passkey      *Way // replaces the user's password; nil: none
	Now          time.Time
}

// Acceptance is the use of an invitation.
type Acceptance struct {
	Hash    Hash // of the link's token
	User    User
	Passkey *Way // the user's; nil: none
	Now     time.Time
}
