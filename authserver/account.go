package authserver

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/account"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// accountPages serves the account page and its forms.
type accountPages struct {
	accounts *account.Page
	ways     *wayPages
	keys     *keyPages
	notices  *noticePages
	waiting  *clearancePages
	forms    *pageForms
	steps    *steps
	console  string // URL of the console; "": not at this listener
}

// accountForm is the sealed content of the account page's forms: the user that the page was made
// for.
type accountForm struct {
	UserID string `json:"u"`
	// Asked reports that the user was asked whether to end everything.
	Asked bool `json:"a,omitempty"`
}

// doneForm is the outcome of an action, in the address of the page that shows it.
type doneForm struct {
	Outcome account.Outcome `json:"o"`
}

// page serves GET /account.
func (p *accountPages) page(w http.ResponseWriter, r *http.Request) {
	p.show(w, r, refusedProof{status: http.StatusOK})
}

// show shows the page, with the problem of a failed action.
func (p *accountPages) show(w http.ResponseWriter, r *http.Request, after refusedProof) {
	query := r.URL.Query()
	from := account.Places{
		Connections: query.Get("before"), Keys: query.Get("keys"), Pauses: query.Get("paused"),
	}
	v, err := p.accounts.View(r.Context(), p.forms.token(r), from)
	switch {
	case err != nil:
		p.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
		return
	case v == nil:
		redirect(w, p.steps.views.paths.login)
		return
	}
	out, err := p.view(w, r, v)
	if err != nil {
		p.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
		return
	}
	if out.Waiting, err = p.waiting.waiting(r, v.Visit.User.ID); err != nil {
		p.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
		return
	}
	out.Apps.Later, out.Problem = from.Connections != "", after.problem
	out.Done = p.said(w, r)
	p.steps.web.For(r).Account(w, after.status, out)
}

// said returns the text about the outcome of the last action.
func (p *accountPages) said(w http.ResponseWriter, r *http.Request) pages.Text {
	var done doneForm
	sealed := r.URL.Query().Get("done")
	if p.forms.unseal(w, r, purposeDone, sealed, &done) != nil {
		return pages.Text{}
	}
	return doneTexts[done.Outcome]
}

var doneTexts = map[account.Outcome]pages.Text{
	account.Disconnected: pages.Say("account.done_disconnected"),
	account.Left:         pages.Say("account.done_left"),
	account.Narrowed:     pages.Say("account.done_narrowed"),
	account.Paused:       pages.Say("account.done_paused"),
	account.Resumed:      pages.Say("account.done_resumed"),
	account.Ended:        pages.Say("account.done_ended"),
	account.OthersEnded:  pages.Say("account.done_others_ended"),
	account.Gone:         pages.Say("account.done_gone"),
	account.HelperCut:    pages.Say("account.done_cut"),
	account.Wider:        pages.Say("account.done_wider"),
	account.Nothing:      pages.Say("account.done_nothing"),
	account.Full:         pages.Say("account.done_full"),
}

// view returns the content of the page with its forms.
func (p *accountPages) view(w http.ResponseWriter, r *http.Request, v *account.View) (pages.AccountPage, error) {
	views := p.steps.views
	step, err := p.forms.seal(w, r, purposeAccount, accountForm{UserID: v.Visit.User.ID})
	if err != nil {
		return pages.AccountPage{}, err
	}
	signOut, err := p.forms.signOut(w, r, v.Visit.User, entry.Destination{})
	if err != nil {
		return pages.AccountPage{}, err
	}
	ways, err := p.ways.section(w, r, v.Visit.User, v.Identities)
	if err != nil {
		return pages.AccountPage{}, err
	}
	news, err := p.notices.section(w, r, v.Visit.User.ID)
	form := func(action string) pages.AccountForm { return pages.AccountForm{Action: action, Step: step} }
	return pages.AccountPage{
		News: news,
		You: pages.AccountYou{
			Username:   v.Visit.User.Name,
			ConsoleURL: p.consoleOf(v.Visit.User),
			Back:       views.paths.account,
			Ways:       ways,
			SignOut:    pages.AccountForm{Action: views.paths.logout, Step: signOut},
		},
		Apps:    views.apps(v, form(views.paths.connections)),
		Keys:    p.keys.keys(v, form(views.paths.connections)),
		SignIns: views.signIns(v, form(views.paths.signIns)),
		Stop:    form(views.paths.stop),
		HomeURL: views.paths.home,
	}, err
}

// consoleOf returns the URL of the console for a user; "" if they have no role or it is at another
// listener.
func (p *accountPages) consoleOf(u storage.User) string {
	if u.Role == "" {
		return ""
	}
	return p.console
}

