package authserver

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/internal/wire"
)

// second serves POST /login/second, the form for a second factor.
func (p *loginPages) second(w http.ResponseWriter, r *http.Request) {
	var f entry.Unfinished
	posted, ok := p.forms.open(w, r, purposeSecond, &f)
	if !ok {
		return
	}
	x, a := &newSession{forms: p.forms, r: r}, p.forms.answer(w, r, posted)
	step, err := entry.Step(nil), errNoScript
	if a.Given() {
		step, err = p.entry.Second(r.Context(), f, a, x.mint)
	}
	if err == nil {
		p.steps.signedIn(w, r, x, step)
		return
	}
	after := refusedProof{wrong: pages.Say("second.wrong"), unknown: unknownPasskey(err)}
	if errors.Is(err, entry.ErrLate) {
		p.problem(w, r, f.To, after, err) // the user has to begin again
		return
	}
	if after.status, after.problem = proofProblem(w, after.wrong, err); after.status != 0 {
		step, err = p.entry.Again(r.Context(), f, a.Browser)
	}
	switch again, ok := step.(entry.SecondFactor); {
	case ok:
		p.steps.second(w, r, again, after)
	case errors.Is(err, entry.ErrLate):
		p.problem(w, r, f.To, after, err)
	default:
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
	}
}

// more serves GET /login/second for a signed-in user who needs a second factor.
func (p *loginPages) more(w http.ResponseWriter, r *http.Request) {
	to, ok := p.forms.destination(w, r)
	if !ok {
		return
	}
	step, err := p.entry.More(r.Context(), p.forms.token(r), to, p.forms.sessions.Browser(w, r))
	if err != nil {
		p.forms.errors.show(w, r, http.StatusServiceUnavailable, err)
		return
	}
	p.steps.writeEntry(w, r, step)
}

// stepUp redirects to the second factor page.
func (s *steps) stepUp(w http.ResponseWriter, r *http.Request, to entry.Destination) {
	s.lead(w, r, s.views.paths.second, to)
}

// lead redirects the browser to a page that continues to a destination.
func (s *steps) lead(w http.ResponseWriter, r *http.Request, page string, to entry.Destination) {
	sealed, err := s.forms.seal(w, r, purposeTo, to)
	if err != nil {
		s.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	redirect(w, page+"?to="+url.QueryEscape(sealed))
}

// enrolFirst shows that a second factor is required and the user has none.
func (s *steps) enrolFirst(w http.ResponseWriter, r *http.Request, step entry.EnrolFirst) {
	sealed, err := s.forms.seal(w, r, purposeTo, step.To)
	if err != nil {
		s.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	query := "?to=" + url.QueryEscape(sealed)
	request.Of(r.Context()).Showing("page that asks for a second factor")
	v := pages.EnrolFirst{Demanded: step.To.ACR != ""}
	if step.App {
		v.AppURL = s.views.paths.prefix + pageApp + query
	}
	if s.ways.Site().Offered() {
		v.PasskeyURL = s.views.paths.prefix + pagePasskey + query
	}
	s.web.For(r).EnrolFirst(w, v)
}

var errNoScript = errors.New("authserver: the browser has not asked for a passkey")

// proofProblem returns status and text about failed authentication; wrong is the text about a wrong
// input. The status is 0 for an error that is not the user's.
func proofProblem(w http.ResponseWriter, wrong pages.Text, err error) (status int, problem pages.Text) {
	var throttled *users.ThrottledError
	var unknown *ways.UnknownPasskeyError
	switch {
	case errors.As(err, &throttled):
		wire.SetRetryAfter(w.Header(), throttled.RetryAfter)
		return http.StatusTooManyRequests, tooMany(throttled.Counted, minutes(throttled.RetryAfter))
	case errors.Is(err, users.ErrWrong):
		return http.StatusUnauthorized, wrong
	case errors.Is(err, delegation.ErrHomeProvider):
		return http.StatusForbidden, pages.Told(sentence.Of(delegation.ErrHomeProvider))
	case errors.Is(err, errNoScript):
		return http.StatusBadRequest, pages.Say("passkey.noscript")
	case errors.As(err, &unknown):
		return http.StatusUnauthorized, pages.Say("passkey.unknown")
	case errors.Is(err, ways.ErrRefused):
		return http.StatusUnauthorized, pages.Say("passkey.rejected")
	case errors.Is(err, entry.ErrLate), errors.Is(err, ways.ErrOver):
		return http.StatusBadRequest, pages.Say("second.late")
	}
	return 0, pages.Text{}
}

// unknownPasskey returns the unknown passkey that was presented, to report it to the authenticator.
func unknownPasskey(err error) string {
	var unknown *ways.UnknownPasskeyError
	if !errors.As(err, &unknown) {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(unknown.CredentialID)
}

// second shows the page for the missing factor of a sign-in.
func (s *steps) second(w http.ResponseWriter, r *http.Request, step entry.SecondFactor, after refusedProof) {
	headedFor(r, step.Form.To)
	request.Of(r.Context()).Showing("second factor page")
	sealed, err := s.forms.seal(w, r, purposeSecond, step.Form)
	if err != nil {
		s.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	can := func(method string) bool { return slices.Contains(step.Possible, method) }
	v := pages.Second{
		Action:   s.views.paths.second,
		Step:     sealed,
		Username: step.Username,
		SignedIn: step.Form.Old != nil,
		Problem:  after.problem,
		App:      can(ways.ByApp),
		Recovery: can(ways.ByRecovery),
		Password: can(ways.ByPassword) && !s.passwords.off,
	}
	if step.Options != nil {
		v.Passkey = &pages.Passkey{
			Action: v.Action, Step: sealed, Options: string(step.Options), Unknown: after.unknown,
		}
	}
	s.web.For(r).Second(w, after.status, v)
}
