package authserver

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/device"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/qr"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// steps writes the steps of the flow.
type steps struct {
	forms     *pageForms
	errors    *errorPages
	web       *spokenPages
	views     *views
	passwords *passwords
	ways      *ways.Ways
	audit     *audit.Recorder
	accounts  *sessionAccounts
	// clearances shows the step where a user decides about a tool call.
	clearances *clearancePages
}

// write writes a step.
func (s *steps) write(w http.ResponseWriter, r *http.Request, step flow.Step) {
	switch step := step.(type) {
	case flow.SignInStep:
		s.writeEntry(w, r, step.Step)
	case flow.ChooseAccount:
		s.chooseAccount(w, r, step)
	case flow.AskConsent:
		s.askConsent(w, r, step)
	case flow.ConfirmAccount:
		s.confirmAccount(w, r, step)
	case flow.AskPaused:
		s.askPaused(w, r, step)
	case flow.AskClearance:
		s.clearances.inFlow(w, r, step)
	case flow.Respond:
		s.sendToClient(w, r, step.To, step.Response)
	case flow.ShowAnswer:
		s.showAnswer(w, r, step)
	case flow.Answered:
		s.errors.answered(w, r)
	case flow.RespondError:
		s.note(r, step.Err)
		s.sendToClient(w, r, step.To, flow.ErrorResponse(step.Err))
	case flow.Stop:
		s.note(r, step.Err)
		s.stop(w, r, step.To, oauth.AsError(step.Err))
	case flow.Fail:
		s.audit.Record(r.Context(), audit.AuthorizeRefused, refusal.Attr(step.Err))
		s.errors.fail(w, r, step)
	case flow.EnterDeviceCode, flow.AskDevice, flow.DeviceDecided:
		s.writeDevice(w, r, step)
	default:
		s.writeProvider(w, r, step)
	}
}

// writeEntry writes a step of a sign-in.
func (s *steps) writeEntry(w http.ResponseWriter, r *http.Request, step entry.Step) {
	headedFor(r, headed(step))
	switch step := step.(type) {
	case entry.Login:
		s.login(w, r, step, refusedProof{status: http.StatusOK})
	case entry.SecondFactor:
		s.second(w, r, step, refusedProof{status: http.StatusOK})
	case entry.StepUp:
		s.stepUp(w, r, step.To)
	case entry.Reprove:
		s.lead(w, r, s.views.paths.prove, step.To)
	case entry.EnrolFirst:
		s.enrolFirst(w, r, step)
	case entry.Continue:
		redirect(w, s.views.paths.destination(step.To))
	default:
		s.writeRemote(w, r, step)
	}
}

// headedFor notes a user's destination.
func headedFor(r *http.Request, to entry.Destination) {
	switch {
	case to.Query != "":
		request.Of(r.Context()).Asked(to.Query.Values())
	case !device.IsSignIn(to.Device):
		request.Of(r.Context()).ForDevice(device.Read(to.Device))
	}
}

// headed returns a step's destination.
func headed(step entry.Step) entry.Destination {
	switch step := step.(type) {
	case entry.Login:
		return step.To
	case entry.EnrolFirst:
		return step.To
	case entry.StepUp:
		return step.To
	case entry.Reprove:
		return step.To
	case entry.Continue:
		return step.To
	}
	return entry.Destination{}
}

func (s *steps) note(r *http.Request, err error) {
	request.Of(r.Context()).Refuse(oauth.AsError(err))
	s.audit.Record(r.Context(), audit.AuthorizeRefused, refusal.Attr(err))
}

// refusedProof is the content of a page about failed authentication.
type refusedProof struct {
	status  int
	name    string // as typed
	unknown string // the passkey that is unknown here
	problem pages.Text
	wrong   pages.Text // the problem if the input is wrong
}

