package storage

import (
	"context"
	"errors"
	"time"
)

// Selection selects the grants that match every non-empty field. Connector, Trust and Application
// must each be the only field. The zero Selection selects no grants.
type Selection struct {
	UserID, ClientID, Resource string
	Connector                  string // grants that depend on a session at this provider
	Trust                      string // grants that depend on assertions accepted by this trusted issuer entry
	Application                string // grants to clients filed under this key, see Applications
	All                        bool   // every grant; must be the only field
}

// ErrSelection: a selection is empty or has conflicting fields.
var ErrSelection = errors.New(
	"storage: select grants by user, client or resource, or by connector, trust entry or application, or all of them")

// Check returns ErrSelection for a selection that CutGrants refuses.
func (s Selection) Check() error {
	fields := s.UserID != "" || s.ClientID != "" || s.Resource != ""
	n := count(fields) + count(s.Connector != "") + count(s.Trust != "") + count(s.Application != "") + count(s.All)
	if n != 1 {
		return ErrSelection
	}
	return nil
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Cut is the revocation of many grants at once.
type Cut struct {
	ID string
	Selection
	By     RevokedBy
	At     time.Time
	Grants int64 // marked as revoked so far
	// Done: every grant is marked, and the consents are forgotten. FollowCut reports it to one
	// caller.
	Done bool
}

// Cuts ends any number of grants by writing one row. DeleteClient, RemoveResource, ForgetConsent
// and the verbs of Accounts use cuts if there are more grants than one statement can mark quickly.
//
// A grant is cut if it was stored before the cut; the store uses its own order, not a clock. From
// then on, every verb treats the grant as revoked and its consents as forgotten, while the store
// marks the grants batch by batch. A grant stored after the cut is valid, also for a user who was
// enabled, or a resource that was added, again. A consent given between the cut and its end may be
// forgotten with the others.
//
// An assertion issued before the cut, or in the same millisecond, gets no such grant afterwards.
// The same holds if a verb of Accounts ended the user's grants: see GrantAssertion.
type Cuts interface {
	// CutGrants cuts every grant that sel selects, and forgets the consents behind them. With a
	// Connector it keeps the consents, and ends the browser sessions and the sessions at the
	// provider, whose tokens are then among the Handbacks. With a Trust there are no consents. It
	// returns ErrSelection.
	CutGrants(ctx context.Context, sel Selection, by RevokedBy, now time.Time) (Cut, error)
	// PendingCuts returns the cuts that have work left at now, oldest first.
	PendingCuts(ctx context.Context, now time.Time) ([]Cut, error)
	// FollowCut does the next batch of a cut, which reads up to limit records, and returns the cut
	// as updated. Concurrent callers take turns. It returns ErrNotFound if no work is left.
	FollowCut(ctx context.Context, id string, now time.Time, limit int) (Cut, error)
}
