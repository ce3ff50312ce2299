package storage

import (
	"context"
	"time"
)

// OneTimeLink is a link by which a person makes an account, or gets back into one.
type OneTimeLink struct {
	Hash Hash // of its token
	// StopHash is that of the token which stops it, for its person; zero: there is none.
	StopHash Hash
	Kind     LinkKind
	UserID   string // "" of an invitation
	Name     string // of an invitation: that of the account to be made
	Role     Role   // of an invitation
	Mail     string // of an invitation: where its person gets mail
	// Groups are those that the account of an invitation is put into.
	Groups []string
	// Browser is the hash of the browser that it is good in; zero: any.
	Browser   Hash
	NotBefore time.Time
	ExpiresAt time.Time
	CreatedAt time.Time
}

// LinkKind is what a link is for.
type LinkKind string

// The kinds of links.
const (
	LinkInvite  LinkKind = "invite"  // the operator invites a person
	LinkRecover LinkKind = "recover" // the operator lets a person back in
	LinkReset   LinkKind = "reset"   // a person has forgotten the password, and gets the link by mail
)

// MaxResets is how many links of LinkReset a person has at most at one time: more than what package
// users lets strangers ask for.
const MaxResets = 60

// OneTimeLinks holds links that work once. A link that was used, or stopped, is forgotten:
// ErrNotFound says no more than that it is of no use.
type OneTimeLinks interface {
	// PutLink stores a link. A new invitation of a name, and a new link of LinkRecover of a user,
	// replaces the one before. ErrExists for an invitation whose name is taken; ErrNotFound when the
	// user of another one is gone or disabled; ErrFull when there are MaxResets of a user.
	PutLink(ctx context.Context, l OneTimeLink, now time.Time) error
	// Link returns the link whose token, or whose token that stops it, has a hash: ErrNotFound,
	// ErrExpired. It spends nothing.
	Link(ctx context.Context, h Hash, now time.Time) (OneTimeLink, error)
	// AcceptInvitation spends an invitation and creates its user, of the link's name, mail and role, in
	// one transaction. It returns the groups that the user is in: those of the link that are still there.
	// ErrNotFound, ErrExpired; ErrExists, when the name or the passkey is taken, spends nothing.
	AcceptInvitation(ctx context.Context, a Acceptance) (User, []string, error)
	// RecoverAccount spends a link of another kind, replaces the password of its user, adds the passkey, ends
	// their sessions and the sign-ins that have begun, revokes their grants, forgets their consents, and ends
	// their other links, but that of LinkReset none of LinkRecover, in one transaction. ErrNotFound, ErrExpired;
	// ErrEarly before NotBefore; ErrMismatch in another browser; ErrRevoked when the account is disabled;
	// ErrExists when the passkey is taken, and ErrFull as AddWay says. None of these spends it.
	RecoverAccount(ctx context.Context, r Recovery) (User, error)
}

// LinkStops ends links that were not used.
type LinkStops interface {
	// StopLink ends a link by the hash of the token that stops it, and returns it. ErrNotFound.
	StopLink(ctx context.Context, stop Hash, now time.Time) (OneTimeLink, error)
	// StopLinks ends every link of a user, and reports how many could still have been used.
	StopLinks(ctx context.Context, userID string, now time.Time) (int, error)
	// RecoveryLink returns the link of LinkRecover of a user that may still be used. ErrNotFound.
	RecoveryLink(ctx context.Context, userID string, now time.Time) (OneTimeLink, error)
	// StopInvitation ends the invitation of a name. ErrNotFound.
	StopInvitation(ctx context.Context, name string, now time.Time) error
	// OpenLinks returns up to limit links that may still be used, now or later, with a hash greater than
	// after, by hash.
	OpenLinks(ctx context.Context, after Hash, limit int, now time.Time) ([]OneTimeLink, error)
}

// Recovery is the use of a link to get back into an account.
type Recovery struct {
	Hash         Hash // of the link's token
	Browser      Hash // of the browser that uses it
	PasswordHash string
	Passkey      *Way // the user's, who has no password then; nil: none
	Now          time.Time
}

// Acceptance is the use of an invitation.
type Acceptance struct {
	Hash    Hash // of the link's token
	User    User
	Passkey *Way // the user's; nil: none
	Now     time.Time
}
