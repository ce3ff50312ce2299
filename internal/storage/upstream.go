package storage

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Identity links a user's account at an upstream provider to a local user. Connector and Subject
// are its key. An e-mail address never is, because it can pass to another person.
type Identity struct {
	Connector  string // the id of the connector in the configuration
	Subject    string // the provider's stable identifier for the user
	UserID     string
	Label      string // the user's name there, for display; never compared
	CreatedAt  time.Time
	LastUsedAt time.Time
	// Began: the first sign-in with this identity created the account. The store sets it.
	Began bool
}

// ErrHomeProvider: the account began at a provider, and the user has no live session there.
var ErrHomeProvider = errors.New("storage: no session at the provider of the account")

// Upstream is a session at an identity provider: the tokens that a sign-in there returned (AS-217).
// Browser sessions and grants that began with it refer to it, and end with it.
type Upstream struct {
	ID        string // "ups_" + random
	Connector string
	Subject   string
	UserID    string
	SessionID string // the provider's id for its session (sid), "" if it has none
	// Linked: it belongs to the account, not to a sign-in. It is kept even if no grant or browser
	// session refers to it.
	Linked    bool
	Sealed    []byte // tokens and claims, sealed; nil once the session has ended
	Scopes    oauth.Scopes
	Version   int64 // how often Sealed was written; the first is 1
	CreatedAt time.Time
	CheckedAt time.Time // when the provider last confirmed it
	DueAt     time.Time // when to check with the provider next
	EndedAt   time.Time // zero: live
	EndReason string    // a reason defined by package thirdparty, "" while live
}

// Departure is an authorization request to an identity provider, stored until its response
// (AS-220). Its key is a digest of the state parameter and a secret that only that browser has.
type Departure struct {
	Key       Hash
	Sealed    []byte
	ExpiresAt time.Time
}

// Departures stores the requests that await a response.
type Departures interface {
	// PutDeparture stores a departure. It returns ErrExists if the key is taken.
	PutDeparture(ctx context.Context, d Departure) error
	// TakeDeparture removes a departure and returns it; one of N concurrent calls gets it. It
	// returns ErrNotFound if the departure does not exist or was taken. It returns ErrExpired
	// together with the removed departure if that has expired.
	TakeDeparture(ctx context.Context, key Hash, now time.Time) (Departure, error)
	// AbandonedDepartures removes up to limit expired departures and returns them. Each goes to one
	// of N concurrent callers. Sweep removes the others an hour later.
	AbandonedDepartures(ctx context.Context, now time.Time, limit int) ([]Departure, error)
}

// Arrival is a sign-in at an identity provider.
type Arrival struct {
	// Identity is the user as identified by the provider. With a UserID, it must be that user's, or
	// it is linked to them if Asked. Without a UserID, the user who has the identity signs in, or
	// NewUser if no user has it.
	Identity Identity
	// Asked says that the user of Identity.UserID was shown this identity and approved it.
	Asked   bool
	NewUser *User
	// Upstream is the new session there. The store sets its UserID, and its Version to 1.
	//
	// If Linked, it replaces the user's earlier linked sessions at the connector. They end as by
	// EndUpstreams, with the reason "replaced". Records that depend on a replaced session of the
	// same provider account then depend on the new one.
	Upstream Upstream
	// Seal, if not nil, makes Upstream.Sealed for the user who signs in. It may be called more than
	// once, and within a transaction.
	Seal func(userID string) ([]byte, error)
	// Session is the new browser session; nil: no session begins. The store sets its UserID, and
	// its UpstreamID to Upstream.ID. In an account that began with another identity, it depends on
	// the newest live session of that identity instead. The user's last sign-in is set to Now.
	Session *Session
	// LeftAt is when the browser left for the provider; zero: not compared.
	LeftAt time.Time
	Now    time.Time
}

// ErrStopped: the user has stopped everything since then.
var ErrStopped = errors.New("storage: everything of the person was stopped since")

// Arrivals stores sign-ins at identity providers.
type Arrivals interface {
	// Arrive stores an arrival in one transaction, and returns the user. If the name of NewUser is
	// taken, it appends "-" and the last six characters of the user's id. Of concurrent arrivals of
	// one new identity, one creates the user, and the others return that user.
	//
	// ErrRevoked: the account is disabled. ErrUntied: the identity has no user, and the user of
	// Identity.UserID was not asked. ErrExists: the identity is another user's (with
	// Identity.UserID), or the id of NewUser is stored but does not have the identity. ErrNotFound:
	// the user of Identity.UserID is gone, or no user has the identity and NewUser is nil.
	// ErrStopped: the user has stopped everything since LeftAt. ErrHomeProvider: the account began
	// with another identity, and that has no live session for Session to depend on.
	Arrive(ctx context.Context, a Arrival) (User, error)
}

