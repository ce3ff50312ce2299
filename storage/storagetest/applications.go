package storagetest

import (
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// applicationPauses connects a user through two registrations of one application, and through
// another application. A change to one connection applies to all of its application, and to no
// other.
func applicationPauses(t *testing.T, e *env) {
	p := e.person(t)
	connect := func(cl storage.Client, scopes ...string) storage.Approval {
		a := e.approval(p)
		a.Client, a.Grant.ClientID, a.Grant.Scopes = &cl, cl.ID, scopes
		check(t, e.s.Approve(e.ctx, a))
		e.redeem(t, e.redemption(a))
		return a
	}
	cl := e.client()
	again, other, elsewhere := cl, cl, cl
	again.ID, other.ID, elsewhere.ID = secrets.ID("mcp_"), secrets.ID("mcp_"), secrets.ID("mcp_")
	again.RedirectURIs = []string{"http://localhost:4711/callback"} // another port of this host
	other.Name, elsewhere.RedirectURIs = "Other", []string{"https://other.example/cb"}
	first, second := connect(cl, "mcp", "notes:write"), connect(again, "mcp", "notes:write", "more")
	only := connect(again, "notes:write")
	foreign := []storage.Approval{connect(other, "mcp", "notes:write"), connect(elsewhere, "mcp", "notes:write")}
	live := func(want bool, of ...storage.Approval) {
		t.Helper()
		for _, a := range of {
			e.wantLive(t, a, want)
		}
		for _, a := range foreign {
			e.wantLive(t, a, true)
		}
	}
	silent := func(cl storage.Client) error {
		a := e.approval(p)
		a.Client, a.Grant.ClientID, a.Grant.Scopes = &cl, cl.ID, oauth.Scopes{"mcp"}
		a.Remembered = oauth.Scopes{"mcp"}
		return e.s.Approve(e.ctx, a)
	}
	check(t, e.s.PauseGrant(e.ctx, p.ID, first.Grant.ID, e.now))
	live(false, first, second, only)
	wantErr(t, silent(cl), storage.ErrPaused)
	wantErr(t, silent(again), storage.ErrPaused)
	wantErr(t, silent(other), nil)
	check(t, e.s.ResumeGrant(e.ctx, p.ID, second.Grant.ID, e.now))
	live(true, first, second, only)

	check(t, e.s.NarrowGrant(e.ctx, p.ID, first.Grant.ID, oauth.Scopes{"mcp", "more"}, e.now))
	same(t, e.state(t, first).Scopes, oauth.Scopes{"mcp"})
	same(t, e.state(t, second).Scopes, oauth.Scopes{"mcp", "more"})
	live(true, first, second)
	live(false, only) // it would keep no scope

	check(t, e.s.WithdrawGrant(e.ctx, first.Grant.ID, storage.ByPerson, e.now))
	live(false, first, second, only)
}
