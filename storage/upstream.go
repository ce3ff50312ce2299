package storage

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Identity ties a person's account at an upstream provider to a user. Connector and Subject are its
// key; an e-mail address never is, because it can pass to another person.
type Identity struct {
	Connector  string // the id of the connector in the configuration
	Subject    string // the provider's own, stable identifier of the person
	UserID     string
	Label      string // the person's name there, for people to read; never compared
	CreatedAt  time.Time
	LastUsedAt time.Time
	// Began: this identity made the account, at the first sign-in of its person. It is filled in by the
	// store.
	Began bool
}

// ErrHomeProvider: the account began at a provider, and the person has no session there that stands.
var ErrHomeProvider = errors.New("storage: no session at the provider of the account")

// Upstream is a session at an identity provider: the tokens that a sign-in there returned (AS-217).
// Browser sessions and grants that began with it name it, and end with it.
type Upstream struct {
	ID        string // "ups_" + random
	Connector string
	Subject   string
	UserID    string
	SessionID string // the provider's name for its session (sid), "" when it has none
	// Linked: it belongs to the account rather than to a sign-in, and is kept even if no grant and
	// no browser session names it.
	Linked    bool
	Sealed    []byte // tokens and claims, sealed; nil once the session has ended
	Scopes    oauth.Scopes
	Version   int64 // how often Sealed was written; the first is 1
	CreatedAt time.Time
	CheckedAt time.Time // when the provider last confirmed it
	DueAt     time.Time // when to ask the provider next
	EndedAt   time.Time // zero: live
	EndReason string    // a word of the contract of thirdparty, "" while live
}

// Departure is an authorization request to an identity provider, stored until its response
// (AS-220). Its key is a digest of the state parameter and a secret that only that browser holds.
type Departure struct {
	Key       Hash
	Sealed    []byte
	ExpiresAt time.Time
}

// Departures holds the requests that await a response.
type Departures interface {
	// PutDeparture stores a departure. ErrExists when the key is taken.
	PutDeparture(ctx context.Context, d Departure) error
	// TakeDeparture removes a departure and returns it: of N concurrent calls one gets it.
	// ErrNotFound when there is no such departure any more; ErrExpired, beside the one that was
	// removed.
	TakeDeparture(ctx context.Context, key Hash, now time.Time) (Departure, error)
	// AbandonedDepartures removes up to limit departures that have expired and returns
	// them: each goes to one of N concurrent callers. Sweep removes them an hour later.
	AbandonedDepartures(ctx context.Context, now time.Time, limit int) ([]Departure, error)
}

// Arrival is a person who has signed in at an identity provider.
type Arrival struct {
	// Identity is who the provider says it is. With a UserID it has to be that user's, or is tied
	// to them if they were Asked; without, the user who has the identity signs in, or NewUser when
	// no user has it.
	Identity Identity
	// Asked says that the user of Identity.UserID was shown this identity and wants it.
	Asked   bool
	NewUser *User
	// Upstream is the new session there. Its UserID is filled in and its Version is 1. If
	// it is Linked it replaces the user's earlier linked sessions at the connector, which
	// end as by EndUpstreams, with the reason "replaced". What rests on one of the same account there
	// rests on the new one from then on.
	Upstream Upstream
	// Seal, unless it is nil, makes Upstream.Sealed, for the user who signs in. It may be called
	// more than once, and within a transaction.
	Seal func(userID string) ([]byte, error)
	// Session is the browser session that begins; nil: none does. Its UserID is filled
	// in, and its UpstreamID is Upstream.ID; in an account that began with another identity it rests on
	// the newest live session of that one. The user's last sign-in is then Now.
	Session *Session
	// LeftAt is when the browser left for the provider; zero: not compared.
	LeftAt time.Time
	Now    time.Time
}

// ErrStopped: everything of the person was stopped since.
var ErrStopped = errors.New("storage: everything of the person was stopped since")

// Arrivals stores sign-ins at identity providers.
type Arrivals interface {
	// Arrive stores all of an arrival, or nothing, and returns the user. When the name of
	// NewUser is taken it is stored as the name followed by "-" and the last six
	// characters of its id. Of concurrent arrivals of one new identity one creates the
	// user, and the others are that user.
	//
	// ErrRevoked: the account is disabled. ErrUntied: the identity has no user, and the user of
	// Identity.UserID was not asked. ErrExists: the identity is another user's (with
	// Identity.UserID), or the id of NewUser is stored but does not have the identity. ErrNotFound: the
	// user of Identity.UserID is gone, or no user has the identity and there is no NewUser. ErrStopped: the
	// user has stopped everything since LeftAt. ErrHomeProvider: the account began with another identity,
	// and a Session has nothing there to rest on.
	Arrive(ctx context.Context, a Arrival) (User, error)
}

