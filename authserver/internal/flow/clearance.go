package flow

import (
	"context"
	"errors"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/clearance"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Consented is an approval on the consent page that waits for a tool call approval. Consent carries
// it out again after that decision; nothing was stored before.
type Consented struct {
	Form     ConsentForm `json:"f"`
	Decision Decision    `json:"d"`
}

// needed is the tool call approval that a request names.
type needed struct {
	*storage.Clearance // nil: none that counts
	// Unproved is the error if the user's session may not decide it yet: entry.ErrMore or
	// entry.ErrProve.
	Unproved error
}

// named returns the tool call approval that the client sent this user here for.
func (f *Flow) named(ctx context.Context, r Request, userID string) (*storage.Clearance, error) {
	if r.Clearance == "" || userID == "" { // a user who answers a form is not known yet; Consent checks it
		return nil, nil
	}
	return f.Desk.Of(ctx, r.Clearance,
		clearance.Caller{UserID: userID, ClientID: r.Client.ID, Resource: r.Resource.URI})
}

// need returns the tool call approval that a request names.
func (f *Flow) need(ctx context.Context, r Request, v *storage.Visit) (n needed, err error) {
	n.Clearance, err = f.named(ctx, r, v.User.ID)
	if n.waitsForPerson() {
		n.Unproved = f.Desk.Proved(ctx, *n.Clearance, *v)
	}
	return n, err
}

func (n needed) waits() bool { return n.Clearance != nil && n.State == storage.ClearanceWaits }

// waitsForPerson reports whether the user of the request decides. Otherwise the page only names who
// does.
func (n needed) waitsForPerson() bool { return n.waits() && n.By == oauth.ClearanceByPerson }

func (n needed) refused() bool { return n.Clearance != nil && n.State == storage.ClearanceRefused }

// proof returns the step where a user authenticates for a tool call approval, or nil. It comes
// before the consent page, which would otherwise be shown twice.
func (f *Flow) proof(x Valid) Step {
	to := entry.Destination{Query: x.Request.Query}
	switch n := x.Clearance; {
	case errors.Is(n.Unproved, entry.ErrMore):
		to.ACR = f.Desk.Class(*n.Clearance)
		return SignInStep{entry.StepUp{To: to}}
	case errors.Is(n.Unproved, entry.ErrProve):
		return SignInStep{entry.Reprove{To: to}}
	}
	return nil
}

// askClearance returns the step after consent where a user decides about the call, or learns who
// decides. It returns nil if no page is needed.
func askClearance(r Request, n needed, session storage.Hash, approved *Consented) Step {
	if !n.waits() || n.By != oauth.ClearanceByPerson && (r.Told || slices.Contains(r.Prompt, "none")) {
		return nil
	}
	return AskClearance{Request: r, ID: n.ID, Session: session, Approved: approved}
}

// clearanceAfter is askClearance for a user who has just approved the consent page.
func (f *Flow) clearanceAfter(ctx context.Context, r Request, yes answer, by Approver) Step {
	c, err := f.named(ctx, r, by.UserID)
	n := needed{Clearance: c}
	switch {
	case err != nil:
		return f.refused(ctx, r.Identified, err, yes, by)
	case n.refused():
		if err := f.Protocol.Deny(ctx, by.Code); errors.Is(err, grant.ErrAnswered) {
			return Answered{}
		} else if err != nil {
			return RespondError{r.Identified, err}
		}
		return RespondError{r.Identified, errDenied}
	}
	return askClearance(r, n, by.Session, &Consented{
		Form: ConsentForm{
			Query: yes.again, Shown: yes.shown, UserID: by.UserID, AuthTime: by.AuthTime.Unix(), Code: by.Code,
		},
		Decision: Decision{Verdict: "approve", Choice: yes.choice, Elsewhere: yes.elsewhere},
	})
}
