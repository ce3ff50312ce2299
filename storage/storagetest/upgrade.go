package storagetest

import (
	"context"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// Upgrade checks that what the first schema held is served by this version. exec runs a
// statement, with ? for each argument, on a database with the first step alone; open then
// opens and migrates it.
func Upgrade(t *testing.T, exec func(query string, args ...any), open func() storage.Store) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	at, far := now.UnixMilli(), now.Add(24*time.Hour).UnixMilli()
	session, code, refresh := randomHash(), randomHash(), randomHash()

	exec(`INSERT INTO clients (id, name, redirect_uris, grant_types, auth_method, source, created_at, last_used_at)
		VALUES ('old client', 'Old', '["http://127.0.0.1/cb"]', '["authorization_code","refresh_token"]', 'none', 'dynamic', ?, ?)`, at, at)
	exec("INSERT INTO clients (id, created_at, deleted_at) VALUES ('gone', ?, ?)", at, at)
	exec("INSERT INTO users (id, name, name_key, password_hash, admin, disabled, created_at) VALUES ('usr_1', 'alice', 'alice', 'h', ?, ?, ?)", false, false, at)
	exec("INSERT INTO sessions (hash, user_id, auth_time, created_at, expires_at) VALUES (?, 'usr_1', ?, ?, ?)", session[:], at, at, far)
	exec("INSERT INTO consents (user_id, client_id, resource, scope, created_at) VALUES ('usr_1', 'old client', 'https://r', 'mcp', ?)", at)
	exec(`INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at,
		code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at)
		VALUES ('gr_1', 'old client', 'usr_1', 'https://r', '["mcp"]', ?, ?, ?, ?, '', 'c', ?, ?, ?)`, at, at, far, code[:], at, at, far)
	exec("INSERT INTO refresh_tokens (hash, grant_id, created_at, expires_at) VALUES (?, 'gr_1', ?, ?)", refresh[:], at, far)

	s, ctx := open(), context.Background()
	defer s.Close()
	check(t, s.Ready(ctx))
	c, err := s.Client(ctx, "old client")
	check(t, err)
	if c.Name != "Old" || c.JWKS != nil || c.JWKSURI != "" || !c.LastUsedAt.Equal(now) {
		t.Errorf("the client: got %+v", c)
	}
	_, err = s.Client(ctx, "gone")
	wantErr(t, err, storage.ErrRevoked)
	v, err := s.Visit(ctx, storage.VisitKey{Session: session, ClientID: "old client", Resource: "https://r", Now: now})
	check(t, err)
	if v.User.Name != "alice" || !v.Consented.Has("mcp") {
		t.Errorf("the session: got %+v", v)
	}
	next := randomHash()
	r, err := s.RotateRefresh(ctx, storage.RotateRefresh{Hash: refresh, ClientID: "old client", Now: now, Next: storage.Refresh{Hash: next, ExpiresAt: now.Add(time.Hour)}})
	check(t, err)
	if r.Grant.ID != "gr_1" || r.Grant.UserID != "usr_1" {
		t.Errorf("the refresh token: got %+v", r)
	}
	_, err = s.RotateRefresh(ctx, storage.RotateRefresh{Hash: next, ClientID: "old client", Now: now, Next: storage.Refresh{Hash: randomHash(), ExpiresAt: now.Add(time.Hour)}})
	check(t, err)
}
