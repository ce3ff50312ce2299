package assembly

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

// TestConsoleProviderGroups: RU-19: the people of a provider are put into a group by a form, and the page of one says
// by which provider group the person is in it.
func TestConsoleProviderGroups(t *testing.T) {
	t.Parallel()
	const server = "https://notes.example.com/mcp"
	up := fakeidp.Start(t)
	alice := fakeidp.Alice
	alice.Claims = map[string]any{"groups": []string{"All Engineers"}}
	up.SetPeople(alice)
	s := consoled(t, func(c *config.Loaded) {
		c.ThirdParty = []config.Connector{{
			ID: "corp", Type: "oidc", Name: "Corp", Issuer: up.URL, ClientID: up.ClientID,
			ClientSecret: config.Secret(up.ClientSecret),
		}}
		c.Resources = []config.Resource{{
			URI: server, Name: "Notes", Scopes: []storage.ScopeText{{Name: "notes", Default: true}},
			Access: []config.AccessRule{{Group: "staff", All: true}},
		}}
	})
	name := signInAtCorp(t, s, up)
	b := browse(t, s.Handler())
	shown := b.at("/admin/user/show?name="+name, "alice")
	wantPage(t, shown, 200, "", server, "the person is in none of them")
	ask := b.get("/admin/group/add")
	wantPage(t, ask, 200, "/admin/group/add", "the provider&#39;s ID")
	done := b.send(ask, "/admin/group/add", "group", "staff", "provider", "corp", "provider_group", "All Engineers")
	wantPage(t, done, 200, "", "The group was changed.")
	wantPage(t, b.get("/admin/group/show?group=staff"), 200, "", "Members through identity providers", "All Engineers")
	shown = b.get("/admin/user/show?name=" + name)
	wantPage(t, shown, 200, "", "Groups through identity providers", "All Engineers", server, "group staff")
}

// signInAtCorp signs a person in at the provider, without a browser here, and returns the name of the account.
func signInAtCorp(t *testing.T, s *Server, up *fakeidp.Upstream) string {
	t.Helper()
	left, err := s.delegation.Depart(t.Context(),
		delegation.Request{Provider: "corp", Purpose: delegation.PurposeSignIn, Payload: []byte("a request")})
	if err != nil {
		t.Fatal(err)
	}
	back, err := up.Visit(left.URL)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Millisecond)
	came, err := s.delegation.Return(t.Context(), delegation.AuthorizationResponse{
		Provider: "corp", Params: back.Query(), Binding: left.Binding, Session: storage.Session{
			Hash: secrets.Hash(secrets.Token("")), AuthTime: now, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return came.User.Name
}
