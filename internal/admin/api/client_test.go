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

// presenting adds a token.
type presenting string

func (p presenting) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(p))
	return http.DefaultTransport.RoundTrip(r)
}

// TestClient checks that an operation does the same through the API of another server (OB-10).
func TestClient(t *testing.T) {
	r := newRig(t)
	r.person("root", admin.Administrator, "admin:write", time.Minute)
	r.person("alice", "", "", time.Minute)
	r.person("audit", admin.Auditor, "admin:write", time.Minute)
	server := httptest.NewServer(r.mux)
	defer server.Close()
	by := func(token string) admin.Caller {
		return &api.Client{Root: server.URL + "/api/v1", HTTP: &http.Client{Transport: presenting(token)}}
	}
	u, err := admin.UserSetRole.Do(t.Context(), by("root"), admin.UserRole{Name: "alice", Role: "support"})
	if err != nil || u.Role != admin.Support {
		t.Errorf("set-role: got %+v, %v", u, err)
	}
	all, err := admin.Everything(func(p admin.Paging) (admin.Page[admin.User], error) {
		p.Limit = 1
		return admin.UserList.Do(t.Context(), by("root"), admin.Searched{Paging: p})
	})
	if err != nil || len(all) != 3 {
		t.Errorf("list: got %+v, %v", all, err)
	}
	role := func(token, name, role string) error {
		_, err := admin.UserSetRole.Do(t.Context(), by(token), admin.UserRole{Name: name, Role: role})
		return err
	}
	for want, got := range map[error]error{
		admin.ErrForbidden: role("audit", "alice", "none"),
		admin.ErrNotFound:  role("root", "nobody", "none"),
		admin.ErrConflict:  role("root", "root", "none"),
		admin.ErrInvalid:   role("root", "alice", "king"),
	} {
		if !errors.Is(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	var other *api.RemoteError
	if err := role("nonsense", "alice", "none"); !errors.As(err, &other) || other.Status != 401 {
		t.Errorf("a bad token: got %v", err)
	}
}

// TestProposals checks that an operation that needs two administrators is answered with 202 and a
// proposal (OB-10). A second administrator can accept it. A retry with the same key returns the
// same proposal.
func TestProposals(t *testing.T) {
	r := newRig(t)
	r.service.Two = []string{"user disable"}
	r.person("root", admin.Administrator, "admin:write", time.Minute)
	r.person("anna", admin.Administrator, "admin:write", time.Minute)
	r.person("bob", "", "", time.Minute)
	const path = "/users/bob/disable"
	first := r.do("root", "POST", path, "", "Idempotency-Key", "k")
	again := r.do("root", "POST", path, "", "Idempotency-Key", "k")
	var p admin.Proposal
	if err := json.Unmarshal(first.Body.Bytes(), &p); err != nil || first.Code != 202 || p.State != "open" ||
		again.Code != 202 || again.Body.String() != first.Body.String() {
		t.Fatalf("OB-10: got %d %s, then %d %s", first.Code, first.Body, again.Code, again.Body)
	}
	server := httptest.NewServer(r.mux)
	defer server.Close()
	by := func(token string) admin.Caller {
		return &api.Client{Root: server.URL + "/api/v1", HTTP: &http.Client{Transport: presenting(token)}}
	}
	var proposed *admin.ProposedError
	_, err := admin.UserDisable.Do(t.Context(), by("root"), admin.UserName{Name: "bob"})
	if !errors.As(err, &proposed) || proposed.Proposal.Operation != "user disable" {
		t.Errorf("OB-10: the client says %v", err)
	}
	r.is(r.do("root", "POST", "/proposals/"+p.ID+"/accept", ""), 403, "forbidden")
	done, err := admin.ProposalAccept.Do(t.Context(), by("anna"), admin.ProposalID{ID: p.ID})
	output, _ := done.Output.(map[string]any)
	if err != nil || done.State != "accepted" || output["disabled"] != true {
		t.Errorf("OB-10: accepted: %+v, %v", done, err)
	}
	r.is(r.do("anna", "POST", "/proposals/"+p.ID+"/accept", ""), 409, "conflict")
}
