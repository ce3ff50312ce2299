// Package storage defines the authorization server's records and the interfaces (roles) that change
// them. Their methods are protocol verbs, and each is atomic: a caller never reads, decides and
// then writes.
//
// # Contract of every verb
//
//   - One verb is one transaction. When it returns nil, the change is durable. When it returns an
//     error, nothing has changed, unless the verb says otherwise.
//   - A one-way transition (redeem a code, rotate a refresh token, revoke a grant) is one
//     conditional UPDATE whose row count decides. Exactly one of N concurrent callers wins.
//   - The caller passes the time as Now, from the Clock of the store. A record is valid while Now
//     is before its expiry: at the very instant of expiry it is expired.
//   - Times are stored in whole milliseconds, UTC.
//   - Errors are the sentinels below, wrapped. Any other error means that the store failed. A store
//     never returns a protocol error.
//   - If the store is configured to replicate a change before it counts, a failed replication is an
//     error. Repeating the verb returns the error again, even though the change is already stored.
//   - A cancelled context ends the verb with the context's error. As with any lost reply, the
//     caller then does not know whether the change happened.
//
// Codes, tokens and secrets arrive as a Hash; the store never sees the plain value. Anything that
// must be read back arrives sealed (authenticated encryption) and is opaque to the store.
//
// The backends are internal/storage/sqlite and internal/storage/postgres. Package internal/storage/storagetest is this
// contract as code, and both backends run it.
package storage

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// The sentinel errors of the contract. Test with errors.Is.
var (
	ErrNotFound = errors.New("storage: not found")
	ErrExists   = errors.New("storage: already exists")
	ErrExpired  = errors.New("storage: expired")
	// ErrMismatch: the record exists but is bound to another client, redirect URI or challenge.
	ErrMismatch = errors.New("storage: bound to something else")
	// ErrResource: the grant is for a different resource than the request names (RFC 8707 §2.2).
	ErrResource = errors.New("storage: granted for another resource")
	// ErrSpent: a single-use record was already used.
	ErrSpent = errors.New("storage: already used")
	// ErrSuperseded: the refresh token was rotated so recently, and so many times since, that its
	// reply is no longer known. It is refused, but is not a sign of theft.
	ErrSuperseded = errors.New("storage: superseded many times")
	// ErrRevoked: the grant, session or account of the record was revoked.
	ErrRevoked = errors.New("storage: revoked")
	// ErrPaused: the user has paused the application of the grant, see Pauses. No token is used up.
	ErrPaused = errors.New("storage: paused")
	// ErrUntied: the identity has no user, and the user who would get it was not asked.
	ErrUntied = errors.New("storage: tied to no user")
	// ErrChanged: the stored record changed after the caller read it.
	ErrChanged = errors.New("storage: changed since it was read")
	// ErrLast: it is the user's only means to sign in.
	ErrLast = errors.New("storage: the last way in")
	// ErrEarly: the record is not valid yet.
	ErrEarly = errors.New("storage: not valid yet")
	// ErrFull: the limit for such records is reached.
	ErrFull = errors.New("storage: too many")
	// ErrInUse: another record refers to it.
	ErrInUse = errors.New("storage: in use")
	// ErrBusy: the database was locked for longer than verbs wait. The verb changed nothing.
	ErrBusy = errors.New("storage: the database is busy")
	// ErrSchema: a newer version wrote the database, or its schema is not migrated.
	ErrSchema = errors.New("storage: schema does not fit this version")
)

// Clients stores registered clients.
type Clients interface {
	// PutClient creates a client. It returns ErrExists if the id is taken, also by a deleted
	// client.
	PutClient(ctx context.Context, c Client) error
	// ReplaceClient stores a client in place of the one with its id, or as a new one. It keeps the
	// time of the last use. A replaced client gets the same time as a new one to be approved. It
	// returns ErrRevoked if the client was deleted.
	ReplaceClient(ctx context.Context, c Client, now time.Time) error
	// Client returns a client. It returns ErrNotFound if it does not exist, ErrRevoked if it was
	// deleted.
	Client(ctx context.Context, id string) (Client, error)
	// ListClients returns up to limit clients with an id greater than after, by id.
	ListClients(ctx context.Context, after string, limit int) ([]Client, error)
	// DeleteClient removes a client, and revokes its grants and consents in the same transaction.
	// It leaves a tombstone for the id, even if the client was never stored.
	DeleteClient(ctx context.Context, id string, now time.Time) error
}

// Users reads local accounts. Names are compared without regard to case.
type Users interface {
	// UserByName returns the account with the name, or ErrNotFound.
	UserByName(ctx context.Context, name string) (User, error)
	// User returns the account with the id, or ErrNotFound.
	User(ctx context.Context, id string) (User, error)
	// ListUsers returns up to limit users with a name greater than after, by name.
	ListUsers(ctx context.Context, after string, limit int) ([]User, error)
	// HasPasswords reports whether any account has a password, disabled accounts included.
	HasPasswords(ctx context.Context) (bool, error)
}

