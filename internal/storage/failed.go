package storage

import (
	"context"
	"errors"
)

// answers lists the contract's errors that a working store returns.
var answers = []error{
	ErrNotFound, ErrExists, ErrExpired, ErrMismatch, ErrResource, ErrSpent, ErrSuperseded, ErrRevoked, ErrPaused,
	ErrUntied, ErrChanged, ErrLast, ErrEarly, ErrFull, ErrInUse, ErrEnded, ErrWider, ErrDeep, ErrProved,
	ErrHomeProvider, ErrStopped, ErrSignedOut, ErrNothing,
}

// Failed reports whether an error of a verb means that the store failed: it is not an error of the
// contract, and the caller did not cancel.
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
