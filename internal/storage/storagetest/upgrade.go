package storagetest

import (
	"context"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Upgrade checks that this version serves the rows of an earlier schema. exec runs a statement,
// with ? for each argument, on a database with some of the first steps. open then opens and
// migrates it. After that, exec acts as a replica of the previous version.
func Upgrade(t *testing.T, exec func(query string, args ...any), open func() storage.Store) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	at, far := now.UnixMilli(), now.Add(24*time.Hour).UnixMilli()
	session, code, refresh := randomHash(), randomHash(), randomHash()

	exec(`INSERT INTO clients (id, name, redirect_uris, grant_types, auth_method, source, created_at, last_used_at)
		VALUES ('old client', 'Old', '["http://127.0.0.1/cb"]', '["authorization_code","refresh_token"]', 'none', 'dynamic', ?, ?)`, at, at)
	exec("INSERT INTO clients (id, created_at, deleted_at) VALUES ('gone', ?, ?)", at, at)
	exec("INSERT INTO users (id, name, name_key, password_hash, admin, disabled, created_at) VALUES ('usr_1', 'alice', 'alice', 'h', ?, ?, ?)",
		false, false, at)
	exec("INSERT INTO sessions (hash, user_id, auth_time, created_at, expires_at) VALUES (?, 'usr_1', ?, ?, ?)",
		session[:], at, at, far)
	exec("INSERT INTO consents (user_id, client_id, resource, scope, created_at) VALUES ('usr_1', 'old client', 'https://r', 'mcp', ?)",
		at)
	exec(`INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at,
		code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at)
		VALUES ('gr_1', 'old client', 'usr_1', 'https://r', '["mcp"]', ?, ?, ?, ?, '', 'c', ?, ?, ?)`, at, at, far, code[:], at, at, far)
	exec("INSERT INTO refresh_tokens (hash, grant_id, created_at, expires_at) VALUES (?, 'gr_1', ?, ?)", refresh[:],
		at, far)
	exec("INSERT INTO resources (uri, name, scopes, created_at) VALUES ('https://r', 'Old', '[]', ?)", at)

	s, ctx := open(), context.Background()
	defer s.Close()
	check(t, s.Ready(ctx))
	upgradeAliases(t, s, exec, now)
	c, err := s.Client(ctx, "old client")
	check(t, err)
	if c.Name != "Old" || c.JWKS != nil || c.JWKSURI != "" || !c.LastUsedAt.Equal(now) {
		t.Errorf("the client: got %+v", c)
	}
	_, err = s.Client(ctx, "gone")
	wantErr(t, err, storage.ErrRevoked)
	// H2: a consent of an earlier version, or by a replica of the previous version, has no place.
	exec("INSERT INTO consents (user_id, client_id, resource, scope, created_at) VALUES ('usr_1', 'old client', 'https://r', 'more', ?) ON CONFLICT DO NOTHING",
		at)
	k := storage.VisitKey{
		Session: session, ClientID: "old client", Resource: "https://r", Place: "loopback", Material: c.Material(),
		Now: now,
	}
	v, err := s.Visit(ctx, k)
	check(t, err)
	if v.User.Name != "alice" || v.Consented != nil || v.Known {
		t.Errorf("the session: got %+v", v)
	}
	k.Unplaced = true
	v, err = s.Visit(ctx, k)
	check(t, err)
	if !v.Consented.Has("mcp", "more") || !v.Known {
		t.Errorf("counting consents without a place: got %+v", v)
	}
	if v.Session.Methods != nil || !v.Session.ProvedAt.Equal(now) || v.Session.Agent != "" {
		t.Errorf("an earlier session has no sign-in: got %+v", v.Session)
	}
	check(t, s.EndSignIn(ctx, v.Session.ID(), storage.SessionEnding{UserID: "usr_1", Now: now}))
	_, err = s.Visit(ctx, k)
	wantErr(t, err, storage.ErrNotFound)
	exec("INSERT INTO sessions (hash, user_id, auth_time, created_at, expires_at) VALUES (?, 'usr_1', ?, ?, ?)",
		session[:], at, at, far)
	e := &env{s: s, ctx: ctx, now: now}
	rotation := storage.RotateRefresh{
		Token: storage.HashedRefresh(refresh), ClientID: "old client", Now: now, Next: e.refresh(),
	}
	r, err := s.RotateRefresh(ctx, rotation)
	check(t, err)
	if r.Grant.ID != "gr_1" || r.Grant.UserID != "usr_1" {
		t.Errorf("the refresh token: got %+v", r)
	}
	rotation.Token, rotation.Next = successor(rotation, r), e.refresh()
	_, err = s.RotateRefresh(ctx, rotation)
	check(t, err)
	same(t, v.Session.UpstreamID+r.Grant.UpstreamID, "")
	upgradedCodes(t, e, exec, code)
	upgradedConnections(t, e, exec)
	oldHomes(t, e, exec)
	upgradedArrivals(t, e, exec, session)
	upgradedCalls(t, e, exec)
}

