package storage

import (
	"context"
	"errors"
	"time"
)

// ErrEnded: the issuer has since ended its earlier assertions about the user.
var ErrEnded = errors.New("storage: the issuer has revoked its earlier assertions")

// AssertedEnds ends grants that depend on an issuer's assertions about a user, at the issuer's
// request.
type AssertedEnds interface {
	// EndAsserted ends live grants that were stored by e.Until and depend on one of e.TrustIDs.
	// Their user must be linked to e.Issuer with one of e.Subjects. It returns how many grants it
	// ended.
	//
	// Until e.ForgetAt, GrantAssertion refuses the issuer's assertions about one of the subjects
	// that were issued at e.At or before. This also holds for a subject that is not linked to a
	// user yet.
	//
	// It uses up use in the same transaction. ErrSpent: one of N concurrent calls with the same use
	// succeeds.
	EndAsserted(ctx context.Context, e AssertedEnd, use Use, now time.Time) (ended int, err error)
}

// AssertedEnd says which assertions an issuer ends.
type AssertedEnd struct {
	Issuer   string
	Subjects []string // in every tenant of the issuer
	TrustIDs []string
	At       time.Time
	Until    time.Time // grants stored later stay
	ForgetAt time.Time
}
