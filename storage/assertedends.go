package storage

import (
	"context"
	"errors"
	"time"
)

// ErrEnded: the issuer has said since that what the person had is over.
var ErrEnded = errors.New("storage: the issuer has ended what it asserted before")

// AssertedEnds ends what rests on the assertions of an issuer about a person, because the issuer says so.
type AssertedEnds interface {
	// EndAsserted ends the live grants, stored by e.Until, that rest on one of e.TrustIDs and are of the
	// people whom e.Issuer calls by one of e.Subjects. Until e.ForgetAt GrantAssertion grants nothing
	// for an assertion of the issuer about one of the subjects that was issued at e.At or before; also
	// where the subject is linked to no user yet. It spends use with it, all at once or nothing, and
	// returns how many grants it has ended. ErrSpent: of N concurrent calls with one use one succeeds.
	EndAsserted(ctx context.Context, e AssertedEnd, use Use, now time.Time) (ended int, err error)
}

// AssertedEnd is what an issuer ends.
type AssertedEnd struct {
	Issuer   string
	Subjects []string // in every tenant of the issuer
	TrustIDs []string
	At       time.Time
	Until    time.Time // grants that were stored later stay
	ForgetAt time.Time
}
