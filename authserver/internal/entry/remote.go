package entry

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/device"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// RemoteSignIns signs a browser in from another device with a signed-in user (PE-15). The browser
// calls Begin and Await; the user calls Look and Decide.
type RemoteSignIns struct {
	Requests *device.BrowserRequests
	Browsers *Browsers
	Ways     *ways.Ways
	Users    *users.Users
	Notices  *notice.Notifier
	Audit    *audit.Recorder
	Now      func() time.Time
}

// Awaited is a browser's request to be signed in, sealed and bound to the browser.
type Awaited struct {
	device.Asked
	To Destination `json:"t"`
}

// AwaitRemote sends the browser to its waiting page.
type AwaitRemote struct{ Awaited Awaited }

// WaitRemote is the waiting page.
type WaitRemote struct {
	Awaited Awaited
	Number  string // the approving user types it
}

// RemoteEnd is the reason why a browser stopped waiting.
type RemoteEnd string

// Reasons why a browser stopped waiting.
const (
	RemoteLate   RemoteEnd = "late"   // no decision in time, or used before
	RemoteDenied RemoteEnd = "denied" // by the user, also after the approval
)

// RemoteOver is the page of a browser that was not signed in.
type RemoteOver struct {
	To  Destination
	Why RemoteEnd
}

// RemoteForm is the content of the AskRemote form, sealed and bound to the browser.
type RemoteForm struct {
	Code   string       `json:"c"`
	Secret storage.Hash `json:"s"` // of the request
	UserID string       `json:"u"`
}

// AskRemote is the page where a signed-in user decides about a browser.
type AskRemote struct {
	Form     RemoteForm
	Request  storage.RemoteSignIn
	Visit    storage.Visit
	NoNumber bool // the user approved without a number
}

// RemoteOutcome is a user's decision about a browser.
type RemoteOutcome string

// Decisions about a browser.
const (
	Approved RemoteOutcome = "approved"
	Denied   RemoteOutcome = "denied"
	// WrongNumber means that the number was not the browser's, which denies the request.
	WrongNumber RemoteOutcome = "wrong number"
)

// RemoteDecided is the page after the decision.
type RemoteDecided struct{ Outcome RemoteOutcome }

// EnterRemoteCode is the page where a user types a browser's code again. Err is the reason:
// device.ErrWrong or device.ErrThrottled.
type EnterRemoteCode struct {
	Code string
	Err  error
}

func (AwaitRemote) step()     {}
func (WaitRemote) step()      {}
func (RemoteOver) step()      {}
func (AskRemote) step()       {}
func (RemoteDecided) step()   {}
func (EnterRemoteCode) step() {}

// Begin stores the request of a browser and returns the step to its waiting page. Its error is an
// *oauth.Error.
func (s *RemoteSignIns) Begin(ctx context.Context, b device.Browser, to Destination) (Step, error) {
	asked, err := s.Requests.Begin(ctx, b)
	return AwaitRemote{Awaited{asked, to}}, err
}

// Undecided reports whether a browser still waits.
func (s *RemoteSignIns) Undecided(ctx context.Context, a Awaited) bool {
	r, err := s.Requests.Held(ctx, a.Asked)
	return err == nil && r.DecidedAt.IsZero() || errors.Is(err, device.ErrThrottled)
}

// Await signs a browser in after a user has approved its request. It returns Continue once the
// session has begun, and otherwise the browser's page.
func (s *RemoteSignIns) Await(ctx context.Context, a Awaited, from string, mint Mint) (Step, error) {
	r, err := s.Requests.Held(ctx, a.Asked)
	wait := WaitRemote{Awaited: a, Number: s.Requests.Number(a.Code)}
	switch {
	case errors.Is(err, device.ErrThrottled):
		return wait, nil
	case errors.Is(err, device.ErrWrong):
		return RemoteOver{a.To, RemoteLate}, nil
	case err != nil:
		return nil, err
	case r.DecidedAt.IsZero():
		return wait, nil
	case r.Approver == nil:
		return RemoteOver{a.To, RemoteDenied}, nil
	case !r.CollectedAt.IsZero():
		return RemoteOver{a.To, RemoteLate}, nil
	}
	return s.collect(ctx, a, *r.Approver, from, mint)
}

// notProved is the ProvedAt of a session that another device approved. The user has not
// authenticated in it: a person at this browser must not be able to change the user's
// authentication methods.
var notProved = time.UnixMilli(1)

func (s *RemoteSignIns) collect(
	ctx context.Context, a Awaited, approver storage.Hash, from string, mint Mint,
) (Step, error) {
	v, err := s.Browsers.LiveVisit(ctx, approver, storage.VisitKey{})
	switch {
	case err != nil:
		return nil, err
	case v == nil: // the user has signed out since the approval
		return RemoteOver{a.To, RemoteDenied}, nil
	}
	if err := s.Browsers.AskHomeProvider(ctx, v.User, v.Session.UpstreamID); err != nil {
		return nil, err
	}
	methods := slices.Clone(v.Session.Methods)
	if !slices.Contains(methods, ways.ByOtherDevice) {
		methods = append(methods, ways.ByOtherDevice)
	}
	se := mint(v.User, methods)
	se.AuthTime, se.ProvedAt, se.UpstreamID = v.Session.ProvedAt, notProved, v.Session.UpstreamID
	switch err := s.Requests.Collect(ctx, a.Asked, se); {
	case errors.Is(err, device.ErrSignedOut):
		return RemoteOver{a.To, RemoteDenied}, nil
	case errors.Is(err, device.ErrWrong):
		return RemoteOver{a.To, RemoteLate}, nil
	case err != nil:
		return nil, err
	}
	s.Users.SignedIn(ctx, v.User, from, methods)
	s.Notices.Tell(ctx, v.User.ID, notice.Change{Kind: notice.RemoteSignIn, Detail: se.Agent})
	return Continue{a.To}, nil
}

