// Package storage declares what the authorization server remembers and the verbs
// by which it changes: the records, the roles and their contracts. The verbs are
// protocol verbs, each of them atomic: a caller never reads, decides and writes.
//
// # Contract of every verb
//
//   - One verb is one transaction. When it returns nil the change is durable; when
//     it returns an error nothing has changed, unless the verb says otherwise.
//   - A one-way transition (a code is redeemed, a refresh token is rotated, a
//     grant is revoked) is one conditional UPDATE whose row count decides. Of N
//     concurrent callers exactly one wins.
//   - Time comes from the caller as Now, by the Clock of the store. A record is valid while Now is before its
//     expiry: at the very instant of expiry it is expired.
//   - Times are kept in whole milliseconds, UTC.
//   - Errors are the sentinels below, wrapped; anything else means that the store
//     failed. A store never returns a protocol error.
//   - What a store was told to replicate before it counts, and could not, is an error,
//     also for the verb that is repeated and finds it done.
//   - A cancelled context ends the verb with the context's error; whether the
//     change happened is then unknown to the caller, as with any lost reply.
//
// Codes, tokens and secrets come as a Hash; the store never sees one in clear.
// Anything that must be read back arrives sealed (authenticated encryption) and is
// opaque to the store.
//
// Backends are storage/sqlite and storage/postgres; storage/storagetest is this
// contract as code, and both run it.
package storage

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// The sentinels of the contract. Test with errors.Is.
var (
	ErrNotFound = errors.New("storage: not found")
	ErrExists   = errors.New("storage: already exists")
	ErrExpired  = errors.New("storage: expired")
	// ErrMismatch: the record exists but was bound to something else (another
	// client, redirect URI or challenge).
	ErrMismatch = errors.New("storage: bound to something else")
	// ErrResource: the grant is for another resource than the one named (RFC 8707 §2.2).
	ErrResource = errors.New("storage: granted for another resource")
	// ErrSpent: a single-use record was used before.
	ErrSpent = errors.New("storage: already used")
	// ErrSuperseded: a refresh token that was rotated so short a time ago, and so many times
	// since, that its reply is not known any more. It is refused, and no sign of theft.
	ErrSuperseded = errors.New("storage: superseded many times")
	// ErrRevoked: the grant, session or account behind the record was cut off.
	ErrRevoked = errors.New("storage: revoked")
	// ErrPaused: the person has paused the application of the grant, see Pauses. Nothing is spent.
	ErrPaused = errors.New("storage: paused")
	// ErrUntied: the identity has no user, and the user to whom it would be tied was not asked.
	ErrUntied = errors.New("storage: tied to no user")
	// ErrChanged: what the caller has read, and rests on, is no longer what is stored.
	ErrChanged = errors.New("storage: changed since it was read")
	// ErrLast: nothing else would let the person in.
	ErrLast = errors.New("storage: the last way in")
	// ErrEarly: it is not valid yet.
	ErrEarly = errors.New("storage: not valid yet")
	// ErrFull: the person has as many as there may be.
	ErrFull = errors.New("storage: too many")
	// ErrInUse: something else names it.
	ErrInUse = errors.New("storage: in use")
	// ErrBusy: something else held the database for longer than verbs wait. The verb changed nothing.
	ErrBusy = errors.New("storage: the database is busy")
	// ErrSchema: the database was written by a newer version, or is not migrated.
	ErrSchema = errors.New("storage: schema does not fit this version")
)

// Clients holds registered clients.
type Clients interface {
	// PutClient creates a client. ErrExists when the id is taken, also by a deleted client.
	PutClient(ctx context.Context, c Client) error
	// ReplaceClient stores a client in place of the one with its id, or as a new one;
	// the time of the last use stays. A client that was replaced has from now on as long
	// as a new one to be approved. ErrRevoked when the client was deleted.
	ReplaceClient(ctx context.Context, c Client, now time.Time) error
	// Client returns a client. ErrNotFound when there is none, ErrRevoked when it was deleted.
	Client(ctx context.Context, id string) (Client, error)
	// ListClients returns up to limit clients with an id greater than after, by id.
	ListClients(ctx context.Context, after string, limit int) ([]Client, error)
	// DeleteClient removes a client, leaves a tombstone for its id (also when the
	// client was never stored) and revokes its grants and consents, all at once.
	DeleteClient(ctx context.Context, id string, now time.Time) error
}

