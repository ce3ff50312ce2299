package storage

import (
	"context"
	"time"
)

// AttemptStep is one request of a client or a browser towards a token, with its response. Package
// attempt describes it.
type AttemptStep struct {
	Seq  int64 // storage order; the store sets it
	At   time.Time
	Keys []string // search keys
	Body []byte   // JSON
	// KeptUntil is when the next sweep removes it.
	KeptUntil time.Time
}

// StepQuery selects steps.
type StepQuery struct {
	Keys  []string  // steps with one of these keys; empty: all steps
	From  time.Time // from this time on
	Until time.Time // before this time
	Limit int
}

// MaxSteps bounds the stored steps: 50,000 attempts with eight steps each. Beyond it, a sweep
// removes the oldest.
const MaxSteps = 400_000

// Attempts stores the connection log for administrators: requests on the way to a token, with their
// responses.
type Attempts interface {
	// PutSteps stores steps. Several servers may store the steps of one attempt, in any order.
	PutSteps(ctx context.Context, steps []AttemptStep) error
	// Steps returns the selected steps, newest first. If times are equal, the last stored comes
	// first.
	Steps(ctx context.Context, q StepQuery) ([]AttemptStep, error)
}