// upgradedCodes redeems a code of an earlier version, which names no grant, and one that such a
// version has already redeemed.
func upgradedCodes(t *testing.T, e *env, exec func(query string, args ...any), spent storage.Hash) {
	fresh, at, far := randomHash(), e.now.UnixMilli(), e.now.Add(time.Hour).UnixMilli()
	exec(`INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at,
		code_hash, code_redirect, code_challenge, code_expires_at, sweep_at, status_index)
		VALUES ('gr_2', 'old client', 'usr_1', 'https://r', '["mcp"]', ?, ?, ?, ?, 'http://127.0.0.1/cb', 'c', ?, ?, 77)`, at, at, far, fresh[:], far, far)
	for _, c := range []struct {
		code storage.Hash
		want error
	}{{fresh, nil}, {fresh, storage.ErrNotFound}, {spent, storage.ErrNotFound}} {
		_, err := e.s.RedeemCode(e.ctx,
			storage.RedeemCode{Hash: c.code, ClientID: "old client", Challenge: "c", Now: e.now})
		wantErr(t, err, c.want)
	}
}

// upgradedConnections narrows and pauses a grant while a replica of the previous version rotates it
// with its own statement. The rotation must neither end the pause nor extend the scopes (PE-09,
// PE-10). A grant made by that replica is an ordinary connection.
func upgradedConnections(t *testing.T, e *env, exec func(query string, args ...any)) {
	p := e.person(t)
	a, token := e.connected(t, p)
	check(t, e.s.NarrowGrant(e.ctx, p.ID, a.Grant.ID, oauth.Scopes{"mcp"}, e.now))
	check(t, e.s.PauseGrant(e.ctx, p.ID, a.Grant.ID, e.now))
	at, far := e.now.UnixMilli(), e.now.Add(time.Hour).UnixMilli()
	exec("UPDATE grants SET generation = generation + 1, rotated_at = ?, refresh_expires_at = ? WHERE id = ?", at, far,
		a.Grant.ID)
	c, err := e.s.Connection(e.ctx, p.ID, a.Grant.ID, e.now)
	check(t, err)
	same(t, c.Scopes, oauth.Scopes{"mcp"})
	same(t, c.PausedAt, e.now)
	e.wantLive(t, a, false)
	_, err = e.s.RotateRefresh(e.ctx, e.rotation(a, token))
	wantErr(t, err, storage.ErrPaused)

	code, session := randomHash(), randomHash()
	exec(`INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at,
		code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at, status_index)
		VALUES ('gr_3', 'old client', ?, 'https://r', '["mcp","more"]', ?, ?, ?, ?, '', 'c', ?, ?, ?, 7800)`,
		p.ID, at, at, far, code[:], far, at, far)
	exec("INSERT INTO sessions (hash, user_id, auth_time, created_at, expires_at) VALUES (?, ?, ?, ?, ?)",
		session[:], p.ID, at, at, far)
	c, err = e.s.Connection(e.ctx, p.ID, "gr_3", e.now)
	check(t, err)
	same(t, c.GivenAgent+c.GivenFrom+c.UsedFrom, "")
	check(t, e.s.NarrowGrant(e.ctx, p.ID, "gr_3", oauth.Scopes{"mcp"}, e.now))
	check(t, e.s.StopEverything(e.ctx, p.ID, e.now))
	e.wantSession(t, session, false)
	_, err = e.s.Connection(e.ctx, p.ID, "gr_3", e.now)
	wantErr(t, err, storage.ErrNotFound)
}

