package storage

import (
	"context"
	"time"
)

// Administration combines the roles that only administration needs.
type Administration interface {
	KeyedRequests
	Proposals
	Searches
}

// Proposal is an administrative operation that waits for approval by a second administrator.
type Proposal struct {
	ID        string
	Operation string // operation name, such as "user delete"
	Input     []byte // sealed
	// Thing is a digest of the operation's target at the time of the proposal; "": no target yet.
	Thing     string
	By        Party
	CreatedAt time.Time
	ExpiresAt time.Time
	State     ProposalState
	Decided   Party     // zero while it is open
	DecidedAt time.Time // zero while it is open
}

// Party is a user or a program that administers.
type Party struct {
	UserID, Name string // "" for a program
	ClientID     string // the application that they act through; "": a browser
}

// ProposalState is the state of a proposal.
type ProposalState string

// The states of a proposal. It leaves ProposalOpen once.
const (
	ProposalOpen     ProposalState = "open"
	ProposalAccepted ProposalState = "accepted"
	ProposalDeclined ProposalState = "declined"
)

// MaxProposals is the maximum number of open proposals.
const MaxProposals = 100

// ProposalDecision closes a proposal.
type ProposalDecision struct {
	State ProposalState // ProposalAccepted or ProposalDeclined
	By    Party
	At    time.Time
}

// Proposals stores operations that wait for a second administrator. Expired proposals are not
// returned, and a sweep removes them.
type Proposals interface {
	// PutProposal stores an open proposal. It returns ErrFull if MaxProposals are open. N
	// concurrent calls may exceed the limit by N.
	PutProposal(ctx context.Context, p Proposal, now time.Time) error
	// Proposal returns the proposal with the id in any state, or ErrNotFound.
	Proposal(ctx context.Context, id string, now time.Time) (Proposal, error)
	// ListProposals returns up to limit proposals in any state with an id greater than after, by
	// id. This is also the order of their age.
	ListProposals(ctx context.Context, after string, limit int, now time.Time) ([]Proposal, error)
	// DecideProposal closes an open proposal, and returns it as stored afterwards. It returns
	// ErrSpent if the proposal was already closed; one of N concurrent calls closes it. It returns
	// ErrNotFound for an unknown id.
	DecideProposal(ctx context.Context, id string, d ProposalDecision) (Proposal, error)
}
