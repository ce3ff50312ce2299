package flow

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Approval is a person's yes to one authorization request.
type Approval struct {
	Request
	Approver
}

// Approver is who has said yes.
type Approver struct {
	Session    storage.Hash
	UserID     string
	AuthTime   time.Time
	Remembered oauth.Scopes // the earlier yes that it rests on; nil: it was given just now
	Declined   oauth.Scopes // what this person is to be asked about again, whatever they said before
	Code       string       // of the page that was answered, see grant.NewCode; "": there was none
	Page       *grant.Shown // what that page said; nil: there was none
}

// issue is the step of a request that needs no question. Authorize carries it out.
type issue Approval

// changed is what an approval comes to when the client or the earlier consent is no longer the
// same. Nothing was issued, and the request is examined again.
type changed struct {
	to  Identified
	err error
}

func (issue) step()   {}
func (changed) step() {}

// approve turns an approval into a code. The store checks once more, in the same statement,
// that the session is live and belongs to the person who was asked, and that the client is the
// one that was shown.
func (f *Flow) approve(ctx context.Context, a Approval) Step {
	response, err := f.Protocol.Issue(ctx, a)
	switch {
	case errors.Is(err, grant.ErrSignedOut):
		return f.next(ctx, Valid{Request: a.Request}, a.Session)
	case errors.Is(err, storage.ErrChanged):
		return changed{a.Identified, err}
	case errors.Is(err, grant.ErrAnswered):
		return Answered{}
	case err != nil:
		return RespondError{a.Identified, err}
	}
	return Respond{a.Identified, response}
}

// ConsentForm is what the consent form carries along, sealed and bound to the
// browser: the request, what was shown of it, and to whom.
type ConsentForm struct {
	Query    form.Query `json:"q"`
	Shown    *Shown     `json:"s"`
	UserID   string     `json:"u"`
	AuthTime int64      `json:"t"` // when that person signed in, seconds since the epoch
	Code     string     `json:"k"` // what the answer is, see grant.NewCode: a form gives one
}

// Decision is what a person did with a consent page.
type Decision struct {
	Verdict   string // approve or deny
	Choice    policy.Choice
	Elsewhere bool // the application runs on another computer
}

// Consent carries out what the person decided. The request is examined again: what was shown is
// what is granted, and when it is no longer what would be granted, it is shown again (Security H1).
func (f *Flow) Consent(ctx context.Context, c ConsentForm, token storage.Hash, d Decision) Step {
	p := form.New(c.Query.Values())
	if d.Verdict != "approve" {
		return f.notApproved(ctx, f.Examine(ctx, p, f.Clients.Current, noPerson), c, token, d.Verdict)
	}
	x := f.examineShown(ctx, p, c.Shown, f.answering(token))
	by := Approver{Session: token, UserID: c.UserID, AuthTime: time.Unix(c.AuthTime, 0), Code: c.Code}
	return f.approved(ctx, x, answer{c.Shown, d.Choice, d.Elsewhere, c.Query}, by)
}

// answer is an approval of what a page showed, with what was chosen there, and the request to ask
// about when it does not count.
type answer struct {
	shown     *Shown
	choice    policy.Choice
	elsewhere bool
	again     form.Query
}

// narrow narrows an approved request to what was chosen, and notes what was not (AS-76). ErrNothing and
// ErrPreset of package policy.
func (a answer) narrow(r Request, by Approver) (Approval, error) {
	granted, err := a.shown.granted(r.Resource.Resource, a.choice)
	if err != nil {
		return Approval{}, err
	}
	by.Declined = policy.Including(r.Resource.Resource, a.shown.Scopes.Without(granted)).Without(granted)
	by.Page = a.shown.said(r)
	r.Scopes = r.Scopes.Intersect(granted)
	return Approval{r, by}, nil
}

// incomplete answers a form without a decision.
var incomplete = Fail{Err: refusal.ErrIncomplete}

var errDenied = oauth.NewError(oauth.AccessDenied, "The person denied the request.")

// examineShown examines the request of an approval. Its client may be that of some
// seconds ago, when that is what the person was shown: the store confirms it in the statement
// that approves. Every other answer is examined by the client as it is stored now, also an error
// that would be sent to it; but a store that failed is an outage, whatever a second look finds.
func (f *Flow) examineShown(ctx context.Context, p form.Params, shown *Shown, who visitor) Examined {
	x := f.Examine(ctx, p, f.Clients.Find, who)
	if v, ok := x.(Valid); ok && f.coversClient(shown, v.Request.Identified) || unavailable(x) {
		return x
	}
	return f.Examine(ctx, p, f.Clients.Current, who)
}

// notApproved answers a denial, and a form without a decision.
func (f *Flow) notApproved(ctx context.Context, x Examined, c ConsentForm, token storage.Hash, verdict string) Step {
	switch x := x.(type) {
	case Invalid:
		return Stop{x.To, x.Err}
	case Valid:
		if !f.coversClient(c.Shown, x.Request.Identified) {
			return f.ask(ctx, c.Query, token)
		}
		if verdict != "deny" {
			return incomplete
		}
		return f.deny(ctx, x.Request, c.Code, slog.String("user", c.UserID))
	}
	return Next(x, f.Now())
}

