package storage

import (
	"context"
	"time"
)

// AttemptStep is one request of a client or a browser on the way to a token, and what it was answered, as
// package attempt describes it.
type AttemptStep struct {
	Seq  int64 // in the order in which the steps were stored; the store sets it
	At   time.Time
	Keys []string // by which it is found again
	Body []byte   // JSON
	// KeptUntil is when the next sweep removes it.
	KeptUntil time.Time
}

// StepQuery says which steps are wanted.
type StepQuery struct {
	Keys  []string  // with one of these keys; empty: with any or none
	From  time.Time // of this time or later
	Until time.Time // before this time
	Limit int
}

// MaxSteps bounds what is kept: the steps of 50,000 attempts with eight steps each. Beyond it, a sweep
// removes the oldest.
const MaxSteps = 400_000

// Attempts keeps what was asked and answered on the way to a token, for the operator.
type Attempts interface {
	// PutSteps stores steps. Those of one attempt may come from several servers, in any order.
	PutSteps(ctx context.Context, steps []AttemptStep) error
	// Steps returns the steps that are wanted, the newest first; of one time, the one stored last first.
	Steps(ctx context.Context, q StepQuery) ([]AttemptStep, error)
}
