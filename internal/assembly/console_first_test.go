package assembly

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestConsoleFirstSteps checks that the console of a new installation lists the first steps and ticks
// off those that are done, that a role that cannot take them does not see them, and that they are gone
// once a client is connected (OB-10).
func TestConsoleFirstSteps(t *testing.T) {
	s := consoled(t, nil)
	bob, err := s.Auth.Users().Find(t.Context(), "bob")
	if err == nil {
		err = s.parts.Store.SetRole(t.Context(), bob.ID, "auditor")
	}
	if err != nil {
		t.Fatal(err)
	}
	b := browse(t, s.Handler())
	b.at("/admin", "alice")
	wantPage(t, b.get("/admin"), 200, "/admin", "First steps", `<a href="/admin/resource/add">Add an MCP server</a>`,
		`<span class="unseen">Done: </span><strong>Invite a user`, "<strong>Connect a client")
	b.send(b.get("/admin/resource/add"), "/admin/resource/add", "uri", "https://notes.example.com/mcp")
	wantPage(t, b.get("/admin"), 200, "/admin", "First steps",
		`<span class="unseen">Done: </span><strong>Add an MCP server`, "<strong>Connect a client")
	if p := browse(t, s.Handler()).at("/admin", "bob"); !strings.Contains(p.body, "Needs attention") ||
		strings.Contains(p.body, "First steps") {
		t.Errorf("OB-10: an auditor has the first steps, or no overview: %.3000s", p.body)
	}
	granted(t, s, "https://notes.example.com/mcp")
	if p := b.get("/admin"); !strings.Contains(p.body, "Needs attention") ||
		strings.Contains(p.body, "First steps") {
		t.Errorf("OB-10: there are first steps after a client was connected: %.3000s", p.body)
	}
}

// granted stores a grant for an MCP server.
func granted(t *testing.T, s *Server, uri string) {
	t.Helper()
	ctx, store, now := t.Context(), s.parts.Store, time.Now()
	u, err := s.Auth.Users().Find(ctx, "carol")
	if err != nil {
		t.Fatal(err)
	}
	session := secrets.Hash("session")
	if err := store.PutSession(ctx, storage.Session{
		Hash: session, UserID: u.ID, AuthTime: now, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}, storage.SignInStart{}); err != nil {
		t.Fatal(err)
	}
	client := storage.Client{
		ID: secrets.ID("mcp_"), Name: "Notes", RedirectURIs: []string{"https://app.example/cb"},
		GrantTypes: []string{oauth.GrantCode}, AuthMethod: "none", Source: storage.SourceDynamic, CreatedAt: now,
	}
	grant := storage.Grant{
		ID: secrets.ID("grt_"), ClientID: client.ID, UserID: u.ID, Resource: uri, CreatedAt: now,
		Scopes: oauth.Scopes{"mcp"}, AuthTime: now, ExpiresAt: now.Add(time.Hour),
	}
	code := storage.Code{Hash: secrets.Hash("code"), Challenge: "c", ExpiresAt: now.Add(time.Minute)}
	if err := store.Approve(ctx, storage.Approval{
		Session: session, Client: &client, Material: client.Material(), Grant: grant, Code: code, Now: now,
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.RedeemCode(ctx, storage.RedeemCode{
		Hash: code.Hash, GrantID: grant.ID, ClientID: client.ID, Challenge: code.Challenge, Now: now,
	}); err != nil {
		t.Fatal(err)
	}
}
