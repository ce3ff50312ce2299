package storage

import (
	"context"
	"time"
)

// Administration is what administering alone needs.
type Administration interface {
	KeyedRequests
	Proposals
	Searches
}

// Proposal is an operation of the administration that waits for a second administrator.
type Proposal struct {
	ID        string
	Operation string // its name, such as "user delete"
	Input     []byte // sealed
	// Thing is a digest of what it is about, as that was when it was proposed; "": about nothing yet.
	Thing     string
	By        Party
	CreatedAt time.Time
	ExpiresAt time.Time
	State     ProposalState
	Decided   Party     // zero while it is open
	DecidedAt time.Time // zero while it is open
}

// Party is a person or a program that administers.
type Party struct {
	UserID, Name string // "" for a program
	ClientID     string // the application by which they act; "": a browser
}

// ProposalState is what became of a proposal.
type ProposalState string

// The states of a proposal. It leaves ProposalOpen once.
const (
	ProposalOpen     ProposalState = "open"
	ProposalAccepted ProposalState = "accepted"
	ProposalDeclined ProposalState = "declined"
)

// MaxProposals is how many are open at one time.
const MaxProposals = 100

// ProposalDecision is how a proposal ends.
type ProposalDecision struct {
	State ProposalState // one of the other two
	By    Party
	At    time.Time
}

// Proposals keeps what waits for a second administrator. What has expired is forgotten, and a sweep
// removes it.
type Proposals interface {
	// PutProposal stores an open proposal. ErrFull when MaxProposals are open; calls at the same time may
	// go beyond that by their number.
	PutProposal(ctx context.Context, p Proposal, now time.Time) error
	// Proposal returns one, in whatever state. ErrNotFound.
	Proposal(ctx context.Context, id string, now time.Time) (Proposal, error)
	// ListProposals returns those in whatever state after an id, by id, which is by their age.
	ListProposals(ctx context.Context, after string, limit int, now time.Time) ([]Proposal, error)
	// DecideProposal ends an open proposal, and returns it as it then is. ErrSpent when it has ended: of N
	// concurrent calls one ends it. ErrNotFound.
	DecideProposal(ctx context.Context, id string, d ProposalDecision) (Proposal, error)
}
