package admin

import (
	"errors"
	"fmt"
	"time"
)

// What goes wrong with an operation. Faces say which; the text after it is for people.
var (
	// ErrForbidden: the actor's role may not do it.
	ErrForbidden = errors.New("your role may not do this")
	// ErrNotFound: what the input names is not there.
	ErrNotFound = errors.New("not found")
	// ErrConflict: it is there already, has changed since, or something else stands in its way.
	ErrConflict = errors.New("conflict")
	// ErrInvalid: the input cannot be used.
	ErrInvalid = errors.New("invalid")
	// ErrUnavailable: nothing was done, and later it may be.
	ErrUnavailable = errors.New("nothing was done; try again later")
	// ErrInterrupted: the database could not be used in the middle of it, and a part of it may have been done.
	ErrInterrupted = errors.New("the database was busy in the middle of it, so a part of it may have been done; " +
		"look before you try again")
	// ErrUnkept: something was done, and its entry is not in the audit log yet.
	ErrUnkept = errors.New("something was done that is not in the audit log yet; look before you try again")
)

// StaleError: a person has to prove again who they are, as they did MaxAge ago at most.
type StaleError struct{ MaxAge time.Duration }

func (e *StaleError) Error() string {
	return fmt.Sprintf("prove again who you are: this needs a sign-in of the last %s", e.MaxAge)
}

// problem is an error of one of the kinds above with a sentence for people.
type problem struct {
	kind error
	text string
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

// fault makes an error of a kind. The sentence says what to do next.
func fault(kind error, text string, args ...any) error {
	return &problem{kind, fmt.Sprintf(text, args...)}
}