// Identities lists and unties accounts at identity providers.
type Identities interface {
	// Identities returns the identities of a user, oldest first.
	Identities(ctx context.Context, userID string) ([]Identity, error)
	// Unlink removes an identity of a user, ends its sessions as EndUpstreams does and
	// returns them as they were before.
	// ErrNotFound when the user has no such identity. ErrLast when nothing else would let the user
	// in, as WayEnds says, and for the one with which the account began, on which all the others rest.
	// ErrSignedOut when In has ended, as Ways says.
	Unlink(ctx context.Context, u Untie) ([]Upstream, error)
}

// Untie says which identity of a user to remove, and why.
type Untie struct {
	UserID, Connector, Subject string
	Reason                     string
	By                         Admission // what else may let the user in
	In                         Hash      // the session in which the user does it; zero for the operator
	Now                        time.Time
}

// Upstreams keeps the sessions at identity providers up to date. Only the holder of a claim asks
// the provider about a session, so that only one of N replicas uses a refresh token that works
// once.
type Upstreams interface {
	// Upstream returns a session, live or ended. ErrNotFound when it is unknown or was removed.
	Upstream(ctx context.Context, id string) (Upstream, error)
	// UpstreamFor returns a live session of a user at a connector: the one with the id
	// prefer if it is among them, else a linked one, else the newest. ErrNotFound.
	UpstreamFor(ctx context.Context, userID, connector, prefer string) (Upstream, error)
	// LatestUpstreams returns the live sessions of a user at a connector, of each subject the newest, by subject.
	LatestUpstreams(ctx context.Context, userID, connector string) ([]Upstream, error)
	// ClaimUpstream gives the caller the session until the time until, if it is live, still has the
	// version and no replica holds it; the version stays. ErrSpent when another replica holds it or
	// the version is another one; ErrRevoked when it has ended; ErrNotFound.
	ClaimUpstream(ctx context.Context, id string, version int64, now, until time.Time) error
	// SaveUpstream stores the provider's answer (Sealed, Scopes, SessionID, CheckedAt, DueAt, of
	// u), if the session is live and still has u.Version, increments the version, and releases the
	// claim. ErrSpent when the version is another one; ErrRevoked when it has ended; ErrNotFound.
	SaveUpstream(ctx context.Context, u Upstream) error
	// DueUpstreams returns up to limit live sessions that are due at now and that no replica holds,
	// the longest due first.
	DueUpstreams(ctx context.Context, now time.Time, limit int) ([]Upstream, error)
}

// UpstreamKey selects sessions: every field that is not empty must match. With both a Subject and a
// SessionID, sessions of the subject with an unknown SessionID match, too: any of them may be the
// one.
type UpstreamKey struct {
	ID, Connector, Subject, SessionID, UserID string
	// Until leaves out sessions that began after it; zero: none.
	Until time.Time
}

// Use is one use of something that is good for once, as Once.Spend records it.
type Use struct {
	Purpose, ID string
	Expires     time.Time // from when on it need not be known any more
}

// UpstreamEnds ends sessions at identity providers and what rests on them (AS-219).
type UpstreamEnds interface {
	// EndUpstreams ends every live session that k selects: erases its tokens, revokes its grants
	// and ends its browser sessions, all at once, and returns them as they were before. A key
	// without any field selects none. An ended session stays known, with its reason, for 30 days,
	// and to each browser for as long as its session would have lasted.
	EndUpstreams(ctx context.Context, k UpstreamKey, reason string, now time.Time) ([]Upstream, error)
	// EndUpstreamsOnce is EndUpstreams, for each of the keys and all at once, by something that is
	// good for once. ErrSpent, and nothing changes, when it was used before.
	EndUpstreamsOnce(ctx context.Context, keys []UpstreamKey, reason string, use Use, now time.Time) ([]Upstream, error)
	// SessionEnd returns the connector and the reason for which a browser session was
	// ended by EndUpstreams. ErrNotFound when it was not.
	SessionEnd(ctx context.Context, session Hash, now time.Time) (connector, reason string, err error)
}

// Handbacks are tokens of sessions at identity providers that the operator, a sign-out or a sweep
// ended, and not the provider. They stay here, sealed as before, until a server revokes them (RFC
// 7009); Sweep erases them a day later.
type Handbacks interface {
	// TakeHandbacks removes up to limit of them and returns them: ID, Connector, Subject,
	// UserID and Sealed of the session. Each goes to one of N concurrent callers.
	TakeHandbacks(ctx context.Context, limit int) ([]Upstream, error)
}

// UpstreamCustody seals sessions again under another master key.
type UpstreamCustody interface {
	// ListUpstreams returns up to limit live sessions with an id greater than after, by id.
	ListUpstreams(ctx context.Context, after string, limit int) ([]Upstream, error)
	// ResealUpstream replaces the sealed content, if it still is old. ErrSpent when it is not, or
	// when there is no such live session. The version stays.
	ResealUpstream(ctx context.Context, id string, old, sealed []byte) error
}