// Accounts changes local accounts.
type Accounts interface {
	// CreateUser adds an account. It returns ErrExists if the name or id is taken.
	CreateUser(ctx context.Context, u User) error
	// SetPassword replaces the password hash and, in the same transaction, ends every session of
	// the user and the links of kind LinkReset. With revokeGrants it also revokes every grant
	// (OAuth 2.1 §4.3.3), forgets every consent, and ends sign-ins in progress, like
	// StopEverything.
	SetPassword(ctx context.Context, userID, passwordHash string, revokeGrants bool, now time.Time) error
	// ChangePassword is SetPassword by the user, in a session. Grants and consents stay. It returns
	// ErrSignedOut if the session has ended.
	ChangePassword(ctx context.Context, userID, passwordHash string, in Hash, now time.Time) error
	// SetUserDisabled disables or enables an account. Disabling is StopEverything and also ends
	// every link. Enabling the account restores nothing of this.
	SetUserDisabled(ctx context.Context, userID string, disabled bool, now time.Time) error
	// DeleteUser removes an account with its sessions, consents, identities, authentication methods
	// and recovery codes. It ends the user's sessions at upstream providers as disabling does, and
	// revokes the grants.
	DeleteUser(ctx context.Context, userID string, now time.Time) error
	// SetMail replaces the mail address of an account, and ends its links of kind LinkReset.
	SetMail(ctx context.Context, userID, mail string) error
	// TouchLogin records the time of a sign-in.
	TouchLogin(ctx context.Context, userID string, now time.Time) error
}

// Setup creates the first administrator through a one-time link.
type Setup interface {
	// PutSetupToken stores the hash of the only valid setup token, in place of an earlier one. It
	// returns ErrExists if an administrator already exists.
	PutSetupToken(ctx context.Context, h Hash, expires, now time.Time) error
	// SetupOpen reports whether the first administrator has yet to be created.
	SetupOpen(ctx context.Context) (bool, error)
	// CheckSetupToken returns nil if CreateFirstAdmin would accept the token now, otherwise its
	// error. It does not use up the token.
	CheckSetupToken(ctx context.Context, h Hash, now time.Time) error
	// CreateFirstAdmin uses up the setup token and creates u, in one transaction. It returns
	// ErrNotFound for an unknown token, ErrExpired for an expired one, and ErrExists if an
	// administrator exists.
	CreateFirstAdmin(ctx context.Context, h Hash, u User, now time.Time) error
}

// Revocations revokes grants and tokens.
type Revocations interface {
	// RevokeGrant ends a grant with its code, refresh tokens and introspection. It returns no error
	// if the grant is unknown or has already ended. The first reason is kept.
	RevokeGrant(ctx context.Context, grantID string, by RevokedBy, now time.Time) error
	// WithdrawGrant is RevokeGrant for all grants of a grant's application (see Connections), with
	// their codes. It also forgets the user's consents to the application, so that it must ask
	// again. It ends the application's pause, because the next approval is a new decision.
	WithdrawGrant(ctx context.Context, grantID string, by RevokedBy, now time.Time) error
	// WithdrawApplication is WithdrawGrant for all grants that the person of a grant gave to its application, at every
	// resource, with what the operator has merged (see Applications). It returns how many connections it ended.
	// A grant of no person ends alone.
	WithdrawApplication(ctx context.Context, grantID string, by RevokedBy, now time.Time) (int, error)
	// RevokeRefresh ends the grant of a refresh token, spent or not, when it belongs
	// to the client, and returns it as it was before. ErrNotFound when unknown, ErrMismatch
	// for another client's.
	RevokeRefresh(ctx context.Context, token PresentedRefresh, clientID string, now time.Time) (Grant, error)
	// DenyToken makes one access token without a grant inactive until expires.
	DenyToken(ctx context.Context, tokenID string, expires time.Time) error
}

// Lookups answers introspection requests.
type Lookups interface {
	// TokenActive reports whether an access token is active. Its grant (if any) must be known, live
	// and not paused, its node (if any) live, its client not deleted, its user enabled, and its id
	// not denied.
	TokenActive(ctx context.Context, t TokenKey) (TokenState, error)
	// RevokedGrants returns, in order, the status indexes from (included) to (excluded) of inactive
	// grants and nodes. These are grants that are paused, cut, or revoked and not yet swept, and
	// nodes that are cut or whose grant is.
	RevokedGrants(ctx context.Context, from, to int64) ([]int64, error)
	// RefreshToken returns the grant and expiry of an unused, unexpired refresh token. It returns
	// ErrNotFound for any other token.
	RefreshToken(ctx context.Context, token PresentedRefresh, now time.Time) (Grant, time.Time, error)
}

