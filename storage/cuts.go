package storage

import (
	"context"
	"errors"
	"time"
)

// Selection says which grants are meant: those that match every field that is not empty. A
// Connector, a Trust and an Application stand alone. The zero Selection means none.
type Selection struct {
	UserID, ClientID, Resource string
	Connector                  string // grants that rest on a session at this provider
	Trust                      string // grants that rest on assertions by this trust entry
	Application                string // grants to clients that are filed under this key, see Applications
	All                        bool   // every grant; with no other field
}

// ErrSelection: a selection means nothing, or contradicts itself.
var ErrSelection = errors.New(
	"storage: select grants by user, client or resource, or by connector, trust entry or application, or all of them")

// Check returns ErrSelection for one that CutGrants refuses.
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

// Cut is the end of many grants at once.
type Cut struct {
	ID string
	Selection
	By     RevokedBy
	At     time.Time
	Grants int64 // marked as revoked so far
	// Done: each of them is marked, and the consents are forgotten. FollowCut says so to one
	// caller.
	Done bool
}

// Cuts ends any number of grants by one row. DeleteClient, RemoveResource, ForgetConsent and
// the verbs of Accounts do the same when they meet more grants than a statement can mark in
// a moment.
//
// An assertion that was issued before the cut, or in the same moment, gets no such grant afterwards, nor
// does one of before the end of a person's grants by a verb of Accounts: see GrantAssertion.
//
// A grant is cut when it was stored before the cut; the store knows by its own order, not by
// a clock. Every verb then takes it for revoked, and takes what was consented to for
// forgotten, at once and until each grant is marked, batch by batch. A grant that is stored
// after the cut is good, also for a user who was enabled or a resource that was added again.
// A consent that is given between the cut and its end may be forgotten with the others.
type Cuts interface {
	// CutGrants cuts every grant that sel selects, and forgets the consents behind them; with
	// a Connector it keeps these, and ends the browser sessions and the sessions at the
	// provider, whose tokens are then among the Handbacks; with a Trust there are none. ErrSelection.
	CutGrants(ctx context.Context, sel Selection, by RevokedBy, now time.Time) (Cut, error)
	// PendingCuts returns the cuts for which there is something to do at now, oldest first.
	PendingCuts(ctx context.Context, now time.Time) ([]Cut, error)
	// FollowCut does the next batch of a cut, which looks at up to limit records, and returns
	// it as it is then. Concurrent callers take turns. ErrNotFound when there is nothing left
	// to do.
	FollowCut(ctx context.Context, id string, now time.Time, limit int) (Cut, error)
}
