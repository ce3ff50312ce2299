package clearance

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// The answers to a person for whom there is nothing to decide.
var (
	// ErrNone: there is no such clearance, it has expired or was decided, or it is not for this person.
	// Which it is they are not told.
	ErrNone = errors.New("clearance: nothing to decide")
	// ErrOther: it is for another person to decide a clearance for a call of this one.
	ErrOther = errors.New("clearance: for another person to decide")
)

// Question is what a person is asked.
type Question struct {
	storage.Clearance
	Arguments Arguments
	For       string // the name of the person for whom the call is made; "": the one who is asked, or a machine
}

// Look returns what a clearance asks a person who is signed in. ErrNone, ErrOther, or an *oauth.Error. With
// entry.ErrMore and entry.ErrProve they have to prove more first: it is demanded by the clearance, or of
// everyone.
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

// find returns a clearance that a person may see: one that waits for them, or that they have decided.
func (d *Desk) find(ctx context.Context, id string, v storage.Visit) (storage.Clearance, error) {
	c, err := d.Store.Clearance(ctx, id, d.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return storage.Clearance{}, ErrNone
	case err != nil:
		return storage.Clearance{}, refusal.Unavailable(err)
	case c.State != storage.ClearanceWaits && c.GiverID == v.User.ID, mayDecide(c, v.User):
		return c, nil
	case c.UserID == v.User.ID && c.State == storage.ClearanceWaits: // who is told for whom it waits
		return c, ErrOther
	}
	return storage.Clearance{}, ErrNone
}

// mayDecide reports whether a person may decide a clearance that waits, as the store judges it again.
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

// errUntold: no proof of this person will do.
var errUntold = oauth.NewError(oauth.UnmetAuthentication,
	"This needs a recent sign-in, and your provider does not say when you signed in.")

// Proved is nil for a person whose session proves as much as a clearance demands. Its other answers are
// those of Look.
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
	case s.AuthTime.IsZero() && entry.Fresh(s, now): // another proof would tell no more
		return errUntold
	}
	return entry.ErrProve
}

// Class is the authentication context class that the person who decides has to reach; "": any.
func (d *Desk) Class(c storage.Clearance) string {
	if len(c.ACR) == 0 {
		return ""
	}
	if acr := d.acr(c.ACR); acr != "" {
		return acr
	}
	return c.ACR[0] // which this server had when it was asked for: no proof reaches it
}

// Decide carries out what a person says about a clearance that they were shown, in the session of a visit.
// Its errors are those of Look; ErrNone as well when it was decided or has ended meanwhile.
func (d *Desk) Decide(ctx context.Context, id string, v storage.Visit, give bool) (storage.Clearance, error) {
	c, err := d.find(ctx, id, v)
	switch {
	case err != nil:
		return c, err
	case c.State != storage.ClearanceWaits:
		return c, nil // a form that was sent twice: the person is told what came of it
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

// Of returns the clearance for which a client has sent a person here with an authorization request; none
// for any that is not of this person, client and resource, or has ended.
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

// Waiting returns the clearances that wait for a person.
func (d *Desk) Waiting(ctx context.Context, userID string) ([]storage.Clearance, error) {
	list, err := d.Store.WaitingClearances(ctx, userID, d.Now())
	if err != nil {
		return nil, refusal.Unavailable(err)
	}
	return list, nil
}