// Users holds local accounts. Names are compared without regard to case.
type Users interface {
	// UserByName returns the account of that name, or ErrNotFound.
	UserByName(ctx context.Context, name string) (User, error)
	// User returns an account by id, or ErrNotFound.
	User(ctx context.Context, id string) (User, error)
	// ListUsers returns up to limit users with a name greater than after, by name.
	ListUsers(ctx context.Context, after string, limit int) ([]User, error)
	// HasPasswords reports whether any account, be it disabled, has a password.
	HasPasswords(ctx context.Context) (bool, error)
}

// Accounts changes local accounts.
type Accounts interface {
	// CreateUser adds an account. ErrExists when the name or id is taken.
	CreateUser(ctx context.Context, u User) error
	// SetPassword replaces the password hash and, at once, ends every session of the user, and the links of
	// LinkReset. With revokeGrants it also revokes every grant (OAuth 2.1 §4.3.3), forgets every consent, and
	// ends the sign-ins that have begun, as StopEverything does.
	SetPassword(ctx context.Context, userID, passwordHash string, revokeGrants bool, now time.Time) error
	// ChangePassword is SetPassword by the person, in a session; grants and consents stay. ErrSignedOut.
	ChangePassword(ctx context.Context, userID, passwordHash string, in Hash, now time.Time) error
	// SetUserDisabled disables or enables an account. Disabling is StopEverything that ends every link, too;
	// nothing of it comes back when the account is enabled.
	SetUserDisabled(ctx context.Context, userID string, disabled bool, now time.Time) error
	// DeleteUser removes an account with its sessions, consents, identities, ways and recovery
	// codes, ends its sessions at upstream providers as disabling does, and revokes its grants.
	DeleteUser(ctx context.Context, userID string, now time.Time) error
	// SetMail replaces where the person of an account gets mail, and ends the links of LinkReset.
	SetMail(ctx context.Context, userID, mail string) error
	// TouchLogin records a sign-in.
	TouchLogin(ctx context.Context, userID string, now time.Time) error
}

// Setup creates the first administrator through a one-time link.
type Setup interface {
	// PutSetupToken stores the hash of the one valid setup token, replacing an
	// earlier one. ErrExists when an administrator exists already.
	PutSetupToken(ctx context.Context, h Hash, expires, now time.Time) error
	// SetupOpen reports whether no administrator exists yet.
	SetupOpen(ctx context.Context) (bool, error)
	// CheckSetupToken reports nil when CreateFirstAdmin would accept the token now, else its
	// error. It spends nothing.
	CheckSetupToken(ctx context.Context, h Hash, now time.Time) error
	// CreateFirstAdmin spends the setup token and creates u, in one transaction.
	// ErrNotFound for an unknown token, ErrExpired, ErrExists when there is an administrator.
	CreateFirstAdmin(ctx context.Context, h Hash, u User, now time.Time) error
}

// Revocations cuts access.
type Revocations interface {
	// RevokeGrant ends a grant: its code, refresh tokens and introspection. No error
	// when it is unknown or ended already; what ended it first stays.
	RevokeGrant(ctx context.Context, grantID string, by RevokedBy, now time.Time) error
	// WithdrawGrant is RevokeGrant for all grants of the application of a grant, see Connections, with their
	// codes. It also forgets what the person has consented to for it, so that it has to ask again, and ends its
	// pause: the next approval is a new decision.
	WithdrawGrant(ctx context.Context, grantID string, by RevokedBy, now time.Time) error
	// RevokeRefresh ends the grant of a refresh token, spent or not, when it belongs
	// to the client, and returns it as it was before. ErrNotFound when unknown, ErrMismatch
	// for another client's.
	RevokeRefresh(ctx context.Context, token PresentedRefresh, clientID string, now time.Time) (Grant, error)
	// DenyToken makes one access token without a grant inactive until expires.
	DenyToken(ctx context.Context, tokenID string, expires time.Time) error
}

// Lookups answers introspection.
type Lookups interface {
	// TokenActive reports whether an access token is still good: its grant (if any)
	// is live, known and not paused, its node (if any) live, its client not deleted, its user enabled, its id
	// not denied.
	TokenActive(ctx context.Context, t TokenKey) (TokenState, error)
	// RevokedGrants returns the status indexes, from (included) to (excluded), of the
	// grants that are paused, cut, or revoked and not yet swept, and of the nodes that are cut or whose
	// grant is, in order.
	RevokedGrants(ctx context.Context, from, to int64) ([]int64, error)
	// RefreshToken returns an unspent, unexpired refresh token's grant and expiry. ErrNotFound
	// for anything else.
	RefreshToken(ctx context.Context, token PresentedRefresh, now time.Time) (Grant, time.Time, error)
}

