package clearance

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Errors for a user who has nothing to decide.
var (
	// ErrNone reports that the tool call approval does not exist, has expired, was decided, or is
	// not for this user. The user is not shown which.
	ErrNone = errors.New("clearance: nothing to decide")
	// ErrOther reports that another user has to approve this user's call.
	ErrOther = errors.New("clearance: for another person to decide")
)

// Question is the content of an approval page.
type Question struct {
	storage.Clearance
	Arguments Arguments
	For       string // name of the calling user; "": the approver, or a machine
}

// Look returns the question of a tool call approval for a signed-in user. It returns ErrNone,
// ErrOther, or an *oauth.Error. With entry.ErrMore and entry.ErrProve, the user has to authenticate
// first, because the approval or the general policy requires it.
func (d *Desk) Look(ctx context.Context, id string, v storage.Visit) (Question, error) {
	c, err := d.find(ctx, id, v)
	if err != nil || c.State != storage.ClearanceWaits {
		return Question{Clearance: c}, err
	}
	if err := d.Proved(ctx, c, v); err != nil {
		return Question{Clearance: c}, err
	}
	q := Question{Clearance: c}
	raw, err := d.Ring.Open(sealing, c.Sealed, []byte(c.ID))
	if err == nil {
		q.Arguments, err = ParseArguments(raw)
	}
	if err == nil && c.UserID != "" && c.UserID != v.User.ID {
		var of storage.User
		of, err = d.Store.User(ctx, c.UserID)
		q.For = of.Name
	}
	if err != nil {
		return q, refusal.Unavailable(err)
	}
	return q, nil
}

// find returns a tool call approval that a user may see: one that waits for them, or that they have
// decided.
func (d *Desk) find(ctx context.Context, id string, v storage.Visit) (storage.Clearance, error) {
	c, err := d.Store.Clearance(ctx, id, d.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return storage.Clearance{}, ErrNone
	case err != nil:
		return storage.Clearance{}, refusal.Unavailable(err)
	case c.State != storage.ClearanceWaits && c.GiverID == v.User.ID, mayDecide(c, v.User):
		return c, nil
	case c.UserID == v.User.ID && c.State == storage.ClearanceWaits: // the caller sees who decides
		return c, ErrOther
	}
	return storage.Clearance{}, ErrNone
}

// mayDecide reports whether a user may decide a waiting tool call approval. The store checks it
// again.
func mayDecide(c storage.Clearance, u storage.User) bool {
	switch {
	case c.State != storage.ClearanceWaits:
		return false
	case c.By == oauth.ClearanceByPerson:
		return c.UserID == u.ID
	case c.UserID == u.ID:
		return false
	case len(c.Approvers) == 0:
		return u.Role == storage.Administrator
	}
	return slices.Contains(c.Approvers, strings.ToLower(u.Name))
}

// errUntold reports that this user cannot meet the requirement.
var errUntold = sentence.NewError(oauth.UnmetAuthentication,
	"This needs a recent sign-in, and your provider does not say when you signed in.", "no_auth_time")

// Proved returns nil if a user's session meets the authentication that a tool call approval
// requires. Its errors are the same as for Look.
func (d *Desk) Proved(ctx context.Context, c storage.Clearance, v storage.Visit) error {
	if err := entry.Sufficient(ctx, d.Factors, v); err != nil {
		return err
	}
	s, now := v.Session, d.Now()
	proof := policy.Proof{ACR: ways.ACR(s.Methods), At: s.AuthTime}
	switch {
	case !oauth.ACRSatisfies(proof.ACR, d.Class(c)):
		return entry.ErrMore
	case proof.Recent(policy.Authentication{MaxAge: c.MaxAge}, now):
		return nil
	case s.AuthTime.IsZero() && entry.Fresh(s, now): // another sign-in would not help
		return errUntold
	}
	return entry.ErrProve
}

// Class returns the authentication context class that the approver has to reach; "": any.
func (d *Desk) Class(c storage.Clearance) string {
	if len(c.ACR) == 0 {
		return ""
	}
	if acr := d.acr(c.ACR); acr != "" {
		return acr
	}
	return c.ACR[0] // supported when it was requested; cannot be reached now
}

// Decide carries out a user's decision about a tool call approval, in the session of a visit. Its
// errors are the same as for Look. It also returns ErrNone if the approval was decided or has ended
// since.
func (d *Desk) Decide(ctx context.Context, id string, v storage.Visit, give bool) (storage.Clearance, error) {
	c, err := d.find(ctx, id, v)
	switch {
	case err != nil:
		return c, err
	case c.State != storage.ClearanceWaits:
		return c, nil // a form that was sent twice: show the decision
	}
	if err := d.Proved(ctx, c, v); give && err != nil {
		return c, err
	}
	got, err := d.Store.DecideClearance(ctx, storage.ClearanceDecision{
		ID: id, Session: v.Session.Hash, Give: give, Now: d.Now(),
	})
	switch {
	case errors.Is(err, storage.ErrSpent):
		return d.find(ctx, id, v)
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrMismatch):
		return c, ErrNone
	case errors.Is(err, storage.ErrSignedOut):
		return c, entry.ErrAnotherPerson
	case err != nil:
		return c, refusal.Unavailable(err)
	}
	if give {
		d.record(ctx, audit.ClearanceGiven, got)
	} else {
		d.record(ctx, audit.ClearanceRefused, got)
	}
	return got, nil
}

// Of returns the tool call approval that a client names in an authorization request. It returns nil
// if the approval has ended or belongs to another user, client or resource.
func (d *Desk) Of(ctx context.Context, id string, of Caller) (*storage.Clearance, error) {
	c, err := d.Store.Clearance(ctx, id, d.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, refusal.Unavailable(err)
	case c.UserID != of.UserID || c.ClientID != of.ClientID || c.Resource != of.Resource:
		return nil, nil
	}
	return &c, nil
}

// Waiting returns the tool call approvals that wait for a user.
func (d *Desk) Waiting(ctx context.Context, userID string) ([]storage.Clearance, error) {
	list, err := d.Store.WaitingClearances(ctx, userID, d.Now())
	if err != nil {
		return nil, refusal.Unavailable(err)
	}
	return list, nil
}
