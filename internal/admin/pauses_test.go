package admin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestPauses checks that administrators see and end pauses without a grant, and cannot remove
// scopes that a server requires (EN-02).
func TestPauses(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	s, ctx := newService(t, now), t.Context()
	s.Config = &config.Loaded{Config: &config.Config{}}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const server = "https://mcp.example/mcp"
	check(s.Store.AddResource(ctx, storage.Resource{
		URI: server, Name: "Notes", CreatedAt: now,
		Scopes: []storage.ScopeText{
			{Name: "mcp", Description: "use it", Required: true}, {Name: "notes:read", Description: "read"},
			{Name: "notes:write", Description: "write"},
		},
	}))
	u := storage.User{ID: secrets.ID("usr_"), Name: "alice", CreatedAt: now}
	check(s.Store.CreateUser(ctx, u))
	session := secrets.Hash("session")
	check(s.Store.PutSession(ctx, storage.Session{
		Hash: session, UserID: u.ID, AuthTime: now, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}, storage.SignInStart{}))
	client := storage.Client{
		ID: secrets.ID("mcp_"), Name: "Claude", RedirectURIs: []string{"https://app.example/cb"},
		GrantTypes: []string{oauth.GrantCode}, AuthMethod: "none", Source: storage.SourceDynamic, CreatedAt: now,
	}
	grant := storage.Grant{
		ID: secrets.ID("grt_"), ClientID: client.ID, UserID: u.ID, Resource: server, CreatedAt: now,
		Scopes: oauth.Scopes{"mcp", "notes:read", "notes:write"}, AuthTime: now, ExpiresAt: now.Add(time.Hour),
	}
	code := storage.Code{Hash: secrets.Hash("code"), Challenge: "c", ExpiresAt: now.Add(time.Minute)}
	check(s.Store.Approve(ctx, storage.Approval{
		Session: session, Client: &client, Material: client.Material(), Grant: grant, Code: code, Now: now,
	}))
	_, err := s.Store.RedeemCode(ctx, storage.RedeemCode{
		Hash: code.Hash, GrantID: grant.ID, ClientID: client.ID, Challenge: code.Challenge, Now: now,
	})
	check(err)
	for _, to := range [][]string{{"notes:read"}, {}} {
		_, err := admin.GrantNarrow.Do(ctx, s.Operator(), admin.LessGrant{ID: grant.ID, Scopes: to})
		if !errors.Is(err, admin.ErrInvalid) || !strings.Contains(err.Error(), `"mcp" cannot be left out`) {
			t.Errorf("EN-02 P-L1: narrowed to %q: %v", to, err)
		}
	}
	less := admin.LessGrant{ID: grant.ID, Scopes: []string{"mcp", "notes:read"}}
	left, err := admin.GrantNarrow.Do(ctx, s.Operator(), less)
	if check(err); left.Scope != "mcp notes:read" {
		t.Errorf("got %q", left.Scope)
	}
	_, err = admin.GrantPause.Do(ctx, s.Operator(), admin.GrantID{ID: grant.ID})
	check(err)
	check(s.Store.DeleteClient(ctx, client.ID, now))
	paused, err := admin.GrantPauses.Do(ctx, s.Operator(), admin.PausesWanted{User: "alice"})
	if check(err); len(paused.Items) != 1 || paused.Items[0].ClientName != "Claude" ||
		paused.Items[0].Resource != server {
		t.Fatalf("EN-02: got %+v", paused.Items)
	}
	held, err := admin.GrantCounted.Do(ctx, s.Operator(), admin.Which{User: "alice", Resource: server})
	if check(err); held.Grants != 0 || held.Pauses != 1 {
		t.Errorf("EN-01: got %+v, want one pause", held)
	}
	elsewhere := admin.GrantsToEnd{Which: admin.Which{User: "alice", Resource: "https://other.example/mcp"}}
	if _, err := admin.GrantRevokeMany.Do(ctx, s.Operator(), elsewhere); !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("EN-01: no pause and no grant: %v", err)
	}
	end := admin.PauseID{ID: paused.Items[0].ID}
	_, err = admin.PauseEnd.Do(ctx, s.Operator(), end)
	check(err)
	if _, err := admin.PauseEnd.Do(ctx, s.Operator(), end); !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("EN-02: a pause that has ended: %v", err)
	}

	again, code2 := grant, code
	client.ID, again.ID, code2.Hash = secrets.ID("mcp_"), secrets.ID("grt_"), secrets.Hash("code 2")
	again.ClientID = client.ID
	check(s.Store.Approve(ctx, storage.Approval{
		Session: session, Client: &client, Material: client.Material(), Grant: again, Code: code2, Now: now,
	}))
	_, err = s.Store.RedeemCode(ctx, storage.RedeemCode{
		Hash: code2.Hash, GrantID: again.ID, ClientID: client.ID, Challenge: code2.Challenge, Now: now,
	})
	check(err)
	check(s.Store.PauseGrant(ctx, u.ID, again.ID, now))
	check(s.Store.RevokeGrant(ctx, again.ID, storage.ByClient, now))
	ended, err := admin.GrantRevokeMany.Do(ctx, s.Operator(), admin.GrantsToEnd{Which: admin.Which{User: "alice"}})
	if check(err); ended.Pauses != 1 || ended.Grants != 0 {
		t.Errorf("EN-01: only a pause was there: got %+v", ended)
	}
	if left, err := s.Store.Pauses(ctx, u.ID); err != nil || len(left) != 0 {
		t.Errorf("EN-01: %d pauses are left, %v", len(left), err)
	}
}
