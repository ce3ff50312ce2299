package authserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/session"
	"github.com/mcp-authd/mcp-authd/storage"
)

// loginState is what the login form carries along, sealed and bound to the browser.
type loginState struct {
	Query   string `json:"q,omitempty"` // the authorization request to come back to
	Connect string `json:"c,omitempty"` // or the request at /connect; both "": the home page
}

const (
	purposeLogin      = "login"
	purposeConsent    = "consent"
	purposeLogout     = "logout"
	purposeSetup      = "setup"
	purposeLeave      = "leave"      // for a provider, with a client that asks: at /consent
	purposeDepart     = "depart"     // for a provider, without one: at /depart
	purposeConnect    = "connect"    // a request of a resource server
	purposeDisconnect = "disconnect" // an account at a provider
	purposeClaim      = "claim"      // an account at a provider that came back
)

// handleLogin serves POST /login: it checks a password, begins a session and goes
// back to where the person came from.
func (s *Server) handleLogin(w http.ResponseWriter, r *http.Request) {
	form, ok := s.readPageForm(w, r)
	if !ok {
		return
	}
	var state loginState
	if err := s.sessions.OpenStep(purposeLogin, s.sessions.Browser(w, r), form.Get("step"), &state); err != nil {
		s.showStale(w, r)
		return
	}
	if s.cfg.NoLocalLogin {
		s.showError(w, r, http.StatusForbidden, errNoPasswords)
		return
	}
	from := s.networks(r)
	attempt := users.Attempt{
		Name:        form.Get("username"),
		Password:    form.Get("password"),
		Network:     from[0],
		Wider:       from[1:],
		KnownDevice: s.sessions.Knows(r, form.Get("username")),
	}
	begun, err := s.login(r.Context(), attempt, state)
	if err != nil {
		s.showLoginProblem(w, r, state, attempt.Name, err)
		return
	}
	s.sessions.SetCookie(w, begun)
	s.sessions.Remember(w, attempt.Name)
	http.Redirect(w, r, s.destination(state), http.StatusSeeOther)
}

var errNoPasswords = oauth.NewError(oauth.AccessDenied, "Signing in with a password is turned off on this server.")

// destination is where somebody who has signed in was going.
func (s *Server) destination(state loginState) string {
	switch {
	case state.Query != "":
		return s.paths.authorize + "?" + resumed(requested(state.Query))
	case state.Connect != "":
		return s.paths.connect + state.Connect
	}
	return s.paths.home
}

// requested is as much of an authorization request as coming back to it takes.
func requested(query string) authorization {
	a := authorization{query: query}
	a.prompt = strings.Fields(a.values().Get("prompt"))
	return a
}

// login authenticates a person and stores the new session. The session is always a
// new one, so that an id planted before the login is worth nothing.
func (s *Server) login(ctx context.Context, a users.Attempt, state loginState) (session.Minted, error) {
	s.noteClient(ctx, state)
	u, err := s.users.Authenticate(ctx, a)
	if err != nil {
		return session.Minted{}, err
	}
	fresh := s.sessions.Mint(u.ID)
	switch err := s.cfg.Store.PutSession(ctx, fresh.Session, u.PasswordHash); {
	case errors.Is(err, storage.ErrNotFound): // the password was changed in between
		return session.Minted{}, users.ErrWrong
	case err != nil:
		return session.Minted{}, refusal.Unavailable(err)
	}
	return fresh, nil
}

// noteClient has the log say which application somebody signs in for.
func (s *Server) noteClient(ctx context.Context, state loginState) {
	id := requested(state.Query).values().Get("client_id")
	if id == "" {
		return
	}
	audit.Note(ctx, slog.String("client_id", id))
	if c, err := s.clients.Find(ctx, id); err == nil {
		audit.Note(ctx, audit.Client(c))
	}
}

