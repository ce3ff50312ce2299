package authserver

import (
	"net/http"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/device"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/session"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// remotePages signs in browsers from other devices (PE-15).
type remotePages struct {
	remote *entry.RemoteSignIns
	forms  *pageForms
	steps  *steps
}

// newRemote returns the pages of sign-ins from other devices, or nil if disabled.
func (s *Server) newRemote(browsers *entry.Browsers, forms *pageForms, steps *steps) *remotePages {
	c := s.cfg
	if c.SignIn.NoOtherDevice {
		return nil
	}
	requests := device.NewBrowserRequests(device.BrowserRequests{
		Store:  c.Store,
		MAC:    func(purpose, code string) storage.Hash { return s.ring.MAC(purpose, []byte(code)) },
		Limits: s.limits,
		Audit:  c.Audit,
		Now:    c.Now,
	})
	return &remotePages{
		remote: &entry.RemoteSignIns{
			Requests: requests,
			Browsers: browsers,
			Ways:     s.ways,
			Users:    s.users,
			Notices:  s.notifier,
			Audit:    c.Audit,
			Now:      c.Now,
		},
		forms: forms,
		steps: steps,
	}
}

// begin serves POST /login/device: a browser asks to be signed in.
func (p *remotePages) begin(w http.ResponseWriter, r *http.Request) {
	var to entry.Destination
	if _, ok := p.forms.open(w, r, purposeLogin, &to); !ok {
		return
	}
	step, err := p.remote.Begin(r.Context(), device.Browser{
		Agent:    session.Agent(r.UserAgent()),
		Address:  p.forms.proxies.ClientAddr(r).String(),
		Networks: p.forms.networks(r),
	}, to)
	if err != nil {
		p.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
		return
	}
	p.steps.writeEntry(w, r, step)
}

// paramAsk is the parameter of /login/device with the browser's sealed request.
const paramAsk = "ask"

// awaited returns the request that this browser waits for. If the browser waits for none, it sends
// a response and returns false.
func (p *remotePages) awaited(w http.ResponseWriter, r *http.Request) (a entry.Awaited, ok bool) {
	sealed := r.URL.Query().Get(paramAsk)
	if err := p.forms.unseal(w, r, purposeRemote, sealed, &a); err != nil {
		p.forms.errors.stale(w, r)
		return a, false
	}
	return a, true
}

// wait serves GET /login/device: the browser shows the data for the other device until the user has
// decided.
func (p *remotePages) wait(w http.ResponseWriter, r *http.Request) {
	a, ok := p.awaited(w, r)
	if !ok {
		return
	}
	x := &newSession{forms: p.forms, r: r}
	step, err := p.remote.Await(r.Context(), a, p.forms.networks(r)[0], x.mint)
	if err != nil {
		p.forms.errors.show(w, r, pageStatus(oauth.AsError(err)), err)
		return
	}
	p.steps.signedIn(w, r, x, step)
}

// state serves GET /login/device/state, which a script polls: 204 while the browser has to wait.
func (p *remotePages) state(w http.ResponseWriter, r *http.Request) {
	a, ok := p.awaited(w, r)
	if !ok {
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if p.remote.Undecided(r.Context(), a) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// decide serves POST /device/sign-in: a user decides about a browser.
func (p *remotePages) decide(w http.ResponseWriter, r *http.Request) {
	var form entry.RemoteForm
	posted, ok := p.forms.open(w, r, purposeRemoteDecision, &form)
	if !ok {
		return
	}
	p.show(w, r)(p.remote.Decide(r.Context(), form, posted.Get("decision"), posted.Get("number"), p.forms.token(r)))
}

// look serves GET /device with the code of a browser.
func (p *remotePages) look(w http.ResponseWriter, r *http.Request, code string) {
	p.show(w, r)(p.remote.Look(r.Context(), code, p.forms.token(r), p.forms.networks(r)))
}

// show returns a function that writes the step for a user who decides about a browser.
func (p *remotePages) show(w http.ResponseWriter, r *http.Request) func(entry.Step, error) {
	return func(step entry.Step, err error) {
		if err != nil {
			p.steps.write(w, r, flow.Fail{Err: err})
			return
		}
		p.steps.writeEntry(w, r, step)
	}
}

// writeRemote writes the steps of a sign-in from another device.
func (s *steps) writeRemote(w http.ResponseWriter, r *http.Request, step entry.Step) {
	switch step := step.(type) {
	case entry.AwaitRemote:
		s.awaitRemote(w, r, step.Awaited)
	case entry.WaitRemote:
		s.waitRemote(w, r, step)
	case entry.RemoteOver:
		s.web.For(r).RemoteOver(w, pages.RemoteOver{
			Denied: step.Why == entry.RemoteDenied, AgainURL: s.views.paths.signIn(step.To),
		})
	case entry.AskRemote:
		s.askRemote(w, r, step)
	case entry.RemoteDecided:
		s.web.For(r).RemoteDone(w, pages.RemoteDone{
			Outcome: string(step.Outcome), AccountURL: s.views.paths.account,
		})
	case entry.EnterRemoteCode:
		s.enterDeviceCode(w, r, flow.EnterDeviceCode(step))
	default:
		s.errors.show(w, r, http.StatusInternalServerError, unknownStep(step))
	}
}

// awaitRemote redirects to the browser's waiting page. Its address contains the request, which is
// useless in another browser.
func (s *steps) awaitRemote(w http.ResponseWriter, r *http.Request, a entry.Awaited) {
	sealed, err := s.forms.seal(w, r, purposeRemote, a)
	if err != nil {
		s.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	redirect(w, s.views.paths.remote+"?"+url.Values{paramAsk: {sealed}}.Encode())
}

func (s *steps) waitRemote(w http.ResponseWriter, r *http.Request, step entry.WaitRemote) {
	a, paths := step.Awaited, s.views.paths
	code, left := device.Show(a.Code), time.Unix(a.Expires, 0).Sub(s.views.flow.Now())
	v := pages.Remote{
		Code:       code,
		Number:     step.Number,
		URL:        s.views.issuer + "/device",
		Minutes:    minutes(left),
		Seconds:    int(left.Seconds()),
		SelfURL:    r.URL.RequestURI(),
		StateURL:   paths.remote + "/state?" + r.URL.RawQuery,
		ElsewayURL: paths.signIn(a.To),
	}
	v.QR, _ = picture(s.views.issuer+"/device?"+paramUserCode+"="+code, pages.Say("remote.qr"))
	s.web.For(r).Remote(w, v)
}

func (s *steps) askRemote(w http.ResponseWriter, r *http.Request, step entry.AskRemote) {
	sealed, err := s.forms.seal(w, r, purposeRemoteDecision, step.Form)
	var signOut string
	if err == nil {
		signOut, err = s.forms.signOut(w, r, step.Visit.User, entry.Destination{Device: step.Form.Code})
	}
	if err != nil {
		s.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	paths, asked := s.views.paths, step.Request
	v := pages.RemoteAsk{
		Action: paths.remoteDecision, Step: sealed, Code: device.Show(step.Form.Code),
		Agent: agentText(asked.Agent), Address: asked.Address, Near: s.forms.near(r, asked.Address),
		Asked: asked.CreatedAt, Username: step.Visit.User.Name,
		SignOutAction: paths.logout, SignOutStep: signOut,
	}
	status := http.StatusOK
	if step.NoNumber {
		status, v.Problem = http.StatusBadRequest, pages.Say("remote.number_missing")
	}
	s.web.For(r).RemoteAsk(w, status, v)
}