// upgradedArrivals links a provider account to a user of an earlier schema. A replica of the
// previous version, which knows no identities, then deletes the user.
func upgradedArrivals(t *testing.T, e *env, exec func(query string, args ...any), session storage.Hash) {
	old := person{User: storage.User{ID: "usr_1"}, session: session}
	before := e.approval(old)
	check(t, e.s.Approve(e.ctx, before))
	link := e.link("acme", old.ID)
	e.arrive(t, link)
	signIn := e.arrival()
	signIn.Identity = link.Identity
	signIn.Identity.UserID = ""
	same(t, e.arrive(t, signIn).ID, old.ID)
	after := e.approval(person{User: old.User, session: signIn.Session.Hash})
	check(t, e.s.Approve(e.ctx, after))

	same(t, e.end(t, storage.UpstreamKey{ID: signIn.Upstream.ID}, "revoked"), []string{signIn.Upstream.ID})
	e.wantLive(t, before, true)
	e.wantLive(t, after, false)

	begun := randomHash()
	exec("INSERT INTO sessions (hash, user_id, auth_time, created_at, expires_at) VALUES (?, 'usr_1', 0, 0, ?)",
		begun[:], e.now.Add(time.Hour).UnixMilli())
	v, err := e.s.Visit(e.ctx, storage.VisitKey{Session: begun, Now: e.now})
	check(t, err)
	if v.Session.Methods != nil || v.Session.ProvedAt.After(v.Session.AuthTime) {
		t.Errorf("PE-04: a session of the previous version is %+v", v.Session)
	}
	same(t, e.wayRows(t, old.ID), 0)
	e.add(t, e.passkey(old.ID))
	e.add(t, e.app(old.ID))
	check(t, e.s.ReplaceRecoveryCodes(e.ctx, old.ID, []storage.Hash{randomHash()}, storage.Hash{}))
	check(t, e.s.PutNotice(e.ctx, storage.Notice{ID: "ntc_1", UserID: old.ID, Kind: "way-added", At: e.now}))
	recover := storage.OneTimeLink{
		Hash: randomHash(), Kind: storage.LinkRecover, UserID: old.ID, NotBefore: e.now, CreatedAt: e.now,
		ExpiresAt: e.now.Add(time.Hour),
	}
	check(t, e.s.PutLink(e.ctx, recover, e.now))
	same(t, e.wayRows(t, old.ID), 5)
	exec("DELETE FROM users WHERE id = 'usr_1'")
	back := e.again(signIn)
	same(t, e.arrive(t, back).ID, back.NewUser.ID)
	// PE-02: a returning user may get the same id, and none of the old records.
	check(t, e.s.CreateUser(e.ctx, storage.User{ID: old.ID, Name: "back", CreatedAt: e.now}))
	same(t, e.wayRows(t, old.ID), 0)
	_, err = e.s.Link(e.ctx, recover.Hash, e.now)
	wantErr(t, err, storage.ErrNotFound)
}

// wayRows counts a user's authentication methods, codes, notices and links.
func (e *env) wayRows(t testing.TB, userID string) (n int) {
	t.Helper()
	f, err := e.s.Factors(e.ctx, userID, served)
	check(t, err)
	notices, err := e.s.UnseenNotices(e.ctx, userID)
	check(t, err)
	n = f.Passkeys + f.Apps + f.RecoveryCodes + len(notices)
	if _, err := e.s.RecoveryLink(e.ctx, userID, e.now); err == nil {
		n++
	}
	return n
}

func hashBytes() []byte {
	h := randomHash()
	return h[:]
}

// upgradeAliases: a replica of the previous version treats an alias as a resource. It renames and
// removes it.
func upgradeAliases(t *testing.T, s storage.Store, exec func(query string, args ...any), now time.Time) {
	t.Helper()
	ctx := context.Background()
	both := []string{"https://r/a", "https://r/b"}
	r := storage.Resource{URI: "https://r", Name: "Old", Aliases: both, CreatedAt: now}
	check(t, s.ReplaceResource(ctx, r, now))
	exec("UPDATE resources SET name = 'Renamed', scopes = '[]' WHERE uri = 'https://r/a'")
	exec("DELETE FROM resources WHERE uri = 'https://r/b'")
	exec("INSERT INTO resources (uri, name, scopes, created_at) VALUES ('https://s', 'New', '[]', ?)",
		now.Add(time.Second).UnixMilli())
	r.Aliases = []string{"https://r/a"}
	got, err := s.ListResources(ctx)
	check(t, err)
	same(t, got, []storage.Resource{r, {URI: "https://s", Name: "New", CreatedAt: now.Add(time.Second)}})
}
