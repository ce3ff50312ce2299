package storage

import (
	"context"
	"crypto/sha256"
	"strconv"
	"time"
)

// The bounds of clearances that wait.
const (
	MaxClearances       = 16 // of a grant, or of a client without one
	MaxPersonClearances = 64 // of all grants of a person
)

// ClearanceTerms is what a clearance is for, and who may give it how: it is spent by the call of which
// all of this is the same.
type ClearanceTerms struct {
	UserID    string // the person; "": the call of a machine
	ClientID  string
	GrantID   string // "": client credentials
	NodeID    string // "": what the client has itself
	Resource  string // canonical
	Tool      string
	Digest    Hash     // of the arguments
	By        string   // oauth.ClearanceByPerson, oauth.ClearanceByOther
	Approvers []string // names of accounts, as column.NameKey has them; nil: administrators
	ACR       []string
	MaxAge    time.Duration
}

// Key is a digest of the terms.
func (t ClearanceTerms) Key() Hash {
	text := appendList(nil, t.UserID, t.ClientID, t.GrantID, t.NodeID, t.Resource, t.Tool, string(t.Digest[:]), t.By,
		strconv.FormatInt(t.MaxAge.Milliseconds(), 10))
	text = appendList(text, t.Approvers...)
	text = appendList(text, t.ACR...)
	return sha256.Sum256(text)
}

// ClearanceState is the place of a clearance in its one-way life.
type ClearanceState string

// The states of a clearance. Given and refused are the decision of a person.
const (
	ClearanceWaits   ClearanceState = "waiting"
	ClearanceGiven   ClearanceState = "given"
	ClearanceRefused ClearanceState = "refused"
	ClearanceSpent   ClearanceState = "spent"
)

// Clearance is a person's permission for one tool call, or the wait for it.
type Clearance struct {
	ID string // "clr_" + random
	ClearanceTerms
	Sealed    []byte // the arguments, for the page
	State     ClearanceState
	GiverID   string // who has decided; "": it waits
	CreatedAt time.Time
	ExpiresAt time.Time // from then on it is unknown, whatever its state
}

// ClearanceDecision is what a person says about a clearance that waits.
type ClearanceDecision struct {
	ID      string
	Session Hash // of the browser of the person who decides
	Give    bool // false: it is refused
	Now     time.Time
}

// Clearances holds the clearances of tool calls. One is live until it expires, and while its grant and
// its node are live and not paused, its client is not deleted and its person not disabled.
type Clearances interface {
	// AskClearance spends the given clearance with the terms of c, unless who gave it may not any more, being
	// disabled or no administrator now: then that is returned, in the state spent, and of N concurrent calls
	// one gets it. Else it returns the one with these terms that waits or
	// was refused, or, for a call of a person, one that was refused for the same call (tool and digest) of the same
	// application at the resource, by whichever grant and live or not: the denial holds for all of them until it
	// expires. Where there is none, it stores and returns c, which waits. ErrRevoked when what c is
	// for is not live; ErrFull when as many wait as may.
	AskClearance(ctx context.Context, c Clearance) (Clearance, error)
	// Clearance returns a live clearance in any state. ErrNotFound.
	Clearance(ctx context.Context, id string, now time.Time) (Clearance, error)
	// DecideClearance gives or denies a clearance that waits, as the person of a session: of N concurrent
	// decisions one counts. Who may is its person or, for oauth.ClearanceByOther, another one: one of its
	// approvers, or an administrator where it names none. ErrNotFound when it is not live; ErrSpent when it
	// was decided before; ErrSignedOut when the session is not live; ErrMismatch for who may not.
	DecideClearance(ctx context.Context, d ClearanceDecision) (Clearance, error)
	// WaitingClearances returns up to MaxPersonClearances clearances that wait, of those which this person
	// may decide, the oldest first.
	WaitingClearances(ctx context.Context, userID string, now time.Time) ([]Clearance, error)
}
