package flow

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/device"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Devices lets users decide about the requests of devices (RFC 8628 §3.3). Users are asked each
// time, whatever they approved before: any program anywhere can begin a request.
type Devices struct {
	Flow      *Flow
	Requests  *device.Requests
	Approvals DeviceApprovals
}

// DeviceApprovals stores a grant for an approval. grant.Approvals documents the contract.
type DeviceApprovals interface {
	ApproveDevice(ctx context.Context, a grant.DeviceApproval) error
}

// DeviceForm is the content of the AskDevice form, sealed and bound to the browser: the request,
// the contents of the page, and the user.
type DeviceForm struct {
	Code   string       `json:"c"` // the user code
	Device storage.Hash `json:"d"` // of the device code
	Shown  *Shown       `json:"s"`
	UserID string       `json:"u"`
}

// Fill shows the form for a code, filled with the code of a link. It does not look the code up
// (RFC 8628 §3.3.1).
func (d *Devices) Fill(ctx context.Context, linked string, token storage.Hash) Step {
	code := device.Show(device.Read(linked))
	if code == "" {
		return EnterDeviceCode{}
	}
	switch v, err := d.Flow.Browsers.LiveVisit(ctx, token, storage.VisitKey{}); {
	case err != nil:
		return Fail{Err: err}
	case v == nil:
		return d.signIn(ctx, code, token)
	}
	return EnterDeviceCode{Code: code}
}

// Look shows the request of a typed code. It decides nothing (RFC 8628 §3.3.1), and looks nothing
// up before the user has signed in.
func (d *Devices) Look(ctx context.Context, typed string, token storage.Hash, networks []string) Step {
	if typed == "" {
		return EnterDeviceCode{}
	}
	v, err := d.Flow.Browsers.LiveVisit(ctx, token, storage.VisitKey{})
	switch {
	case err != nil:
		return Fail{Err: err}
	case v == nil:
		return d.signIn(ctx, typed, token)
	}
	found, err := d.Requests.Find(ctx, typed, device.Guesser{UserID: v.User.ID, Networks: networks})
	if err != nil {
		return notFound(typed, err)
	}
	return d.ask(ctx, device.Read(typed), found, v)
}

func (d *Devices) signIn(ctx context.Context, code string, token storage.Hash) Step {
	return SignInStep{entry.Login{
		To: entry.Destination{Device: code}, EndNotice: d.Flow.Browsers.EndNotice(ctx, token),
	}}
}

func notFound(code string, err error) Step {
	if errors.Is(err, device.ErrWrong) || errors.Is(err, device.ErrThrottled) {
		return EnterDeviceCode{code, err}
	}
	return Fail{Err: err}
}

func (d *Devices) ask(ctx context.Context, code string, found storage.Device, v *storage.Visit) Step {
	r, step := d.examine(ctx, code, found, v)
	if step != nil {
		return step
	}
	if r.Paused != nil {
		return pausedDevice(r, *v, code, found)
	}
	// The user authenticates as the device requires before the page is shown (RFC 9470 §4).
	proof, err := Valid{Request: r, Visit: v}.lacking(nil, entry.Destination{Device: code}, d.Flow.Now())
	switch {
	case err != nil:
		return Fail{Client: r.Client, Err: err}
	case proof != nil:
		return proof
	}
	q := policy.Ask(r.Resource.Resource, r.Scopes, nil)
	return AskDevice{
		Form:     DeviceForm{Code: code, Device: found.Code, Shown: d.Flow.Shown(r, q), UserID: v.User.ID},
		Request:  r,
		Question: q,
		Device:   found,
		Visit:    *v,
	}
}

// examine returns the request with the scopes that the user may give a device, or the step that
// ends the request. It uses the current client and MCP server.
func (d *Devices) examine(ctx context.Context, code string, found storage.Device, v *storage.Visit) (Request, Step) {
	client, err := d.Flow.fetching(d.Flow.Clients.Current, known(*v))(ctx, found.ClientID)
	if err != nil {
		return Request{}, Fail{Client: storage.Client{ID: found.ClientID}, Err: err}
	}
	request.Of(ctx).Note(audit.Client(client))
	r := Request{Identified: Identified{Client: client}, ProvedAfter: found.ProvedAfter, ACR: found.ACR}
	if !slices.Contains(client.GrantTypes, oauth.GrantDeviceCode) {
		return r, Fail{Client: client, Err: sentence.NewError(oauth.UnauthorizedClient,
			"The client is not registered for the device authorization grant.", "no_device_grant")}
	}
	if r.Resource, err = d.Flow.Catalog.Resolve(ctx, []string{found.Resource}); err != nil {
		return r, Fail{Client: client, Err: err}
	}
	r.Scopes = policy.Requestable(r.Resource.Resource, found.Scopes)
	switch x := d.Flow.permit(ctx, r, v).(type) {
	case Forbidden:
		return r, Fail{Client: client, Err: x.Err}
	case Unclear:
		return r, Fail{Client: client, Err: x.Err}
	case Valid:
		if x.Owes {
			return r, SignInStep{entry.StepUp{To: entry.Destination{Device: code}}}
		}
		if x.Visit == nil { // the provider session has ended
			return r, d.signIn(ctx, code, storage.Hash{})
		}
		r = x.Request
	}
	return r, nil
}

