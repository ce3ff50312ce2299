package admin

import (
	"errors"
	"fmt"
	"time"
)

// The kinds of errors of operations. The front ends tell them apart; the text is for users.
var (
	// ErrForbidden is returned if the actor's role does not permit the operation.
	ErrForbidden = errors.New("your role may not do this")
	// ErrNotFound is returned if the named object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict is returned if the object already exists, has changed since, or is in a state
	// that prevents the operation.
	ErrConflict = errors.New("conflict")
	// ErrInvalid is returned if the input is invalid.
	ErrInvalid = errors.New("invalid")
	// ErrUnavailable is returned if no change was made and a retry may succeed.
	ErrUnavailable = errors.New("the change was not made; try again later")
	// ErrInterrupted is returned if the database failed during the operation, so that a part of it
	// may have been done.
	ErrInterrupted = errors.New("the database was busy in the middle of it, so a part of it may have been done; " +
		"look before you try again")
	// ErrUnkept is returned if the operation was done but its entry is not in the audit log yet.
	ErrUnkept = errors.New("something was done that is not in the audit log yet; look before you try again")
)

// StaleError is returned if a user must authenticate again. The last authentication must be at most
// MaxAge ago.
type StaleError struct{ MaxAge time.Duration }

func (e *StaleError) Error() string {
	return fmt.Sprintf("prove again who you are: this needs a sign-in of the last %s", e.MaxAge)
}

// problem is an error of one of the kinds above, with a sentence for users.
type problem struct {
	kind error
	text string
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

// fault returns an error of a kind. The sentence says what to do next.
func fault(kind error, text string, args ...any) error {
	return &problem{kind, fmt.Sprintf(text, args...)}
}