// person opens a form of the account page. If it returns false, it has sent a response.
func (p *accountPages) person(w http.ResponseWriter, r *http.Request) (account.Person, accountForm, url.Values, bool) {
	var form accountForm
	posted, ok := p.forms.open(w, r, purposeAccount, &form)
	return account.Person{Token: p.forms.token(r), UserID: form.UserID}, form, posted, ok
}

// connections serves POST /account/connections.
func (p *accountPages) connections(w http.ResponseWriter, r *http.Request) {
	who, _, posted, ok := p.person(w, r)
	if !ok {
		return
	}
	id := posted.Get("grant")
	if id == "" {
		id = posted.Get("pause")
	}
	acts := map[string]func(context.Context, account.Person, string) (account.Outcome, error){
		"disconnect": p.accounts.Disconnect,
		"leave":      p.accounts.Leave,
		"pause":      p.accounts.Pause,
		"resume":     p.accounts.Resume,
		"end-pause":  p.accounts.ResumePause,
		"narrow": func(ctx context.Context, who account.Person, id string) (account.Outcome, error) {
			return p.accounts.Narrow(ctx, who, id, posted["scope"])
		},
		"cut": func(ctx context.Context, who account.Person, id string) (account.Outcome, error) {
			return p.accounts.CutHelper(ctx, who, id, posted.Get("node"))
		},
	}
	act, ok := acts[posted.Get("act")]
	if !ok {
		p.unknown(w, r)
		return
	}
	outcome, err := act(r.Context(), who, id)
	if outcome == account.HelperCut { // the page may list others
		p.done(w, r, p.steps.views.paths.prefix+pageHelpers, url.Values{"grant": {id}}, outcome, err)
		return
	}
	p.done(w, r, p.steps.views.paths.account, url.Values{}, outcome, err)
}

// signIns serves POST /account/sign-ins.
func (p *accountPages) signIns(w http.ResponseWriter, r *http.Request) {
	who, _, posted, ok := p.person(w, r)
	if !ok {
		return
	}
	var outcome account.Outcome
	var err error
	switch posted.Get("act") {
	case "end":
		outcome, err = p.accounts.EndSignIn(r.Context(), who, posted.Get("session"))
	case "end-others":
		outcome, err = p.accounts.EndOthers(r.Context(), who)
	default:
		p.unknown(w, r)
		return
	}
	p.done(w, r, p.steps.views.paths.account, url.Values{}, outcome, err)
}

// stop serves POST /account/stop. It asks for confirmation on a page that needs no script (PE-12).
func (p *accountPages) stop(w http.ResponseWriter, r *http.Request) {
	who, form, posted, ok := p.person(w, r)
	switch {
	case !ok:
	case posted.Get("act") != "stop-all":
		p.unknown(w, r)
	case form.Asked:
		p.stopEverything(w, r, who)
	default:
		p.askStop(w, r, form)
	}
}

func (p *accountPages) askStop(w http.ResponseWriter, r *http.Request, form accountForm) {
	form.Asked = true
	step, err := p.forms.seal(w, r, purposeAccount, form)
	if err != nil {
		p.forms.errors.show(w, r, http.StatusInternalServerError, err)
		return
	}
	paths := p.steps.views.paths
	p.steps.web.For(r).StopEverything(w, pages.StopEverything{
		AccountForm: pages.AccountForm{Action: paths.stop, Step: step}, BackURL: paths.account,
	})
}

func (p *accountPages) stopEverything(w http.ResponseWriter, r *http.Request, who account.Person) {
	_, held, err := p.forms.held(r, p.steps.views.flow.Browsers)
	if err == nil {
		err = p.accounts.StopEverything(r.Context(), who)
	}
	if err != nil {
		err = refusal.Protocol(err)
		p.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
		return
	}
	p.forms.sessions.Clear(w, r)
	p.steps.signedOut(w, r, slices.ContainsFunc(held, func(h heldBy) bool {
		return h.userID != "" && h.userID != who.UserID
	}))
}

// done redirects to the page that shows the outcome of an action, so that reloading it does not
// repeat the action.
func (p *accountPages) done(
	w http.ResponseWriter, r *http.Request, page string, query url.Values, outcome account.Outcome, err error,
) {
	if err == nil {
		var step string
		if step, err = p.forms.seal(w, r, purposeDone, doneForm{outcome}); err == nil {
			query.Set("done", step)
			redirect(w, page+"?"+query.Encode())
			return
		}
	}
	p.ways.prove.refused(w, r, pageAccount, err)
}

func (p *accountPages) unknown(w http.ResponseWriter, r *http.Request) {
	p.forms.errors.show(w, r, http.StatusBadRequest,
		sentence.NewError(oauth.InvalidRequest, "The form does not say what to do.", "form_idle"))
}