// Decide carries out a user's decision. It grants only the contents of the page; if the request has
// changed, it shows the page again.
func (d *Devices) Decide(ctx context.Context, form DeviceForm, decision Decision, token storage.Hash) Step {
	v, err := d.Flow.Browsers.LiveVisit(ctx, token, storage.VisitKey{})
	switch {
	case err != nil:
		return Fail{Err: err}
	case v == nil:
		return d.signIn(ctx, form.Code, token)
	case v.User.ID != form.UserID:
		return Fail{Err: entry.ErrAnotherPerson}
	}
	found, err := d.Requests.Waiting(ctx, form.Code)
	if err == nil && found.Code != form.Device {
		err = device.ErrWrong // the code belongs to a newer request
	}
	if err != nil {
		return notFound(form.Code, err)
	}
	r, step := d.examine(ctx, form.Code, found, v)
	switch {
	case step != nil:
		return step
	case decision.Verdict == "deny":
		return d.deny(ctx, form, found, r)
	case decision.Verdict != "approve":
		return incomplete
	case !d.Flow.covers(form.Shown, r):
		return d.ask(ctx, form.Code, found, v)
	}
	return d.approve(ctx, yesToDevice{form, found, *v}, r, decision.Choice)
}

// yesToDevice is an approval of the contents of a device page.
type yesToDevice struct {
	form    DeviceForm
	request storage.Device
	visit   storage.Visit
}

func (d *Devices) deny(ctx context.Context, form DeviceForm, found storage.Device, r Request) Step {
	if err := d.Requests.Deny(ctx, found); err != nil {
		return undecided(form.Code, err)
	}
	d.Flow.Audit.Record(ctx, audit.ConsentDenied, slog.String("user", form.UserID),
		slog.String("client_id", r.Client.ID), slog.String("resource", r.Resource.URI))
	return DeviceDecided{Request: r, Denied: true}
}

func (d *Devices) approve(ctx context.Context, yes yesToDevice, r Request, choice policy.Choice) Step {
	v := yes.visit
	chosen, err := answer{shown: yes.form.Shown, choice: choice}.narrow(r, Approver{})
	switch {
	case errors.Is(err, policy.ErrPreset):
		return incomplete
	case err != nil || len(chosen.Scopes) == 0 && len(r.Scopes) > 0:
		return nothingChosen(d.ask(ctx, yes.form.Code, yes.request, &v))
	}
	x := Valid{Request: r, Visit: &v}
	step, err := x.lacking(chosen.Scopes, entry.Destination{Device: yes.form.Code}, d.Flow.Now())
	switch {
	case err != nil:
		return Fail{Client: r.Client, Err: err}
	case step != nil:
		return step
	}
	err = d.Approvals.ApproveDevice(ctx, grant.DeviceApproval{
		Session:  v.Session.Hash,
		UserID:   v.User.ID,
		AuthTime: v.Session.AuthTime,
		Client:   r.Client,
		Request:  yes.request,
		Scopes:   chosen.Scopes,
		Shown:    chosen.Page,
	})
	switch {
	case errors.Is(err, grant.ErrSignedOut):
		return d.signIn(ctx, yes.form.Code, v.Session.Hash)
	case errors.Is(err, storage.ErrChanged):
		return d.ask(ctx, yes.form.Code, yes.request, &v)
	case err != nil:
		return undecided(yes.form.Code, err)
	}
	return DeviceDecided{Request: r}
}

// undecided returns the step after a decision that was not carried out.
func undecided(code string, err error) Step {
	if errors.Is(err, storage.ErrSpent) || errors.Is(err, storage.ErrExpired) {
		return EnterDeviceCode{code, device.ErrWrong}
	}
	return Fail{Err: err}
}
