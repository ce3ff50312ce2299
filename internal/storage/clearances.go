package storage

import (
	"context"
	"crypto/sha256"
	"strconv"
	"time"
)

// The limits on waiting tool call approvals.
const (
	MaxClearances       = 16 // per grant, or per client without a grant
	MaxPersonClearances = 64 // per user, over all grants
)

// ClearanceTerms are the call that a tool call approval is for, and who may approve it how. A call
// uses up the approval only if all terms are equal.
type ClearanceTerms struct {
	UserID    string // the user; "": the call of a machine
	ClientID  string
	GrantID   string // "": client credentials
	NodeID    string // "": the client's own call
	Resource  string // canonical
	Tool      string
	Digest    Hash     // of the arguments
	By        string   // oauth.ClearanceByPerson or oauth.ClearanceByOther
	Approvers []string // account names in the form of column.NameKey; nil: administrators
	ACR       []string
	MaxAge    time.Duration
}

// Key returns a digest of the terms.
func (t ClearanceTerms) Key() Hash {
	text := appendList(nil, t.UserID, t.ClientID, t.GrantID, t.NodeID, t.Resource, t.Tool, string(t.Digest[:]), t.By,
		strconv.FormatInt(t.MaxAge.Milliseconds(), 10))
	text = appendList(text, t.Approvers...)
	text = appendList(text, t.ACR...)
	return sha256.Sum256(text)
}

// ClearanceState is the state of a tool call approval. It only moves forward.
type ClearanceState string

// The states of a tool call approval. A user decides between given and refused.
const (
	ClearanceWaits   ClearanceState = "waiting"
	ClearanceGiven   ClearanceState = "given"
	ClearanceRefused ClearanceState = "refused"
	ClearanceSpent   ClearanceState = "spent"
)

// Clearance is a user's approval of one tool call, or the request for it.
type Clearance struct {
	ID string // "clr_" + random
	ClearanceTerms
	Sealed    []byte // the arguments, for the approval page
	State     ClearanceState
	GiverID   string // who decided; "": it waits
	CreatedAt time.Time
	ExpiresAt time.Time // from then on it is unknown, in any state
}

// ClearanceDecision is a user's decision about a waiting tool call approval.
type ClearanceDecision struct {
	ID      string
	Session Hash // of the deciding user's browser
	Give    bool // false: refuse
	Now     time.Time
}

// Clearances stores tool call approvals. An approval is live until it expires. Also, its grant and
// its node must be live and not paused, its client not deleted and its user not disabled.
type Clearances interface {
	// AskClearance uses up the given approval with the terms of c and returns it in the state
	// spent. One of N concurrent calls gets it. The approval does not count if its giver has since
	// been disabled or lost the administrator role that it required.
	//
	// Otherwise it returns the approval with these terms that waits or was refused. For a user's
	// call, it also returns an earlier refusal of the same call (tool and digest) of the same
	// application at the resource. The refusal may belong to any grant, live or not. Such a denial
	// holds for all of them until it expires.
	//
	// If none of these exists, it stores and returns c, which waits. It returns ErrRevoked if the
	// grant, node, client or user of c is not live, and ErrFull if the limit of waiting ones is
	// reached.
	AskClearance(ctx context.Context, c Clearance) (Clearance, error)
	// Clearance returns a live approval in any state, or ErrNotFound.
	Clearance(ctx context.Context, id string, now time.Time) (Clearance, error)
	// DecideClearance approves or denies a waiting tool call approval, as the user of a session.
	// One of N concurrent decisions counts. Its user may decide. For oauth.ClearanceByOther,
	// another user must: one of its approvers, or an administrator if it names none. It returns
	// ErrNotFound if the approval is not live, and ErrSpent if it was already decided. It returns
	// ErrSignedOut if the session is not live, and ErrMismatch if the user may not decide.
	DecideClearance(ctx context.Context, d ClearanceDecision) (Clearance, error)
	// WaitingClearances returns up to MaxPersonClearances waiting approvals that this user may
	// decide, oldest first.
	WaitingClearances(ctx context.Context, userID string, now time.Time) ([]Clearance, error)
}
