package api_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
)

// TestRoleAgainstTheThing checks that support cannot act on an account with a role over HTTP, and
// that a refusal leaves the proposal open (EN-06).
func TestRoleAgainstTheThing(t *testing.T) {
	r := newRig(t)
	r.person("root", admin.Administrator, "admin:write", time.Minute)
	r.person("anna", admin.Administrator, "admin:write", time.Minute)
	r.person("sue", admin.Support, "admin:write", time.Minute)
	if w := r.do("root", "POST", "/users/new/invitation", `{"role":"administrator"}`); w.Code != 200 {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	r.is(r.do("sue", "POST", "/users/new/invitation", `{}`), 403, "forbidden")
	r.is(r.do("sue", "DELETE", "/users/new/links", ""), 403, "forbidden")
	r.is(r.do("sue", "POST", "/users", `{"name":"new","password":"correct horse battery"}`), 403, "forbidden")
	r.is(r.do("sue", "POST", "/users", `{"name":"usr_x","password":"correct horse battery"}`), 400, "invalid")
	r.service.Two = []string{"user disable"}
	w := r.do("root", "POST", "/users/anna/disable", "")
	var p admin.Proposal
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 202 {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	r.is(r.do("sue", "POST", "/proposals/"+p.ID+"/accept", ""), 403, "forbidden")
	r.is(r.do("sue", "POST", "/proposals/"+p.ID+"/decline", ""), 403, "forbidden")
	if w := r.do("anna", "POST", "/proposals/"+p.ID+"/accept", ""); w.Code != 200 {
		t.Errorf("EN-06: the proposal was used up: %d %s", w.Code, w.Body)
	}
}

// TestProposalsAboutNothingYet checks that operations on objects that do not exist yet can be
// proposed over HTTP and with --remote (EN-07).
func TestProposalsAboutNothingYet(t *testing.T) {
	r := newRig(t)
	r.service.Two = []string{"user invite", "user links withdraw"}
	r.person("root", admin.Administrator, "admin:write", time.Minute)
	r.person("anna", admin.Administrator, "admin:write", time.Minute)
	server := httptest.NewServer(r.mux)
	defer server.Close()
	by := func(token string) admin.Caller {
		return &api.Client{Root: server.URL + "/api/v1", HTTP: &http.Client{Transport: presenting(token)}}
	}
	propose := func(what string, err error) {
		t.Helper()
		var p *admin.ProposedError
		if !errors.As(err, &p) {
			t.Fatalf("EN-07: %s: %v, want a proposal", what, err)
		}
		if _, err := admin.ProposalAccept.Do(t.Context(), by("anna"), admin.ProposalID{ID: p.Proposal.ID}); err != nil {
			t.Errorf("EN-07: %s: %v", what, err)
		}
	}
	_, err := admin.UserInvite.Do(t.Context(), by("root"), admin.Invitation{Name: "new"})
	propose("user invite", err)
	_, err = admin.UserLinksWithdraw.Do(t.Context(), by("root"), admin.UserName{Name: "new"})
	propose("user links withdraw", err)
	r.is(r.do("root", "DELETE", "/users/new/links", ""), 404, "not-found")
}