// TokenKey names an access token.
type TokenKey struct {
	TokenID  string
	GrantID  string // "" for client credentials
	NodeID   string // "" for what the client has itself
	ClientID string
	Now      time.Time
	// Expired asks whether a token that has expired was revoked before Now. The sweep removes expired grants
	// and nodes, so one that is unknown counts as good while the user, UserID, is enabled.
	Expired bool
	UserID  string
}

// TokenState is what the store says of an access token.
type TokenState struct {
	Active bool
	// UpstreamID is the session at an upstream provider that the grant rests on, "" for none.
	UpstreamID string
	// Scopes are those that the grant has now; nil without a grant. The token may say more.
	Scopes oauth.Scopes
}

// Grants lists grants for people and operators.
type Grants interface {
	// ListGrants returns up to limit grants that are not revoked, with an id greater
	// than after, by id. Empty userID or clientID: any. One that has expired, or
	// whose code was not redeemed, is among them until it is swept.
	ListGrants(ctx context.Context, userID, clientID, after string, limit int) ([]Grant, error)
	// Grant returns a grant, live or not, until it is swept. ErrNotFound.
	Grant(ctx context.Context, id string) (Grant, error)
	// ForgetConsent removes a remembered consent and revokes its grants.
	ForgetConsent(ctx context.Context, userID, clientID, resource string, now time.Time) error
}

// Resources holds the resources added at run time.
type Resources interface {
	// AddResource creates a resource. ErrExists when its URI or one of its aliases is taken, as a URI or
	// as an alias: of N that want the same one adds.
	AddResource(ctx context.Context, r Resource) error
	// ReplaceResource changes name, scopes and aliases of a resource, and revokes the grants of aliases
	// that it has no more. ErrNotFound when there is none; ErrExists, and nothing is changed, when
	// another resource has one of the aliases.
	ReplaceResource(ctx context.Context, r Resource, now time.Time) error
	// ListResources returns all stored resources, oldest first, with their aliases in order.
	ListResources(ctx context.Context) ([]Resource, error)
	// RemoveResource removes a resource with its aliases, and revokes the grants of them all. ErrNotFound
	// when there is none, and for an alias.
	RemoveResource(ctx context.Context, uri string, now time.Time) error
}

// Keys holds the signing keys and moves them through their life.
type Keys interface {
	// Keys returns every key that has not expired at now, oldest first.
	Keys(ctx context.Context, now time.Time) ([]SigningKey, error)
	// PutFirstKey stores k as active when no key of its algorithm is, and otherwise
	// does nothing: of N replicas starting together one stores. It reports whether it did.
	PutFirstKey(ctx context.Context, k SigningKey) (stored bool, err error)
	// PutNextKey stores k as next when the key with the id active is active and no key of
	// k's algorithm is next, and otherwise does nothing. It reports whether it did. A
	// replica that comes late, when the rotation is over, so begins no second one.
	PutNextKey(ctx context.Context, active string, k SigningKey) (stored bool, err error)
	// PromoteKey makes the next key with the id to active, and retires the active key
	// with the id from until expires. ErrSpent when from is no longer active or to no
	// longer next; then nothing has changed.
	PromoteKey(ctx context.Context, from, to string, now, expires time.Time) error
	// RetireKey retires an active or next key that is needed no longer, until expires.
	// ErrSpent when it is neither, or when no other key is active.
	RetireKey(ctx context.Context, id string, now, expires time.Time) error
}

// KeyCustody is for what cannot wait for a key's ordinary life: a key in the wrong
// hands, and another master key.
type KeyCustody interface {
	// RotateKey stores next as the active key of its algorithm and retires the active
	// key with the id from, until expires. ErrSpent when from is no longer active.
	// ErrExists when next is stored already, so that a key that was taken out cannot
	// come back.
	RotateKey(ctx context.Context, from string, next SigningKey, now, expires time.Time) error
	// RevokeKey removes a key in any state, at once. ErrNotFound when there is none.
	// ErrSpent for the only active key: replace it first.
	RevokeKey(ctx context.Context, id string) error
	// ResealKey replaces the sealed private key of a key, if it still is old. ErrSpent
	// when it is not, or when there is no such key.
	ResealKey(ctx context.Context, id string, old, sealed []byte) error
	// MoveFingerprint replaces the stored fingerprint from by to. ErrSpent when another
	// one is stored.
	MoveFingerprint(ctx context.Context, from, to []byte) error
}

// SharedKeys holds the keys that all replicas share and that outlive a master key, sealed.
type SharedKeys interface {
	// SharedKey stores sealed under a name when nothing is, and returns what is stored.
	// Nil stores nothing.
	SharedKey(ctx context.Context, name string, sealed []byte) ([]byte, error)
	// ReplaceSharedKey replaces what is stored under a name, if it still is old. ErrSpent
	// when it is not.
	ReplaceSharedKey(ctx context.Context, name string, old, sealed []byte) error
}

