package flow

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Pauses finds the applications that users have paused.
type Pauses interface {
	PauseOf(ctx context.Context, userID string, client *storage.Client, resource string) (storage.Pause, error)
}

// AskPaused is the page that reports that the user has paused the application, and offers to resume
// it.
type AskPaused struct {
	Request Request
	Visit   storage.Visit
	Form    PausedForm
}

func (AskPaused) step() {}

// PausedForm is the content of the AskPaused form, sealed and bound to the browser.
type PausedForm struct {
	Pause  string            `json:"p"` // the pause's id
	UserID string            `json:"u"`
	To     entry.Destination `json:"t"` // the user's destination after resuming
	// Consent and Device identify the request that a denial is for, as on the consent pages. Device
	// has no code for the request of an application.
	Consent ConsentForm `json:"c"`
	Device  DeviceForm  `json:"v"`
}

// errPaused is the error for an application that asks with prompt=none. The user could resume it on
// a page, so they have not denied anything (OpenID Connect Core §3.1.2.6).
var errPaused = oauth.NewError(oauth.InteractionRequired, "The person has paused this application.")

// paused returns the pause of a request's application, or nil. If the user answers a form, the
// store checks for a pause when it creates the grant.
func (f *Flow) paused(ctx context.Context, r Request, v *storage.Visit) (*storage.Pause, error) {
	if v.User.ID == "" {
		return nil, nil
	}
	p, err := f.Pauses.PauseOf(ctx, v.User.ID, &r.Client, r.Resource.URI)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, refusal.Unavailable(err)
	}
	return &p, nil
}

// whilePaused returns the step of a request whose application is paused. Registrations of one
// application share redirect URIs, and the user has approved one, so an error may be sent there;
// see refuse.
func whilePaused(r Request, v storage.Visit, silent bool) Step {
	switch {
	case silent && r.Paused.Application != r.Client.ID:
		return RespondError{r.Identified, errPaused}
	case silent:
		return refuse(r.Identified, &v, errPaused)
	}
	return AskPaused{Request: r, Visit: v}
}

// pausedForm returns the form for the request of an application.
func (f *Flow) pausedForm(a AskPaused) PausedForm {
	r, v := a.Request, a.Visit
	return PausedForm{
		Pause: r.Paused.ID, UserID: v.User.ID, To: entry.Destination{Query: r.Query},
		Consent: ConsentForm{
			Query: r.Query.Consented(), Shown: f.Shown(r, policy.Ask(r.Resource.Resource, r.Scopes, nil)),
			UserID: v.User.ID, AuthTime: v.Session.AuthTime.Unix(),
		},
	}
}

// pausedDevice returns the page for the request of a device.
func pausedDevice(r Request, v storage.Visit, code string, found storage.Device) Step {
	return AskPaused{r, v, PausedForm{
		Pause: r.Paused.ID, UserID: v.User.ID, To: entry.Destination{Device: code},
		Device: DeviceForm{Code: code, Device: found.Code, UserID: v.User.ID},
	}}
}