// Look shows the request for a code. It decides nothing, and looks nothing up before the user has
// signed in.
func (s *RemoteSignIns) Look(ctx context.Context, typed string, token storage.Hash, networks []string) (Step, error) {
	v, login, err := s.Browsers.visitor(ctx, token, Destination{Device: typed})
	if v == nil {
		return login, err
	}
	found, err := s.Requests.Find(ctx, typed, device.Guesser{UserID: v.User.ID, Networks: networks})
	if err != nil {
		return again(typed, err)
	}
	return s.ask(ctx, device.Read(typed), found, v)
}

// again returns the page to type the code again, if the error allows that.
func again(code string, err error) (Step, error) {
	if errors.Is(err, device.ErrWrong) || errors.Is(err, device.ErrThrottled) {
		return EnterRemoteCode{code, err}, nil
	}
	return nil, err
}

func (s *RemoteSignIns) ask(
	ctx context.Context, code string, found storage.RemoteSignIn, v *storage.Visit,
) (Step, error) {
	if step, err := s.missing(ctx, code, v); step != nil || err != nil {
		return step, err
	}
	return AskRemote{
		Form:    RemoteForm{Code: code, Secret: found.Secret, UserID: v.User.ID},
		Request: found,
		Visit:   *v,
	}, nil
}

// missing returns the step for a user who has to authenticate before they approve a session: as for
// a sign-in, and just now. So a browser cannot sign in through another device if it could not sign
// in by itself.
func (s *RemoteSignIns) missing(ctx context.Context, code string, v *storage.Visit) (Step, error) {
	to := Destination{Device: code}
	switch err := s.Browsers.Owed(ctx, *v, Change); {
	case errors.Is(err, ErrMore):
		return StepUp{to}, nil
	case errors.Is(err, ErrProve):
		return Reprove{to}, nil
	case err != nil:
		return nil, err
	}
	switch needs, err := s.Ways.Needs(ctx, v.User, v.Session.Methods); {
	case err != nil:
		return nil, refusal.Unavailable(err)
	case needs.Missing:
		return Reprove{to}, nil
	}
	return nil, nil
}

// Decide carries out a user's decision. An approval includes the number that the browser shows: a
// user who only received the link or the picture does not know it.
func (s *RemoteSignIns) Decide(
	ctx context.Context, form RemoteForm, verdict, number string, token storage.Hash,
) (Step, error) {
	v, login, err := s.Browsers.visitor(ctx, token, Destination{Device: form.Code})
	switch {
	case v == nil:
		return login, err
	case v.User.ID != form.UserID:
		return nil, ErrAnotherPerson
	}
	found, err := s.Requests.Waiting(ctx, form.Code)
	if err == nil && found.Secret != form.Secret {
		err = device.ErrWrong // the code belongs to a newer request
	}
	if err != nil {
		return again(form.Code, err)
	}
	switch verdict {
	case "deny":
		return s.deny(ctx, form, v.User, Denied)
	case "approve":
		return s.approve(ctx, form, found, strings.TrimSpace(number), v)
	}
	return nil, refusal.ErrIncomplete
}

func (s *RemoteSignIns) deny(
	ctx context.Context, form RemoteForm, u storage.User, outcome RemoteOutcome,
) (Step, error) {
	if err := s.Requests.Deny(ctx, form.Secret); err != nil {
		return again(form.Code, err)
	}
	reason := ""
	if outcome == WrongNumber {
		reason = string(outcome)
	}
	s.Audit.Record(ctx, audit.RemoteDenied, audit.Person(u.ID, u.Name), slog.String("reason", reason))
	return RemoteDecided{outcome}, nil
}

func (s *RemoteSignIns) approve(
	ctx context.Context, form RemoteForm, found storage.RemoteSignIn, number string, v *storage.Visit,
) (Step, error) {
	step, err := s.ask(ctx, form.Code, found, v)
	asked, ok := step.(AskRemote)
	switch {
	case !ok:
		return step, err
	case number == "":
		asked.NoNumber = true
		return asked, nil
	case subtle.ConstantTimeCompare([]byte(number), []byte(s.Requests.Number(form.Code))) != 1:
		return s.deny(ctx, form, v.User, WrongNumber) // no second guess
	}
	switch err := s.Requests.Approve(ctx, form.Secret, v.Session.Hash); {
	case errors.Is(err, device.ErrSignedOut):
		return s.Browsers.login(ctx, v.Session.Hash, Destination{Device: form.Code}), nil
	case err != nil:
		return again(form.Code, err)
	}
	s.Audit.Record(ctx, audit.RemoteApproved, audit.Person(v.User.ID, v.User.Name),
		slog.String("agent", found.Agent), slog.String("address", found.Address))
	return RemoteDecided{Approved}, nil
}
