package entry

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/storage"
)

// secondTTL is how long a person has for the second proof.
const secondTTL = 10 * time.Minute

// purposeSecond is what an unfinished sign-in is spent for.
const purposeSecond = "second factor"

// Unfinished is a sign-in that waits for a second proof. It travels sealed in the form, bound to
// the browser, and is completed once.
type Unfinished struct {
	Proof
	ID     string `json:"i"`
	Until  int64  `json:"e"`           // seconds since the epoch
	Sealed string `json:"w,omitempty"` // for a passkey, by package ways
}

// SecondFactor is the page on which a person who has proved something proves more. There is no
// session yet, or the one that there is does not suffice.
type SecondFactor struct {
	Form     Unfinished
	Username string
	Possible []string // the methods that complete it; none: the operator has to help
	Options  []byte   // for a passkey
}

// StepUp sends the browser to where a person who is signed in proves more, and then on.
type StepUp struct{ To Destination }

// EnrolFirst is the page for a person who has nothing for the second proof that is required.
type EnrolFirst struct {
	To  Destination
	App bool // an app would do, and not a passkey alone
}

func (SecondFactor) step() {}
func (StepUp) step()       {}
func (EnrolFirst) step()   {}

// More is what a person who is signed in has to prove before they go on.
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

// second is the page for what is missing.
func (s *SignIns) second(
	ctx context.Context, u storage.User, p Proof, need ways.Need, browser string,
) (Step, error) {
	if p.Begun == 0 { // it follows a session
		p.Begun = s.Now().UnixMilli()
	}
	f := Unfinished{Proof: p, ID: secrets.ID("2nd_"), Until: s.Now().Add(secondTTL).Unix()}
	return s.offer(ctx, SecondFactor{Form: f, Username: u.Name, Possible: need.Possible}, browser)
}

// offer adds the options for a passkey.
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

// ErrLate means that an unfinished sign-in is too old or was completed already.
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
	case !need.Missing: // it was completed otherwise
		return nil, ErrLate
	case !slices.Contains(need.Possible, a.method()): // a session is not renewed by what was not asked for
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

// Again is the page for a person whose second proof was not accepted: the form stays good, with a
// challenge of its own.
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

// missing is what an unfinished sign-in lacks: what its destination wants, or else policy.
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

// purpose is what a passkey is asked for.
func (f Unfinished) purpose() ways.Purpose {
	if f.To.ACR != "" {
		return ways.StepUp
	}
	return ways.Second
}

// personOf returns the person of an unfinished sign-in, as long as it may be completed.
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