func (s *Server) showLoginProblem(w http.ResponseWriter, r *http.Request, state loginState, name string, err error) {
	var throttled *users.ThrottledError
	switch {
	case errors.As(err, &throttled):
		w.Header().Set("Retry-After", retryAfter(throttled.RetryAfter))
		s.showLoginAgain(w, r, http.StatusTooManyRequests, state, name,
			tooMany(throttled.Counted)+" Please wait "+humanWait(throttled.RetryAfter)+" and try again.")
	case errors.Is(err, users.ErrWrong):
		s.showLoginAgain(w, r, http.StatusUnauthorized, state, name, "The username or password is not right. Please try again.")
	default:
		s.showError(w, r, http.StatusServiceUnavailable, err)
	}
}

// tooMany says of what there are too many attempts: who reads that it is their account
// believes that somebody is after it.
func tooMany(counted users.Counted) string {
	switch counted {
	case users.ByNetwork:
		return "Too many attempts from your network."
	case users.ByServer:
		return "Too many people are signing in at once."
	}
	return "Too many attempts for this account."
}

// showLoginAgain renders the login page for the request that it belongs to, as far as
// that can be known before somebody has signed in.
func (s *Server) showLoginAgain(w http.ResponseWriter, r *http.Request, status int, state loginState, name, problem string) {
	if state.Query == "" {
		s.showLogin(w, r, status, decision{}, state, name, problem)
		return
	}
	query, _ := url.ParseQuery(state.Query) // we sealed it
	d := s.decide(r.Context(), form.New(query), storage.Hash{})
	if d.err != nil {
		s.writeDecision(w, r, d)
		return
	}
	s.showLogin(w, r, status, d, state, name, problem)
}

// handleLogout serves POST /logout.
func (s *Server) handleLogout(w http.ResponseWriter, r *http.Request) {
	form, ok := s.readPageForm(w, r)
	if !ok {
		return
	}
	var state loginState
	if err := s.sessions.OpenStep(purposeLogout, s.sessions.Browser(w, r), form.Get("step"), &state); err != nil {
		s.showStale(w, r)
		return
	}
	if token, ok := s.sessions.Token(r); ok {
		if err := s.signOut(r.Context(), token); err != nil {
			s.showError(w, r, http.StatusServiceUnavailable, err)
			return
		}
	}
	s.sessions.Clear(w)
	switch {
	case state.Query != "":
		http.Redirect(w, r, s.paths.authorize+"?"+s.asSomebodyElse(state.Query), http.StatusSeeOther)
	case state.Connect != "":
		http.Redirect(w, r, s.paths.connect+state.Connect, http.StatusSeeOther)
	default:
		s.pages.SignedOut(w)
	}
}

func (s *Server) signOut(ctx context.Context, token storage.Hash) error {
	v, err := s.visit(ctx, token, storage.VisitKey{})
	if err != nil {
		return err
	}
	if err := s.cfg.Store.EndSession(ctx, token, s.cfg.Now()); err != nil {
		return refusal.Unavailable(err)
	}
	if v != nil {
		s.cfg.Audit.Record(ctx, audit.LoggedOut, audit.Person(v.User.ID, v.User.Name))
	}
	return nil
}

// asSomebodyElse is a request for which another person signs in. A provider has a session
// of its own and would send the same one back, if it were not told to ask.
func (s *Server) asSomebodyElse(query string) string {
	if s.cfg.Delegation == nil {
		return query
	}
	a := requested(query)
	v := a.values()
	v.Set(paramProvider, anyProvider)
	if !slices.Contains(a.prompt, "select_account") {
		v.Set("prompt", strings.Join(append(a.prompt, "select_account"), " "))
	}
	return v.Encode()
}

// networks are where a request comes from, as it is counted: the smallest first.
func (s *Server) networks(r *http.Request) []string {
	return network.Blocks(s.cfg.TrustedProxies.ClientAddr(r))
}

func humanWait(d time.Duration) string {
	if d <= time.Minute {
		return "a minute"
	}
	return d.Round(time.Minute).String()
}
