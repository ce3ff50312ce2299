package entry

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// secondTTL is how long an unfinished sign-in may be completed.
const secondTTL = 10 * time.Minute

// purposeSecond is the purpose for using up an unfinished sign-in.
const purposeSecond = "second factor"

// Unfinished is a sign-in that waits for a second factor. It is sealed in the form, bound to the
// browser, and can be completed once.
type Unfinished struct {
	Proof
	ID     string `json:"i"`
	Until  int64  `json:"e"`           // seconds since the epoch
	Sealed string `json:"w,omitempty"` // for a passkey, by package ways
}

// SecondFactor is the page where a user continues a sign-in. A session does not exist yet, or is
// not sufficient.
type SecondFactor struct {
	Form     Unfinished
	Username string
	Possible []string // the methods that complete it; none: the operator has to help
	Options  []byte   // for a passkey
}

// StepUp sends the browser to the page for a second factor, and then to its destination.
type StepUp struct{ To Destination }

// EnrolFirst is the page for a user who does not have a required second factor.
type EnrolFirst struct {
	To  Destination
	App bool // an authenticator app is enough
}

func (SecondFactor) step() {}
func (StepUp) step()       {}
func (EnrolFirst) step()   {}

// More returns the page for the authentication that a signed-in user still needs.
func (s *SignIns) More(ctx context.Context, token storage.Hash, to Destination, browser string) (Step, error) {
	v, login, err := s.Browsers.visitor(ctx, token, to)
	if v == nil {
		return login, err
	}
	need, err := s.Ways.Owes(ctx, v.User, v.Session.Methods)
	if err == nil && !need.Missing {
		need, err = s.Ways.Reach(ctx, v.User, v.Session.Methods, to.ACR)
	}
	switch {
	case err != nil:
		return nil, refusal.Unavailable(err)
	case !need.Missing:
		return Continue{to}, nil
	case need.Enrol:
		return EnrolFirst{To: to, App: need.App}, nil
	}
	p := Proof{UserID: v.User.ID, Methods: v.Session.Methods, Old: &token, To: to}
	return s.second(ctx, v.User, p, need, browser)
}

// second returns the page for the missing factor.
func (s *SignIns) second(
	ctx context.Context, u storage.User, p Proof, need ways.Need, browser string,
) (Step, error) {
	if p.Begun == 0 { // it follows a session
		p.Begun = s.Now().UnixMilli()
	}
	f := Unfinished{Proof: p, ID: secrets.ID("2nd_"), Until: s.Now().Add(secondTTL).Unix()}
	return s.offer(ctx, SecondFactor{Form: f, Username: u.Name, Possible: need.Possible}, browser)
}

// offer adds the passkey options.
func (s *SignIns) offer(ctx context.Context, step SecondFactor, browser string) (Step, error) {
	if !slices.Contains(step.Possible, ways.ByPasskey) {
		return step, nil
	}
	c, err := s.Ways.BeginSignIn(ctx, browser, ways.Ask{Purpose: step.Form.purpose(), UserID: step.Form.UserID})
	if err != nil {
		return nil, refusal.Unavailable(err)
	}
	step.Options, step.Form.Sealed = c.Options, c.Sealed
	return step, nil
}

// ErrLate means that an unfinished sign-in has expired or was completed already.
var ErrLate = errors.New("entry: the sign-in is finished or took too long")

// Second completes an unfinished sign-in.
func (s *SignIns) Second(ctx context.Context, f Unfinished, a Answer, mint Mint) (Step, error) {
	u, err := s.personOf(ctx, f)
	if err != nil {
		return nil, err
	}
	need, err := s.missing(ctx, u, f)
	switch {
	case err != nil:
		return nil, err
	case !need.Missing: // completed in another way
		return nil, ErrLate
	case !slices.Contains(need.Possible, a.method()): // other methods do not renew a session
		return nil, users.ErrWrong
	}
	method, code, err := s.check(ctx, u, f.purpose(), f.Sealed, a)
	if err != nil {
		return nil, err
	}
	switch err := s.Store.Spend(ctx, purposeSecond, f.ID, time.Unix(f.Until, 0)); {
	case errors.Is(err, storage.ErrSpent):
		return nil, ErrLate
	case err != nil:
		return nil, refusal.Unavailable(err)
	}
	if f.Methods = ways.With(f.Methods, method); method == ways.ByPassword {
		f.Password = digest(u.PasswordHash)
	}
	if code != nil {
		f.RecoveryCode = code
	}
	return s.complete(ctx, u, f.Proof, a, mint)
}

// Again returns the page after a wrong second factor: the form stays valid, with a new challenge.
func (s *SignIns) Again(ctx context.Context, f Unfinished, browser string) (Step, error) {
	u, err := s.personOf(ctx, f)
	if err != nil {
		return nil, err
	}
	need, err := s.missing(ctx, u, f)
	if err != nil {
		return nil, err
	}
	return s.offer(ctx, SecondFactor{Form: f, Username: u.Name, Possible: need.Possible}, browser)
}

// missing returns the factor that an unfinished sign-in lacks: required by its destination, or else
// by policy.
func (s *SignIns) missing(ctx context.Context, u storage.User, f Unfinished) (ways.Need, error) {
	need, err := s.Ways.Reach(ctx, u, f.Methods, f.To.ACR)
	if err == nil && !need.Missing {
		need, err = s.Ways.Needs(ctx, u, f.Methods)
	}
	if err != nil {
		err = refusal.Unavailable(err)
	}
	return need, err
}

// purpose returns the purpose of a passkey request.
func (f Unfinished) purpose() ways.Purpose {
	if f.To.ACR != "" {
		return ways.StepUp
	}
	return ways.Second
}

// personOf returns the user of an unfinished sign-in while it may be completed.
func (s *SignIns) personOf(ctx context.Context, f Unfinished) (storage.User, error) {
	if f.Until <= s.Now().Unix() {
		return storage.User{}, ErrLate
	}
	u, err := s.Store.User(ctx, f.UserID)
	switch {
	case errors.Is(err, storage.ErrNotFound) || err == nil && u.Disabled:
		return u, ErrLate
	case err != nil:
		return u, refusal.Unavailable(err)
	}
	return u, nil
}
