package authserver

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"

	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/clearance"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// clearancePages serves the pages where users decide about single tool calls (RS-217).
type clearancePages struct {
	flow     *flow.Flow
	desk     *clearance.Desk
	browsers *entry.Browsers
	catalog  *catalogue.Catalogue
	forms    *pageForms
	steps    *steps
}

// clearanceForm is the content of the approval form, sealed and bound to the browser.
type clearanceForm struct {
	ID     string     `json:"c"`
	UserID string     `json:"u"`
	Query  form.Query `json:"q,omitempty"` // the authorization request to continue
	// Approved is the consent that was given before, see flow.Consented.
	Approved *flow.Consented `json:"a,omitempty"`
	// Other reports that another user decides, and that this user has seen who.
	Other bool `json:"o,omitempty"`
}

// told returns the form of a user who has seen who decides.
func (f clearanceForm) told() clearanceForm {
	f.Query = f.Query.Told()
	if f.Approved != nil {
		approved := *f.Approved
		approved.Form.Query = approved.Form.Query.Told()
		f.Approved = &approved
	}
	return f
}

// clearanceID matches valid ids. Other ids are not looked up and get the page for unknown ids.
var clearanceID = regexp.MustCompile(`^clr_[A-Za-z0-9_-]{16,64}$`)

// page serves GET /clearance/{id}. It changes nothing.
func (p *clearancePages) page(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !clearanceID.MatchString(id) {
		p.over(w, r, http.StatusNotFound, pages.ClearanceNone)
		return
	}
	token, to := p.forms.token(r), entry.Destination{Page: clearance.Path + id}
	v, err := p.browsers.LiveVisit(r.Context(), token, storage.VisitKey{})
	switch {
	case err != nil:
		p.failed(w, r, err)
	case v == nil:
		p.steps.writeEntry(w, r, entry.Login{To: to, EndNotice: p.browsers.EndNotice(r.Context(), token)})
	default:
		p.ask(w, r, clearanceForm{ID: id, UserID: v.User.ID}, *v, to)
	}
}

// inFlow shows the page as a step of an authorization request, which continues after the answer.
func (p *clearancePages) inFlow(w http.ResponseWriter, r *http.Request, step flow.AskClearance) {
	v, err := p.browsers.LiveVisit(r.Context(), step.Session, storage.VisitKey{})
	q := step.Request.Query
	switch {
	case err != nil:
		p.failed(w, r, err)
	case v == nil || step.Approved != nil && step.Approved.Form.UserID != v.User.ID:
		redirect(w, p.steps.views.paths.request(q))
	default:
		f := clearanceForm{ID: step.ID, UserID: v.User.ID, Query: q, Approved: step.Approved}
		p.ask(w, r, f, *v, entry.Destination{Query: q})
	}
}

// goOn continues the authorization request of a form, which reports the decision to the client.
func (p *clearancePages) goOn(w http.ResponseWriter, r *http.Request, f clearanceForm) {
	if f.Approved == nil {
		redirect(w, p.steps.views.paths.request(f.Query))
		return
	}
	p.steps.write(w, r, p.flow.Consent(r.Context(), f.Approved.Form, p.forms.token(r), f.Approved.Decision))
}

// ask shows the approval page, or redirects to the missing authentication.
func (p *clearancePages) ask(
	w http.ResponseWriter, r *http.Request, f clearanceForm, v storage.Visit, to entry.Destination,
) {
	q, err := p.desk.Look(r.Context(), f.ID, v)
	f.Other = errors.Is(err, clearance.ErrOther)
	switch {
	case f.Query != "" && errors.Is(err, clearance.ErrNone): // an ended approval does not fail the request
		p.goOn(w, r, f)
		return
	case !f.Other && (err != nil || q.State != storage.ClearanceWaits):
		p.ended(w, r, f, q.Clearance, to, err)
		return
	}
	sealed, err := p.forms.seal(w, r, purposeClearance, f)
	var resource storage.Resource
	if err == nil {
		resource, err = p.resource(r, q.Resource)
	}
	if err != nil {
		p.failed(w, r, err)
		return
	}
	client := p.client(r, q.ClientID)
	call := pages.CallToClear{
		Action:         p.steps.views.paths.prefix + clearance.Path + url.PathEscape(f.ID),
		Step:           sealed,
		Client:         clientParty(client),
		SelfRegistered: !p.steps.views.clients.Vouched(client),
		Resource:       resourceParty(resource),
		Tool:           pieces(clearance.Pieces(q.Tool)),
		Until:          q.ExpiresAt,
	}
	if f.Other {
		request.Of(r.Context()).Showing("page that says for whom a call waits")
		p.steps.web.For(r).ClearanceElsewhere(w, pages.ClearanceElsewhere{
			CallToClear: call,
			Approvers:   q.Approvers,
			URL:         p.steps.views.issuer + clearance.Path + url.PathEscape(f.ID),
			GoesOn:      f.Query != "",
			HomeURL:     p.steps.views.paths.account,
		})
		return
	}
	request.Of(r.Context()).Showing("page that asks for a clearance")
	p.steps.web.For(r).Clearance(w, pages.Clearance{
		CallToClear: call,
		Arguments:   argumentRows(q.Arguments),
		For:         q.For,
		Username:    v.User.Name,
	})
}