// Once records single-use identifiers, such as the jti of a client assertion.
type Once interface {
	// Spend records (purpose, id) until expires. ErrSpent when it was recorded before.
	Spend(ctx context.Context, purpose, id string, expires time.Time) error
}

// Leases lets one replica at a time do what need not be done twice.
type Leases interface {
	// Lease gives a task to the holder until a time, unless another holder has it at now,
	// and reports whether the holder has it. The one who has it may prolong it, or give it up
	// with a time that is not after now.
	Lease(ctx context.Context, task, holder string, now, until time.Time) (bool, error)
}

// Failures counts failed sign-ins, shared by all replicas.
type Failures interface {
	// RecordFailure adds one failure to key and returns the count within window:
	// a count whose first failure is older than window starts again at one.
	RecordFailure(ctx context.Context, key Hash, now time.Time, window time.Duration) (int, error)
	// FailureCount returns the count within window and the time of the last failure.
	FailureCount(ctx context.Context, key Hash, now time.Time, window time.Duration) (int, time.Time, error)
	// ClearFailures forgets a key.
	ClearFailures(ctx context.Context, key Hash) error
	// TakeTry is RecordFailure for a try that is counted before it is made, if the count is still
	// the one that was seen: of N concurrent calls that have seen the same one does. ErrChanged.
	TakeTry(ctx context.Context, key Hash, seen int, now time.Time, window time.Duration) error
	// ReturnTry takes one from the count of a key: the try was no failure. The time of the last one
	// stays. A key without a count is left alone.
	ReturnTry(ctx context.Context, key Hash) error
}

// Housekeeping keeps a store healthy.
type Housekeeping interface {
	// Ready reports nil when the store is reachable and its schema is this version's;
	// ErrSchema, wrapped, when it is not.
	Ready(ctx context.Context) error
	// Tend does what the schema has put off until now, if the store may change its schema,
	// and learns of what other replicas have done. Call it every few seconds.
	Tend(ctx context.Context) error
	// Sweep removes up to limit records of each kind that can no longer matter and
	// erases sealed successors older than the grace; it reports how many it touched. Grants
	// go in the order of their ends, each after its tokens, so that what a call costs does not
	// depend on how much there is to do.
	// Spent codes and refresh tokens stay while their grant lives, for reuse detection;
	// a revoked grant stays known as revoked for a day, an unredeemed code as expired
	// for an hour. Of the grants of one person to one client for one resource, the eight that
	// were used last stay, and up to 64 that were used within seven days; the others are
	// revoked once a newer one is older than its code, which an event tells. Of more than
	// MaxDeliveries for a receiver the oldest go, which an event tells. A client that the
	// operator did not create goes, with its consents,
	// when it has no grant and was not used for the times in r; one that has replaced
	// its registration, and was never approved, leaves a tombstone. The client of a key for a
	// program goes with its grant, as the last call of any grant does. A session at an
	// upstream provider goes 30 days after its end, or when it is a day old, not linked,
	// and no live session or grant rests on it; its tokens are then among the Handbacks. An event
	// goes after 30 days, logged or not; a notice 30 days after it was seen, and after a year.
	Sweep(ctx context.Context, r Retention, limit int) (int, error)
	// Fingerprint stores fp when none is stored, and returns the stored one. The
	// server compares it with its secret key, so that a replica with another key refuses to start.
	Fingerprint(ctx context.Context, fp []byte) ([]byte, error)
	// Remember stores a fact under a name, durably, and returns what it replaces, nil for
	// nothing. A nil value changes nothing.
	Remember(ctx context.Context, name string, value []byte) (before []byte, err error)
	// Writable reports nil when the store takes what a sign-in writes. It writes as little as
	// shows that: a server asks each second.
	Writable(ctx context.Context) error
	// Size returns how much space the data takes, and how much is left for it.
	Size(ctx context.Context) (Size, error)
	Close() error
}

// Size is the size of a database in bytes.
type Size struct {
	Used int64 // by tables and indexes
	Free int64 // on its disk; -1: unknown, as it is with PostgreSQL
}

// Retention says from when on records can no longer matter. A zero time keeps them.
type Retention struct {
	Now          time.Time // what has expired by then
	Rotated      time.Time // sealed successors of refresh tokens rotated until then
	ClientUnused time.Time // clients registered until then that were never used to sign in
	ClientIdle   time.Time // clients last used until then
}
