package storagetest

import (
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
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

// withdrawnApplications: RU-18, PE-09: a person ends all connections of an application at once, at every MCP server,
// with what the operator has merged. Another application keeps its own, and so does another person.
func withdrawnApplications(t *testing.T, e *env) {
	p, cl := e.person(t), e.client()
	connect := func(p person, cl storage.Client, resource string) storage.Approval {
		a := e.approval(p)
		cl.ID = secrets.ID("mcp_")
		a.Client, a.Grant.ClientID, a.Grant.Resource, a.Remembered = &cl, cl.ID, resource, nil
		check(t, e.s.Approve(e.ctx, a))
		e.redeem(t, e.redemption(a))
		return a
	}
	const elsewhere = "https://elsewhere.example/mcp"
	namesake, other := cl, cl
	namesake.RedirectURIs = []string{"https://" + secrets.ID("h") + ".example/cb"}
	other.Name = secrets.ID("Other ")
	here, there := connect(p, cl, elsewhere), connect(p, cl, "https://mcp.example/mcp")
	merged, paused := connect(p, namesake, elsewhere), connect(p, cl, "https://paused.example/mcp")
	others := []storage.Approval{connect(p, other, elsewhere), connect(e.person(t), cl, elsewhere)}
	live := func(want bool, of ...storage.Approval) {
		t.Helper()
		for _, a := range of {
			e.wantLive(t, a, want)
		}
		for _, a := range others {
			e.wantLive(t, a, true)
		}
	}
	keys := func(of ...storage.Approval) []string {
		t.Helper()
		ids := []string{"mcp_none"}
		for _, a := range of {
			ids = append(ids, a.Grant.ClientID)
		}
		found, err := e.s.ApplicationKeys(e.ctx, ids)
		check(t, err)
		same(t, found["mcp_none"], "mcp_none")
		out := []string{}
		for _, id := range ids[1:] {
			out = append(out, found[id])
		}
		return out
	}
	key, alias := cl.Application(), namesake.Application()
	same(t, keys(here, there, merged), []string{key, key, alias})
	check(t, e.s.MergeApplications(e.ctx, alias, key, e.now))
	same(t, keys(here, merged, others[0]), []string{key, key, other.Application()})
	late := connect(p, namesake, elsewhere) // it is filed when its grant is looked for
	same(t, keys(late), []string{key})
	check(t, e.s.PauseGrant(e.ctx, p.ID, paused.Grant.ID, e.now))

	n, err := e.s.WithdrawApplication(e.ctx, merged.Grant.ID, storage.ByPerson, e.now)
	check(t, err)
	same(t, n, 5)
	live(false, here, there, merged, paused, late)
	e.wantForgotten(t, here)
	e.wantForgotten(t, merged)
	pauses, err := e.s.Pauses(e.ctx, p.ID)
	check(t, err)
	same(t, len(pauses), 0)
	for range 2 {
		n, err = e.s.WithdrawApplication(e.ctx, merged.Grant.ID, storage.ByPerson, e.now)
		check(t, err)
		same(t, n, 0)
	}
	_, err = e.s.WithdrawApplication(e.ctx, "gr_none", storage.ByPerson, e.now)
	check(t, err)
}
