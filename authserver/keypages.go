package authserver

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/mcp-authd/mcp-authd/authserver/internal/account"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// pageKeys is the page where users create API keys, below the path of the issuer.
const pageKeys = "/account/keys"

// keyPages serves this page, and the page that shows a key once.
type keyPages struct {
	maker *account.KeyMaker
	prove *provePages
	forms *pageForms
	steps *steps
}

// page serves GET /account/keys.
func (p *keyPages) page(w http.ResponseWriter, r *http.Request) {
	offer, err := p.maker.Offer(r.Context(), p.forms.token(r), r.URL.Query().Get("resource"))
	if err != nil {
		p.failed(w, r, p.here(r), err)
		return
	}
	p.show(w, r, http.StatusOK, offer, pages.MakeKey{})
}

// here returns the requested page, to come back to it.
func (p *keyPages) here(r *http.Request) string {
	if r.URL.RawQuery == "" {
		return pageKeys
	}
	return pageKeys + "?" + r.URL.RawQuery
}

// keyDays is the default lifetime of a key in days.
const keyDays = 30

func (p *keyPages) show(w http.ResponseWriter, r *http.Request, status int, o account.KeyOffer, v pages.MakeKey) {
	paths := p.steps.views.paths
	v.Action, v.BackURL = paths.prefix+pageKeys, paths.account
	if o.Server.URI == "" {
		for _, s := range o.Servers {
			v.Servers = append(v.Servers, pages.ServerChoice{
				Server: resourceParty(s), URL: v.Action + "?" + url.Values{"resource": {s.URI}}.Encode(),
			})
		}
		p.steps.web.For(r).MakeKey(w, status, v)
		return
	}
	var err error
	if v.Step, err = p.forms.seal(w, r, purposeKey, o.Form); err != nil {
		p.failed(w, r, pageKeys, err)
		return
	}
	// Only required scopes are preselected; users choose the others themselves.
	v.Server, v.Scopes = resourceParty(o.Server), grantedScopes(o.Server, o.Permitted)
	for _, d := range o.Days {
		v.Days = append(v.Days, pages.DayChoice{Days: d})
	}
	for i := len(o.Days) - 1; i >= 0; i-- {
		if o.Days[i] <= keyDays || i == 0 {
			v.Days[i].Checked = true
			break
		}
	}
	p.steps.web.For(r).MakeKey(w, status, v)
}

// make serves POST /account/keys.
func (p *keyPages) make(w http.ResponseWriter, r *http.Request) {
	var f account.KeyForm
	posted, ok := p.forms.open(w, r, purposeKey, &f)
	if !ok {
		return
	}
	days, _ := strconv.Atoi(posted.Get("days")) // 0 is refused: the page does not offer it
	want := account.KeyRequest{Name: posted.Get("name"), Days: days, Scopes: posted["scope"]}
	made, err := p.maker.Make(r.Context(), p.forms.token(r), f, want)
	if err == nil {
		p.steps.web.For(r).KeyMade(w, p.made(made))
		return
	}
	status, problem := keyProblem(err)
	if status == 0 {
		p.failed(w, r, pageKeys+"?"+url.Values{"resource": {f.Resource}}.Encode(), err)
		return
	}
	offer, err := p.maker.Again(r.Context(), p.forms.token(r), f)
	if err != nil {
		p.failed(w, r, pageKeys, err)
		return
	}
	p.show(w, r, status, offer, pages.MakeKey{Problem: problem, Name: want.Name})
}

// made returns the page that shows a key once.
func (p *keyPages) made(k account.MadeKey) pages.KeyMade {
	views := p.steps.views
	token := views.issuer + "/token"
	return pages.KeyMade{
		Name: k.Client.Name, Server: resourceParty(k.Server), Scopes: grantedScopes(k.Server, k.Grant.Scopes),
		Ends: k.Grant.ExpiresAt, ClientID: k.Client.ID, Secret: k.Secret, TokenURL: token,
		// safe in single quotes: ids, secrets and URLs of this server contain no special characters
		Command: "curl -u '" + k.Client.ID + ":" + k.Secret + "' -d grant_type=client_credentials '" + token + "'",
		BackURL: views.paths.account + "#keys",
	}
}

func (p *keyPages) failed(w http.ResponseWriter, r *http.Request, back string, err error) {
	p.prove.refused(w, r, back, err)
}

// keyProblem returns the user's text for a key that was not created; none if the error is not the
// user's.
func keyProblem(err error) (int, pages.Text) {
	switch {
	case errors.Is(err, account.ErrKeyName):
		return http.StatusBadRequest, pages.Say("makekey.unnamed")
	case errors.Is(err, account.ErrKeyLife):
		return http.StatusBadRequest, pages.Say("makekey.too_long")
	case errors.Is(err, account.ErrNoScope):
		return http.StatusBadRequest, pages.Say("makekey.nothing")
	case errors.Is(err, account.ErrKeyWider):
		return http.StatusForbidden, pages.Say("makekey.wider")
	case errors.Is(err, account.ErrKeyMade):
		return http.StatusConflict, pages.Say("makekey.used")
	case errors.Is(err, storage.ErrFull):
		return http.StatusConflict, pages.Say("makekey.full")
	}
	return 0, pages.Text{}
}

// keys returns the API keys for the account page.
func (p *keyPages) keys(page *account.View, form pages.AccountForm) pages.AccountKeys {
	out, paths := pages.AccountKeys{AccountForm: form}, p.steps.views.paths
	if !p.maker.Off {
		out.MakeURL = paths.prefix + pageKeys
	}
	if page.Next.Keys != "" {
		out.NextURL = paths.account + "?" + url.Values{"keys": {page.Next.Keys}}.Encode()
	}
	for _, c := range page.Keys {
		out.Keys = append(out.Keys, pages.ProgramKey{
			ID: c.ID, Name: c.Client.Name, ClientID: c.ClientID,
			Server: resourceParty(c.Resource), Scopes: grantedScopes(c.Resource, c.Scopes),
			Made: pages.Event{At: c.CreatedAt, Agent: agentText(c.GivenAgent), From: c.GivenFrom},
			Ends: c.ExpiresAt, Used: pages.Event{At: c.UsedAt, From: c.UsedFrom},
			LastCall: pages.Call(c.LastCall), Handed: p.steps.views.handed(c), Paused: !c.PausedAt.IsZero(),
		})
	}
	return out
}
