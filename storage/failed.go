package storage

import (
	"context"
	"errors"
)

// answers are the errors by which a store that works answers.
var answers = []error{
	ErrNotFound, ErrExists, ErrExpired, ErrMismatch, ErrResource, ErrSpent, ErrSuperseded, ErrRevoked, ErrPaused,
	ErrUntied, ErrChanged, ErrLast, ErrEarly, ErrFull, ErrInUse, ErrEnded, ErrWider, ErrDeep, ErrProved,
	ErrHomeProvider, ErrStopped, ErrSignedOut, ErrNothing,
}

// Failed reports whether an error of a verb says that the store failed: it is none of the contract,
// and its caller did not give up.
func Failed(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	for _, answer := range answers {
		if errors.Is(err, answer) {
			return false
		}
	}
	return true
}