// decide serves POST /clearance/{id}.
func (p *clearancePages) decide(w http.ResponseWriter, r *http.Request) {
	var f clearanceForm
	posted, ok := p.forms.open(w, r, purposeClearance, &f)
	if !ok {
		return
	}
	verdict := posted.Get("decision")
	switch {
	case f.ID != r.PathValue("id"), f.Other != (verdict == "continue"),
		!f.Other && verdict != "approve" && verdict != "deny":
		p.failed(w, r, refusal.ErrIncomplete)
		return
	case f.Other:
		p.goOn(w, r, f.told())
		return
	}
	v, err := p.browsers.VisitOf(r.Context(), p.forms.token(r), f.UserID)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	to := entry.Destination{Page: clearance.Path + f.ID}
	if f.Query != "" {
		to = entry.Destination{Query: f.Query}
	}
	c, err := p.desk.Decide(r.Context(), f.ID, v, verdict == "approve")
	if err == nil && verdict == "deny" && c.State != storage.ClearanceRefused { // an old page: do not continue
		p.over(w, r, http.StatusOK, pages.ClearanceLate)
		return
	}
	p.ended(w, r, f, c, to, err)
}

// ended responds if the user has nothing to decide, or no longer.
func (p *clearancePages) ended(
	w http.ResponseWriter, r *http.Request, f clearanceForm, c storage.Clearance, to entry.Destination, err error,
) {
	switch {
	case err == nil && f.Query != "":
		p.goOn(w, r, f)
	case errors.Is(err, clearance.ErrNone), errors.Is(err, clearance.ErrOther):
		p.over(w, r, http.StatusNotFound, pages.ClearanceNone)
	case errors.Is(err, entry.ErrMore):
		to.ACR = p.desk.Class(c)
		p.steps.stepUp(w, r, to)
	case errors.Is(err, entry.ErrProve):
		p.steps.lead(w, r, p.steps.views.paths.prove, to)
	case err != nil:
		p.failed(w, r, err)
	case c.State == storage.ClearanceRefused:
		p.over(w, r, http.StatusOK, pages.ClearanceRefused)
	default:
		p.over(w, r, http.StatusOK, pages.ClearanceGiven)
	}
}

func (p *clearancePages) over(w http.ResponseWriter, r *http.Request, status int, outcome pages.ClearanceOutcome) {
	p.steps.web.For(r).ClearanceOver(w, status,
		pages.ClearanceOver{Outcome: outcome, HomeURL: p.steps.views.paths.account})
}

func (p *clearancePages) failed(w http.ResponseWriter, r *http.Request, err error) {
	p.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
}

// client returns a client, or only its id if it is unknown.
func (p *clearancePages) client(r *http.Request, id string) storage.Client {
	c, err := p.steps.views.clients.Find(r.Context(), id)
	if err != nil {
		return storage.Client{ID: id}
	}
	return c
}

func (p *clearancePages) resource(r *http.Request, uri string) (storage.Resource, error) {
	resource, known, err := p.catalog.Lookup(r.Context(), uri)
	if !known {
		resource = storage.Resource{URI: uri}
	}
	return resource, err
}

// waiting returns the calls that wait for a user.
func (p *clearancePages) waiting(r *http.Request, userID string) (out []pages.WaitingCall, err error) {
	list, err := p.desk.Waiting(r.Context(), userID)
	for _, c := range list {
		resource, err := p.resource(r, c.Resource)
		if err != nil {
			return nil, err
		}
		out = append(out, pages.WaitingCall{
			URL:    p.steps.views.paths.prefix + clearance.Path + url.PathEscape(c.ID),
			Tool:   clearance.Plain(c.Tool),
			Client: clientParty(p.client(r, c.ClientID)),
			Server: resourceParty(resource),
			Until:  c.ExpiresAt,
		})
	}
	return out, err
}

func pieces(list []clearance.Piece) (out []pages.Piece) {
	for _, p := range list {
		out = append(out, pages.Piece(p))
	}
	return out
}

var argumentKinds = map[clearance.Kind]pages.ArgumentKind{
	clearance.Literal: pages.ArgumentLiteral, clearance.String: pages.ArgumentText,
	clearance.Array: pages.ArgumentList, clearance.Object: pages.ArgumentObject,
}

func argumentRows(a clearance.Arguments) (out []pages.Argument) {
	for _, row := range a.Rows() {
		argument := pages.Argument{
			Depth: row.Depth,
			Name:  pieces(row.Name),
			Kind:  argumentKinds[row.Kind],
			Value: pieces(row.Value),
			Count: strconv.Itoa(row.Count),
		}
		if row.Index > 0 {
			argument.Index = strconv.Itoa(row.Index)
		}
		out = append(out, argument)
	}
	return out
}