// TokenKey identifies an access token.
type TokenKey struct {
	TokenID  string
	GrantID  string // "" for client credentials
	NodeID   string // "" for a token of the client's own
	ClientID string
	Now      time.Time
	// Expired asks whether an expired token was revoked before Now. The sweep removes expired
	// grants and nodes, so an unknown one counts as active while the user UserID is enabled.
	Expired bool
	UserID  string
}

// TokenState is the store's answer about an access token.
type TokenState struct {
	Active bool
	// UpstreamID is the session at an upstream provider that the grant depends on, "" for none.
	UpstreamID string
	// Scopes are the grant's current scopes; nil without a grant. The token may list more.
	Scopes oauth.Scopes
}

// Grants lists grants for users and administrators.
type Grants interface {
	// ListGrants returns up to limit unrevoked grants with an id greater than after, by id. An
	// empty userID or clientID matches any. Expired grants, and grants whose code was not redeemed,
	// are included until the sweep removes them.
	ListGrants(ctx context.Context, userID, clientID, after string, limit int) ([]Grant, error)
	// Grant returns a grant, live or not, until the sweep removes it. It returns ErrNotFound
	// otherwise.
	Grant(ctx context.Context, id string) (Grant, error)
	// ForgetConsent removes a remembered consent and revokes its grants.
	ForgetConsent(ctx context.Context, userID, clientID, resource string, now time.Time) error
}

// Resources stores the resources added at run time.
type Resources interface {
	// AddResource creates a resource. It returns ErrExists if its URI or one of its aliases is
	// taken, as a URI or as an alias. One of N concurrent calls for the same URI or alias succeeds.
	AddResource(ctx context.Context, r Resource) error
	// ReplaceResource changes a resource, except its URI and creation time, and revokes the grants
	// of removed aliases. It returns ErrNotFound if the resource does not exist. It returns ErrExists,
	// and changes nothing, if another resource has one of the aliases.
	ReplaceResource(ctx context.Context, r Resource, now time.Time) error
	// ListResources returns all stored resources, oldest first, with their aliases in order.
	ListResources(ctx context.Context) ([]Resource, error)
	// RemoveResource removes a resource with its aliases, and revokes the grants of all of them. It
	// returns ErrNotFound for an unknown resource, and for an alias.
	RemoveResource(ctx context.Context, uri string, now time.Time) error
}

// Keys stores the signing keys and moves them through their states.
type Keys interface {
	// Keys returns every key that has not expired at now, oldest first.
	Keys(ctx context.Context, now time.Time) ([]SigningKey, error)
	// PutFirstKey stores k as active if no key of its algorithm is active, and otherwise does
	// nothing. It reports whether it stored k. One of N replicas that start together stores its
	// key.
	PutFirstKey(ctx context.Context, k SigningKey) (stored bool, err error)
	// PutNextKey stores k as next if the key with the id active is active and no key of k's
	// algorithm is next. Otherwise it does nothing. It reports whether it stored k. A replica that
	// comes late, after the rotation, therefore does not begin a second one.
	PutNextKey(ctx context.Context, active string, k SigningKey) (stored bool, err error)
	// PromoteKey makes the next key with the id to active, and retires the active key with the id
	// from until expires. It returns ErrSpent, and changes nothing, if from is no longer active or
	// to is no longer next.
	PromoteKey(ctx context.Context, from, to string, now, expires time.Time) error
	// RetireKey retires an active or next key until expires. It returns ErrSpent if the key is
	// neither, or if no other key is active.
	RetireKey(ctx context.Context, id string, now, expires time.Time) error
}

// KeyCustody handles keys outside their ordinary life: a compromised key, and a new master key.
type KeyCustody interface {
	// RotateKey stores next as the active key of its algorithm and retires the active key with the
	// id from, until expires. It returns ErrSpent if from is no longer active. It returns ErrExists
	// if next is already stored, so that a removed key cannot come back.
	RotateKey(ctx context.Context, from string, next SigningKey, now, expires time.Time) error
	// RevokeKey removes a key in any state immediately. It returns ErrNotFound if the key does not
	// exist, and ErrSpent for the only active key, which must be replaced first.
	RevokeKey(ctx context.Context, id string) error
	// ResealKey replaces the sealed private key of a key if it still equals old. It returns
	// ErrSpent if it does not, or if the key does not exist.
	ResealKey(ctx context.Context, id string, old, sealed []byte) error
	// MoveFingerprint replaces the stored fingerprint from by to. It returns ErrSpent if another
	// one is stored.
	MoveFingerprint(ctx context.Context, from, to []byte) error
}