func (s *steps) login(w http.ResponseWriter, r *http.Request, step entry.Login, after refusedProof) {
	sealed, err := s.forms.seal(w, r, purposeLogin, step.To)
	var choices []pages.Choice
	if err == nil {
		choices, err = s.choices(w, r, step.To)
	}
	var passkeys []pages.Passkey
	if err == nil {
		passkeys, err = s.passkeys(w, r, step.To, after.unknown)
	}
	if err != nil {
		s.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	v := s.views.login(step)
	request.Of(r.Context()).Showing("sign-in page")
	v.Step, v.Choices, v.NoPassword = sealed, choices, !s.passwords.offered(r.Context())
	v.Username, v.Problem = cmp.Or(after.name, step.LoginHint), after.problem
	if !s.views.noOtherDevice {
		v.RemoteAction = s.views.paths.remote
	}
	if v.RecoveryAction = s.views.paths.recovery; len(passkeys) > 0 {
		v.Passkey, v.Earlier = &passkeys[0], passkeys[1:]
	}
	s.web.For(r).Login(w, after.status, v)
}

// passkeys returns the passkey forms of the login page: of this host, and then of each earlier host
// that has any. A browser is asked for the passkeys of one domain at a time, and the page does not
// know the user (PE-02). It returns no ceremonies where passkeys do not work (PE-01). They are the
// same for every name (PE-08).
func (s *steps) passkeys(
	w http.ResponseWriter, r *http.Request, to entry.Destination, unknown string,
) (out []pages.Passkey, err error) {
	browser := s.forms.sessions.Browser(w, r)
	for i, rpID := range s.ways.SignInAt(r.Context()) {
		begun, err := s.ways.BeginSignIn(r.Context(), browser, ways.Ask{Purpose: ways.SignIn, RPID: rpID})
		if err != nil {
			return nil, err
		}
		sealed, err := s.forms.seal(w, r, purposePasskey, entry.PasskeyForm{Sealed: begun.Sealed, To: to})
		if err != nil {
			return nil, err
		}
		form := pages.Passkey{
			Action: s.views.paths.passkey, Step: sealed, Options: string(begun.Options), Unknown: unknown,
		}
		if i > 0 {
			form.Host = rpID
		}
		out = append(out, form)
	}
	return out, nil
}

func (s *steps) askConsent(w http.ResponseWriter, r *http.Request, step flow.AskConsent) {
	a, v, question := step.Request, step.Visit, step.Question()
	sealed, err := s.forms.seal(w, r, purposeConsent, flow.ConsentForm{
		Query: a.Query.Consented(), Shown: s.views.flow.Shown(a, question), UserID: v.User.ID,
		AuthTime: v.Session.AuthTime.Unix(), Code: cmp.Or(a.Query.PushedCode(), grant.NewCode()),
	})
	if err != nil {
		s.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	request.Of(r.Context()).Showing("consent page")
	s.web.For(r).Consent(w, http.StatusOK, pages.Consent{
		Action: s.views.paths.consent, Step: sealed, Request: s.views.request(a, question, step.NothingChosen),
		Username: v.User.Name, AnotherURL: s.views.paths.request(a.Query.Choosing()),
	})
}

// stop shows the error of a client's request, and offers the way back to the client. It does not
// redirect the browser by itself.
func (s *steps) stop(w http.ResponseWriter, r *http.Request, to flow.Identified, e *oauth.Error) {
	if e.Code == oauth.TemporarilyUnavailable { // reloading the page is sufficient
		s.errors.show(w, r, pageStatus(e), e)
		return
	}
	target := to.ResponseURL(s.views.issuer, flow.ErrorResponse(e))
	s.web.For(r).Stopped(w, pageStatus(e), pages.Stopped{
		Message: pages.Told(sentence.Of(e)), Code: string(e.Code),
		Client: clientParty(to.Client), RedirectHost: redirectHost(to.RedirectURI), ReturnURL: target,
		ReturnIsCustomScheme: isCustomScheme(target),
		RequestID:            request.Of(r.Context()).Reference(),
		Advice:               adviseStopped(e),
	})
}

// sendToClient redirects the browser to the redirect URI with the response. Status 303 makes it a
// GET that repeats no form (OAuth 2.1 §7.5.4, AS-45).
//
// For a private-use scheme, a browser gets a page with a button. Other programs get the redirect.
func (s *steps) sendToClient(w http.ResponseWriter, r *http.Request, to flow.Identified, response url.Values) {
	request.Of(r.Context()).Sending(to.RedirectURI, response)
	target := to.ResponseURL(s.views.issuer, response)
	if host := redirectHost(to.RedirectURI); strings.HasSuffix(host, ":") && isDocument(r) {
		s.web.For(r).Handoff(w, pages.Handoff{Client: clientParty(to.Client), URL: target, Scheme: host})
		return
	}
	redirect(w, target)
}

// showAnswer shows the address of the redirect, which the user carries to another computer (PE-14).
func (s *steps) showAnswer(w http.ResponseWriter, r *http.Request, step flow.ShowAnswer) {
	request.Of(r.Context()).Sending(step.To.RedirectURI, step.Response)
	target := step.To.ResponseURL(s.views.issuer, step.Response)
	v := pages.Answer{Client: clientParty(step.To.Client), URL: target, Seconds: int(s.views.codeTTL.Seconds())}
	v.QR, _ = picture(target, pages.Say("answer.qr_label")) // no picture if the address is too long
	s.web.For(r).Answer(w, v)
}

// picture returns the QR code of an address.
func picture(of string, label pages.Text) (pages.QR, error) {
	path, size, err := qr.Path(of)
	if err != nil {
		return pages.QR{}, err
	}
	return pages.QR{Path: path, Size: size, Label: label}, nil
}

// redirect redirects the browser to an address that is a secret.
func redirect(w http.ResponseWriter, target string) {
	h := w.Header()
	h.Set("Location", target)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}

// isDocument reports whether a browser will display the response.
func isDocument(r *http.Request) bool { return r.Header.Get("Sec-Fetch-Dest") == "document" }

func unknownStep(step any) error { return fmt.Errorf("authserver: no page for %T", step) }
