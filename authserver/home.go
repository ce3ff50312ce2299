package authserver

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/delegation"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// home is what the start page shows.
type home struct {
	visit      *storage.Visit // nil: nobody is signed in
	resources  []storage.Resource
	identities []storage.Identity
	farewell   string
}

// handleHome serves the start page.
func (s *Server) handleHome(w http.ResponseWriter, r *http.Request) {
	token, _ := s.sessions.Token(r)
	h, err := s.home(r.Context(), token)
	if err != nil {
		s.showError(w, r, http.StatusServiceUnavailable, err)
		return
	}
	s.showHome(w, r, h)
}

func (s *Server) home(ctx context.Context, token storage.Hash) (h home, err error) {
	if h.visit, err = s.visit(ctx, token, storage.VisitKey{}); err != nil {
		return h, err
	}
	catalog, err := s.catalog.Load(ctx)
	if err != nil {
		return h, refusal.Unavailable(err)
	}
	h.resources = catalog.Resources()
	switch {
	case h.visit == nil:
		h.farewell = s.farewell(ctx, token)
	case s.cfg.Accounts != nil:
		h.identities, err = s.cfg.Accounts.Identities(ctx, h.visit.User.ID)
	}
	return h, refusal.Protocol(err)
}

func (s *Server) showHome(w http.ResponseWriter, r *http.Request, h home) {
	browser := s.sessions.Browser(w, r)
	v := web.Home{Issuer: s.cfg.Issuer, SignOutAction: s.paths.logout, Farewell: h.farewell, FormTargets: s.ways().targets()}
	for _, res := range h.resources {
		v.Resources = append(v.Resources, resourceParty(res))
	}
	var err error
	if h.visit == nil {
		if s.passwords.offered(r.Context()) {
			v.SignInURL = s.paths.login
		}
		v.SignIn, err = s.choices(browser, loginState{})
	} else {
		v.Username = h.visit.User.Name
		if v.Step, err = s.sessions.SealStep(purposeLogout, browser, loginState{}); err == nil {
			err = s.showAccounts(&v, browser, h)
		}
	}
	if err != nil {
		s.showError(w, r, http.StatusInternalServerError, err)
		return
	}
	s.pages.Home(w, v)
}

// disconnectState is what the form that unties an account carries along, sealed and bound
// to the browser.
type disconnectState struct {
	UserID    string `json:"u"`
	Connector string `json:"c"`
	Subject   string `json:"s"`
}

// showAccounts fills in what is connected, and what else could be.
func (s *Server) showAccounts(v *web.Home, browser string, h home) error {
	if s.cfg.Accounts == nil {
		return nil
	}
	connected := map[string]bool{}
	only := len(h.identities) == 1 && (h.visit.User.PasswordHash == "" || s.cfg.NoLocalLogin)
	for _, id := range h.identities {
		connected[id.Connector] = true
		p, ok := s.ways().provider(id.Connector)
		if !ok { // taken out of the configuration
			p = delegation.Provider{Name: id.Connector}
		}
		a := web.Account{Provider: providerView(p), Label: id.Label, Action: s.paths.disconnect}
		if !only {
			var err error
			if a.Step, err = s.sessions.SealStep(purposeDisconnect, browser, disconnectState{h.visit.User.ID, id.Connector, id.Subject}); err != nil {
				return err
			}
		}
		v.Accounts = append(v.Accounts, a)
	}
	for _, p := range s.ways().providers {
		if connected[p.ID] {
			continue
		}
		c, err := s.choice(browser, p, departState{Errand: delegation.PurposeLink, UserID: h.visit.User.ID})
		if err != nil {
			return err
		}
		v.Connect = append(v.Connect, c)
	}
	return nil
}

// handleDisconnect serves POST /disconnect.
func (s *Server) handleDisconnect(w http.ResponseWriter, r *http.Request) {
	form, ok := s.readPageForm(w, r)
	if !ok {
		return
	}
	var state disconnectState
	if err := s.sessions.OpenStep(purposeDisconnect, s.sessions.Browser(w, r), form.Get("step"), &state); err != nil || s.cfg.Accounts == nil {
		s.showStale(w, r)
		return
	}
	token, _ := s.sessions.Token(r)
	if err := s.disconnect(r.Context(), state, token); err != nil {
		s.showError(w, r, pageStatus(oauth.AsError(err)), err)
		return
	}
	http.Redirect(w, r, s.paths.home, http.StatusSeeOther)
}

func (s *Server) disconnect(ctx context.Context, state disconnectState, token storage.Hash) error {
	if err := s.isStill(ctx, token, state.UserID); err != nil {
		return err
	}
	err := s.cfg.Accounts.Disconnect(ctx, state.UserID, state.Connector, state.Subject)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil // it is what the person wants
	case errors.Is(err, storage.ErrSpent):
		return oauth.NewError(oauth.AccessDenied, "This is the only way that you sign in. Connect another account first.").Because(err)
	}
	return refusal.Protocol(err)
}