// SharedKeys stores sealed keys that all replicas share and that outlive a master key.
type SharedKeys interface {
	// SharedKey stores sealed under a name if the name is free, and returns the stored value. Nil
	// stores nothing.
	SharedKey(ctx context.Context, name string, sealed []byte) ([]byte, error)
	// ReplaceSharedKey replaces the value of a name if it still equals old. It returns ErrSpent if
	// it does not.
	ReplaceSharedKey(ctx context.Context, name string, old, sealed []byte) error
}

// Once records single-use identifiers, such as the jti of a client assertion.
type Once interface {
	// Spend records (purpose, id) until expires. It returns ErrSpent if the pair is already
	// recorded.
	Spend(ctx context.Context, purpose, id string, expires time.Time) error
}

// Leases assigns work to one replica at a time, so that it is not done twice.
type Leases interface {
	// Lease gives a task to the holder until a time, unless another holder has it at now. It
	// reports whether the holder has it. The holder may extend the lease, or give it up with a time
	// that is not after now.
	Lease(ctx context.Context, task, holder string, now, until time.Time) (bool, error)
}

// Failures counts failed sign-ins across all replicas.
type Failures interface {
	// RecordFailure adds one failure to key and returns the count within window. A count whose
	// first failure is older than window starts again at one.
	RecordFailure(ctx context.Context, key Hash, now time.Time, window time.Duration) (int, error)
	// FailureCount returns the count within window and the time of the last failure.
	FailureCount(ctx context.Context, key Hash, now time.Time, window time.Duration) (int, time.Time, error)
	// ClearFailures forgets a key.
	ClearFailures(ctx context.Context, key Hash) error
	// TakeTry is RecordFailure for a try that is counted before it is made. It counts only if the
	// count still equals seen; otherwise it returns ErrChanged. One of N concurrent calls with the
	// same seen succeeds.
	TakeTry(ctx context.Context, key Hash, seen int, now time.Time, window time.Duration) error
	// ReturnTry subtracts one from the count of a key, because the try did not fail. The time of
	// the last failure stays. A key without a count is left alone.
	ReturnTry(ctx context.Context, key Hash) error
}

// Housekeeping maintains a store.
type Housekeeping interface {
	// Ready returns nil if the store is reachable and its schema fits this version. It returns a
	// wrapped ErrSchema if the schema does not fit.
	Ready(ctx context.Context) error
	// Tend does schema work that was deferred until now, if the store may change its schema, and
	// learns about the work of other replicas. Call it every few seconds.
	Tend(ctx context.Context) error
	// Sweep removes up to limit records of each kind that no longer matter, and erases sealed
	// successors older than the grace. It returns how many records it touched.
	//
	// Grants are removed in the order of their end, each after its tokens. So the cost of a call
	// does not depend on the amount of work left.
	//
	//   - Used codes and refresh tokens stay while their grant lives, to detect reuse.
	//   - A revoked grant stays known as revoked for a day, an unredeemed code as expired for an
	//     hour.
	//   - Of a user's grants to one client for one resource, the eight last used stay, and up to 64
	//     used within seven days. Sweep revokes the others once a newer grant is older than its
	//     code, and stores an event.
	//   - Of more than MaxDeliveries for a receiver, Sweep removes the oldest, and stores an event.
	//   - A client that no administrator created is removed with its consents if it has no grant
	//     and was unused for the times in r. If it replaced its registration and was never
	//     approved, it leaves a tombstone.
	//   - The client of a program key is removed with its grant, like the last call of any grant.
	//   - A session at an upstream provider is removed 30 days after its end. It is also removed
	//     once it is a day old if it is not linked and no live session or grant depends on it. Its
	//     tokens are then among the Handbacks.
	//   - An event is removed after 30 days, logged or not. A notice is removed 30 days after it
	//     was seen, or after a year.
	Sweep(ctx context.Context, r Retention, limit int) (int, error)
	// Fingerprint stores fp if no fingerprint is stored, and returns the stored one. The server
	// compares it with its secret key, so that a replica with another key refuses to start.
	Fingerprint(ctx context.Context, fp []byte) ([]byte, error)
	// Remember stores a value under a name, durably, and returns the previous value, nil if there
	// was none. A nil value changes nothing.
	Remember(ctx context.Context, name string, value []byte) (before []byte, err error)
	// Writable returns nil if the store accepts the writes of a sign-in. It writes as little as
	// possible, because a server calls it every second.
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
	Now          time.Time // removes records that have expired by then
	Rotated      time.Time // erases sealed successors of refresh tokens rotated until then
	ClientUnused time.Time // removes clients registered until then that were never used to sign in
	ClientIdle   time.Time // removes clients last used until then
}