// Identities lists and unlinks accounts at identity providers.
type Identities interface {
	// Identities returns the identities of a user, oldest first.
	Identities(ctx context.Context, userID string) ([]Identity, error)
	// Unlink removes an identity of a user, ends its sessions like EndUpstreams, and returns them
	// as they were before.
	//
	// ErrNotFound: the user has no such identity. ErrLast: the user could no longer sign in (see
	// WayEnds), or the account began with this identity, so that all others depend on it.
	// ErrSignedOut: In has ended, see Ways.
	Unlink(ctx context.Context, u Untie) ([]Upstream, error)
}

// Untie says which identity of a user to remove, and why.
type Untie struct {
	UserID, Connector, Subject string
	Reason                     string
	By                         Admission // the user's other means to sign in
	In                         Hash      // the session of the user who does it; zero for an administrator
	Now                        time.Time
}

// Upstreams keeps the sessions at identity providers up to date. Only the replica that holds a
// claim asks the provider about a session. So only one of N replicas uses a single-use refresh
// token.
type Upstreams interface {
	// Upstream returns a session, live or ended. It returns ErrNotFound if it is unknown or
	// removed.
	Upstream(ctx context.Context, id string) (Upstream, error)
	// UpstreamFor returns a live session of a user at a connector: the session with the id prefer
	// if it qualifies, otherwise a linked one, otherwise the newest. It returns ErrNotFound if none
	// is live.
	UpstreamFor(ctx context.Context, userID, connector, prefer string) (Upstream, error)
	// LatestUpstreams returns the live sessions of a user at a connector, of each subject the newest, by subject.
	LatestUpstreams(ctx context.Context, userID, connector string) ([]Upstream, error)
	// ClaimUpstream gives the caller the session until the time until, if it is live, still has the
	// version and no replica holds it; the version stays. ErrSpent when another replica holds it or
	// the version is another one; ErrRevoked when it has ended; ErrNotFound.
	ClaimUpstream(ctx context.Context, id string, version int64, now, until time.Time) error
	// SaveUpstream stores the provider's answer: Sealed, Scopes, SessionID, CheckedAt and DueAt of
	// u. The session must be live and still have u.Version. It increments the version and releases
	// the claim. It returns ErrSpent if the version differs, ErrRevoked if the session has ended,
	// or ErrNotFound.
	SaveUpstream(ctx context.Context, u Upstream) error
	// DueUpstreams returns up to limit live sessions that are due at now and that no replica has
	// claimed, longest due first.
	DueUpstreams(ctx context.Context, now time.Time, limit int) ([]Upstream, error)
}

// UpstreamKey selects sessions: every non-empty field must match. With both a Subject and a
// SessionID, sessions of the subject with an unknown SessionID also match, because any of them may
// be the session.
type UpstreamKey struct {
	ID, Connector, Subject, SessionID, UserID string
	// Until excludes sessions that began after it; zero: no limit.
	Until time.Time
}

// Use is one use of a single-use identifier, as Once.Spend records it.
type Use struct {
	Purpose, ID string
	Expires     time.Time // from then on the record may be forgotten
}

// UpstreamEnds ends sessions at identity providers and everything that depends on them (AS-219).
type UpstreamEnds interface {
	// EndUpstreams ends every live session that k selects: it erases its tokens, revokes its grants
	// and ends its browser sessions, in one transaction. It returns the sessions as they were
	// before. An empty key selects none. An ended session stays known, with its reason, for 30
	// days, and to each browser for as long as its session would have lasted.
	EndUpstreams(ctx context.Context, k UpstreamKey, reason string, now time.Time) ([]Upstream, error)
	// EndUpstreamsOnce is EndUpstreams for all keys in one transaction, which also uses up use. It
	// returns ErrSpent, and changes nothing, if use was already recorded.
	EndUpstreamsOnce(ctx context.Context, keys []UpstreamKey, reason string, use Use, now time.Time) ([]Upstream, error)
	// SessionEnd returns the connector and reason of EndUpstreams for a browser session that it
	// ended. It returns ErrNotFound if EndUpstreams did not end it.
	SessionEnd(ctx context.Context, session Hash, now time.Time) (connector, reason string, err error)
}

// Handbacks are tokens of sessions at identity providers that an administrator, a sign-out or a
// sweep ended, and not the provider. They stay sealed here until a server revokes them (RFC 7009).
// Sweep erases them a day later.
type Handbacks interface {
	// TakeHandbacks removes up to limit handbacks and returns them with ID, Connector, Subject,
	// UserID and Sealed of the session. Each goes to one of N concurrent callers.
	TakeHandbacks(ctx context.Context, limit int) ([]Upstream, error)
}

// UpstreamCustody reseals sessions under another master key.
type UpstreamCustody interface {
	// ListUpstreams returns up to limit live sessions with an id greater than after, by id.
	ListUpstreams(ctx context.Context, after string, limit int) ([]Upstream, error)
	// ResealUpstream replaces the sealed content if it still equals old. It returns ErrSpent if it
	// does not, or if the live session does not exist. The version stays.
	ResealUpstream(ctx context.Context, id string, old, sealed []byte) error
}
