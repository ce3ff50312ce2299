package authserver

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/mcp-authd/mcp-authd/authserver/internal/account"
	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// confirmAccount shows the account that an application is about to get access to (RU-15).
func (s *steps) confirmAccount(w http.ResponseWriter, r *http.Request, step flow.ConfirmAccount) {
	a, v := step.Request, step.Visit
	sealed, err := s.forms.seal(w, r, purposeConfirm, step.Form)
	if err != nil {
		s.errors.show(w, r, http.StatusBadRequest, err)
		return
	}
	id, err := s.accounts.of(r.Context(), v.Session)
	if err != nil {
		s.errors.show(w, r, http.StatusServiceUnavailable, err)
		return
	}
	provider, _ := s.views.flow.Options.Provider(cmp.Or(id.Connector, step.Form.Provider))
	out := pages.Confirm{
		Action: s.views.paths.consent, Step: sealed,
		Request:  s.views.request(a, step.Question(), false),
		Username: v.User.Name, Provider: providerView(provider), Label: id.Label,
	}
	if step.Form.Provider == "" {
		out.AnotherURL = s.views.paths.request(a.Query.Choosing())
	}
	request.Of(r.Context()).Showing("account page")
	s.web.For(r).Confirm(w, out)
}

// sessionAccounts finds the provider account that began a session.
type sessionAccounts struct {
	store interface {
		Upstream(ctx context.Context, id string) (storage.Upstream, error)
	}
	identities account.Identities // nil without providers
}

// of returns that account, without a Label if the provider sent none.
func (a *sessionAccounts) of(ctx context.Context, s storage.Session) (storage.Identity, error) {
	if a.identities == nil {
		return storage.Identity{}, nil
	}
	up, err := a.store.Upstream(ctx, s.UpstreamID)
	if err != nil {
		return storage.Identity{}, err
	}
	all, err := a.identities.Identities(ctx, s.UserID)
	i := slices.IndexFunc(all, func(id storage.Identity) bool {
		return id.Connector == up.Connector && id.Subject == up.Subject
	})
	if err != nil || i < 0 {
		return storage.Identity{Connector: up.Connector}, err
	}
	return all[i], nil
}
