package flow

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Approval is a user's approval of one authorization request.
type Approval struct {
	Request
	Approver
}

// Approver describes the user who approved.
type Approver struct {
	Session    storage.Hash
	UserID     string
	AuthTime   time.Time
	Remembered oauth.Scopes // the earlier consent that the approval reuses; nil: approved just now
	Declined   oauth.Scopes // scopes to ask this user about again, whatever they approved before
	Code       string       // of the answered page, see grant.NewCode; "": no page
	Page       *grant.Shown // contents of that page; nil: no page
}

// issue is the step of a request that needs no question. Authorize carries it out.
type issue Approval

// changed reports that the client or the earlier consent has changed since the examination. No code
// was issued; the request is examined again.
type changed struct {
	to  Identified
	err error
}

func (issue) step()   {}
func (changed) step() {}

// approve turns an approval into a code. In the same statement, the store checks that the session
// is live and belongs to the asked user, and that the client has not changed.
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

// ConsentForm is the content of the consent form, sealed and bound to the browser: the request, the
// contents of the page, and the user.
type ConsentForm struct {
	Query    form.Query `json:"q"`
	Shown    *Shown     `json:"s"`
	UserID   string     `json:"u"`
	AuthTime int64      `json:"t"` // sign-in time of the user, seconds since the epoch
	Code     string     `json:"k"` // the code that the form's answer gives, see grant.NewCode: one per form
}

// Decision is a user's answer on a consent page.
type Decision struct {
	Verdict   string // approve or deny
	Choice    policy.Choice
	Elsewhere bool // the application runs on another computer
}

// Consent carries out a user's decision. It examines the request again: only the contents of the
// page are granted. If the request has changed, the page is shown again (Security H1).
func (f *Flow) Consent(ctx context.Context, c ConsentForm, token storage.Hash, d Decision) Step {
	p := form.New(c.Query.Values())
	if d.Verdict != "approve" {
		return f.notApproved(ctx, f.Examine(ctx, p, f.Clients.Current, noPerson), c, token, d.Verdict)
	}
	x := f.examineShown(ctx, p, c.Shown, f.answering(token))
	by := Approver{Session: token, UserID: c.UserID, AuthTime: time.Unix(c.AuthTime, 0), Code: c.Code}
	return f.approved(ctx, x, answer{c.Shown, d.Choice, d.Elsewhere, c.Query}, by)
}

// answer is an approval of a page's contents with the user's choice, and the request to ask about
// again if the approval does not count.
type answer struct {
	shown     *Shown
	choice    policy.Choice
	elsewhere bool
	again     form.Query
}

// narrow narrows an approved request to the user's choice, and records the declined scopes (AS-76).
// It returns policy.ErrNothing or policy.ErrPreset if the choice is not valid.
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

var errDenied = sentence.NewError(oauth.AccessDenied, "The person denied the request.", "denied")

// examineShown examines the request of an approval. It may use a cached client if that is the
// client on the page, because the store checks it in the approving statement. Any other result is
// examined again with the stored client, including an error for the client. A failure of the store
// counts as an outage and is not examined again.
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

// deny sends the denial to the client, unless the user approved the same page before: a client gets
// one answer.
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

// stands returns the request of an approval that still counts, or the step to take instead. If the
// session has ended, the user signs in again. If the client or the request has changed, the user is
// asked again. If the client was deleted, a page reports it.
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

// settle narrows a request to the user's choice on a page that covers it, or returns the step
// before the grant. If the chosen scopes need a missing proof, the user authenticates first and is
// asked again.
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

// grant grants the scopes that a user chose on a page that covers the request.
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
		if errors.Is(step.Err, storage.ErrRevoked) { // no response for a deleted client
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

// onOneComputer reports whether a response reaches its client only in a browser on the client's
// computer: at a loopback port, or with a private-use scheme.
func onOneComputer(to Identified) bool { return !strings.HasPrefix(to.RedirectURI, "https://") }

// nothingChosen marks a page to tell the user that they chose no scope.
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

// refused sends an error to the client that was on the page, or asks the user again.
func (f *Flow) refused(ctx context.Context, to Identified, err error, yes answer, by Approver) Step {
	if !f.coversClient(yes.shown, to) {
		return f.ask(ctx, yes.again, by.Session)
	}
	return RespondError{to, err}
}
