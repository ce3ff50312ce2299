package entry

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Act is a kind of action with its required authentication. Actions that only revoke access need no
// Act, only the session.
type Act int

const (
	// Change gives access, changes authentication methods, or hides notices. It needs the second
	// factor, if one is required, and authentication within FreshFor in this browser (PE-04).
	Change Act = iota
	// Enrol is a Change that adds a passkey or an authenticator app. A user who has neither may add
	// one even if a second factor is required: this is how they get it.
	Enrol
)

// FreshFor is the maximum age of the authentication for a change of authentication methods (PE-04).
const FreshFor = 5 * time.Minute

// Fresh reports whether the user of a session authenticated within FreshFor.
func Fresh(s storage.Session, now time.Time) bool {
	return now.Sub(s.Proved()) <= FreshFor
}

// elsewhere reports whether methods include one that was used on another device only.
func elsewhere(methods []string) bool { return slices.Contains(methods, ways.ByOtherDevice) }

// Errors for a session that needs more authentication.
var (
	// ErrProve means that the user has to authenticate again before a change.
	ErrProve = oauth.NewError(oauth.UnmetAuthentication, "Confirm first that it is you.")
	// ErrMore means that the user must first show the required second factor.
	ErrMore = errors.New("entry: a second factor is required")
	// ErrTooManyChanges means that the user must wait before the next change.
	ErrTooManyChanges = errors.New("entry: too many changes of an account")
)

// SecondFactors reports the factors that a sign-in still needs. *ways.Ways implements it.
type SecondFactors interface {
	Owes(ctx context.Context, u storage.User, methods []string) (ways.Need, error)
}

// Sufficient returns ErrMore for a session without a required second factor. Such a session must
// not give anything to applications and programs.
func Sufficient(ctx context.Context, f SecondFactors, v storage.Visit) error {
	_, err := sufficient(ctx, f, v)
	return err
}

// sufficient is Sufficient. enrols reports whether the user has no second factor and must add one.
func sufficient(ctx context.Context, f SecondFactors, v storage.Visit) (enrols bool, err error) {
	if f == nil {
		return false, nil
	}
	switch need, err := f.Owes(ctx, v.User, v.Session.Methods); {
	case err != nil:
		return false, refusal.Unavailable(err)
	case need.Missing:
		return need.Enrol, ErrMore
	}
	return false, nil
}

// Owed returns ErrMore or ErrProve if a session needs more authentication before an act, and nil
// otherwise. Every page that changes something calls it.
func (b *Browsers) Owed(ctx context.Context, v storage.Visit, act Act) error {
	switch enrols, err := sufficient(ctx, b.Factors, v); {
	case err == nil, enrols && act == Enrol && errors.Is(err, ErrMore):
	default:
		return err
	}
	if !Fresh(v.Session, b.Now()) {
		return ErrProve
	}
	return nil
}

// Acting returns the browser's user if their session may perform an act. Otherwise it returns the
// error of Owed, or ErrProve without a session.
func (b *Browsers) Acting(ctx context.Context, token storage.Hash, act Act) (storage.Visit, error) {
	v, err := b.LiveVisit(ctx, token, storage.VisitKey{})
	switch {
	case err != nil:
		return storage.Visit{}, err
	case v == nil:
		return storage.Visit{}, ErrProve
	}
	return *v, b.Owed(ctx, *v, act)
}

// ActingAs is Acting for a form that was made for a user, and counts it as one of their changes. It
// returns ErrAnotherPerson if another user is signed in, and oauth.SlowDown with the cause
// ErrTooManyChanges beyond the limit.
func (b *Browsers) ActingAs(ctx context.Context, token storage.Hash, userID string, act Act) (storage.Visit, error) {
	v, err := b.VisitOf(ctx, token, userID)
	if err == nil {
		err = b.Owed(ctx, v, act)
	}
	if err == nil {
		err = b.count(ctx, userID)
	}
	return v, err
}

// Limits of changes per account. Each change writes to the audit log and sends a mail.
const (
	changesAtOnce = 30
	changeEvery   = 10 * time.Second
)

func (b *Browsers) count(ctx context.Context, userID string) error {
	if b.Changes == nil {
		return nil
	}
	wait := b.Changes.Take(ctx, allowance.Draw{
		Key: userID, Rate: bounded.Rate{Every: changeEvery, Burst: changesAtOnce},
	})
	if wait == 0 {
		return nil
	}
	e := sentence.NewError(oauth.SlowDown, "This account was changed many times in a short while.", "too_many_changes").
		Because(ErrTooManyChanges)
	e.RetryAfter = wait
	return e
}