// deny tells the client that the person denied its request, unless they have approved it on the same
// page: a client gets one answer.
func (f *Flow) deny(ctx context.Context, r Request, code string, by ...slog.Attr) Step {
	switch err := f.Protocol.Deny(ctx, code); {
	case errors.Is(err, grant.ErrAnswered):
		return Answered{}
	case err != nil:
		return RespondError{r.Identified, err}
	}
	f.Audit.Record(ctx, audit.ConsentDenied, append(by,
		slog.String("client_id", r.Client.ID), slog.String("resource", r.Resource.URI))...)
	return RespondError{r.Identified, errDenied}
}

// approved carries out the approval of a page.
func (f *Flow) approved(ctx context.Context, x Examined, yes answer, by Approver) Step {
	v, step := f.stands(ctx, x, yes, by)
	if step != nil {
		return step
	}
	return f.grant(ctx, v, yes, by)
}

// stands returns the request of an approval that still counts, or the step to take instead. When the
// session has ended meanwhile, the person signs in again; when the client or the request has changed
// meanwhile, they are asked again, and when the client was deleted, a page says it.
func (f *Flow) stands(ctx context.Context, x Examined, yes answer, by Approver) (Valid, Step) {
	switch x := x.(type) {
	case Invalid:
		return Valid{}, Stop{x.To, x.Err}
	case Unclear:
		return Valid{}, f.refused(ctx, x.To, x.Err, yes, by)
	case Forbidden:
		return Valid{}, f.refused(ctx, x.Request.Identified, x.Err, yes, by)
	case Valid:
		switch {
		case !f.coversClient(yes.shown, x.Request.Identified):
			return x, f.ask(ctx, yes.again, by.Session)
		case x.Visit == nil:
			return x, f.next(ctx, x, by.Session)
		case x.Owes:
			return x, SignInStep{entry.StepUp{To: entry.Destination{Query: yes.again}}}
		case !f.covers(yes.shown, x.Request), x.Request.Paused != nil:
			return x, f.ask(ctx, yes.again, by.Session)
		}
		return x, nil
	}
	return Valid{}, Next(x, f.Now())
}

// settle narrows a request to what a person chose on a page that covers it, or returns the step that comes
// before the grant. If the choice needs a missing proof, they give it first, and are asked again.
func (f *Flow) settle(ctx context.Context, x Valid, yes answer, by Approver) (Approval, Step) {
	r := x.Request
	approval, err := yes.narrow(r, by)
	switch {
	case errors.Is(err, policy.ErrPreset):
		return approval, incomplete
	case err != nil || len(approval.Scopes) == 0 && len(r.Scopes) > 0:
		return approval, nothingChosen(f.ask(ctx, yes.again, by.Session))
	}
	if step := f.lackingAtAnswer(ctx, x, approval.Scopes, yes, by); step != nil {
		return approval, step
	}
	return approval, f.clearanceAfter(ctx, r, yes, by)
}

// grant grants the scopes that a person chose on a page that covers the request.
func (f *Flow) grant(ctx context.Context, x Valid, yes answer, by Approver) Step {
	r := x.Request
	approval, step := f.settle(ctx, x, yes, by)
	if step != nil {
		return step
	}
	switch step := f.approve(ctx, approval).(type) {
	case changed:
		return f.ask(ctx, yes.again, by.Session)
	case RespondError:
		if errors.Is(step.Err, storage.ErrRevoked) { // nothing is sent to a client that was deleted
			return f.ask(ctx, yes.again, by.Session)
		}
		return step
	case Respond:
		if yes.elsewhere && onOneComputer(r.Identified) {
			f.Audit.Record(ctx, audit.AnswerShown, slog.String("user", by.UserID),
				slog.String("client_id", r.Client.ID))
			return ShowAnswer(step)
		}
		return step
	default:
		return step
	}
}

// onOneComputer reports whether an answer reaches its client only in a browser on the computer
// where that runs: on a loopback port, or by a private-use scheme.
func onOneComputer(to Identified) bool { return !strings.HasPrefix(to.RedirectURI, "https://") }

// nothingChosen has a page that asks say that an approval of nothing is none.
func nothingChosen(step Step) Step {
	switch step := step.(type) {
	case AskConsent:
		step.NothingChosen = true
		return step
	case AskBeforeProvider:
		step.NothingChosen = true
		return step
	case AskDevice:
		step.NothingChosen = true
		return step
	}
	return step
}

// refused sends an error to the client that the person was shown, or asks them again.
func (f *Flow) refused(ctx context.Context, to Identified, err error, yes answer, by Approver) Step {
	if !f.coversClient(yes.shown, to) {
		return f.ask(ctx, yes.again, by.Session)
	}
	return RespondError{to, err}
}
