package authserver

import (
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/authserver/internal/account"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// changeWay serves POST /account/ways: it renames or removes an authentication method.
func (p *accountPages) changeWay(w http.ResponseWriter, r *http.Request) {
	f, ok := p.ways.owner(w, r, pageAccount, purposeWay)
	if !ok {
		return
	}
	var err error
	switch f.Get("act") {
	case "rename":
		err = p.ways.enrol.RenameWay(r.Context(), f.by, f.WayForm, f.Get("name"))
	case "remove":
		err = p.ways.enrol.RemoveWay(r.Context(), f.by, f.WayForm)
	default:
		p.forms.errors.stale(w, r)
		return
	}
	if errors.Is(err, ways.ErrName) { // an empty name changes nothing
		err = nil
	}
	p.changedWays(w, r, err)
}

// disconnect serves POST /disconnect.
func (p *accountPages) disconnect(w http.ResponseWriter, r *http.Request) {
	var form account.DisconnectForm
	if _, ok := p.forms.open(w, r, purposeDisconnect, &form); !ok {
		return
	}
	if p.accounts.Identities == nil {
		p.forms.errors.stale(w, r)
		return
	}
	p.changedWays(w, r, p.accounts.DisconnectIdentity(r.Context(), form, p.forms.token(r)))
}

// changedWays shows the account page after a change of authentication methods.
func (p *accountPages) changedWays(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, storage.ErrLast):
		p.show(w, r, refusedProof{status: http.StatusConflict, problem: pages.Say("ways.last")})
	case err != nil:
		p.ways.prove.refused(w, r, pageAccount, refusal.Protocol(err))
	default:
		redirect(w, p.ways.atWays())
	}
}
