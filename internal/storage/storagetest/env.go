package storagetest

import (
	"context"
	"errors"

	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// env is a store with the records of the tests.
type env struct {
	s   storage.Store
	ctx context.Context
	now time.Time
}

func newEnv(t *testing.T, s storage.Store) *env {
	t.Cleanup(func() { check(t, s.Close()) })
	return &env{s: s, ctx: context.Background(), now: today()}
}

// today is the date of the tests.
func today() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC) }

func randomHash() storage.Hash { return secrets.Hash(secrets.Token("")) }

// person is an account with a session.
type person struct {
	storage.User
	session storage.Hash
}

func (e *env) person(t testing.TB) person {
	t.Helper()
	id := secrets.ID("usr_")
	p := person{User: storage.User{ID: id, Name: "Name" + id, CreatedAt: e.now}, session: randomHash()}
	check(t, e.s.CreateUser(e.ctx, p.User))
	e.signIn(t, p)
	return p
}

func (e *env) signIn(t testing.TB, p person) {
	t.Helper()
	check(t, e.s.PutSession(e.ctx, storage.Session{Hash: p.session, UserID: p.ID,
		AuthTime: e.now, CreatedAt: e.now, ExpiresAt: e.now.Add(24 * time.Hour)},
		storage.SignInStart{PasswordHash: p.PasswordHash}))
}

func (e *env) client() storage.Client {
	id := secrets.ID("mcp_")
	return storage.Client{ID: id, Name: "App " + id, RedirectURIs: []string{"http://127.0.0.1/cb"},
		GrantTypes: []string{"authorization_code", "refresh_token"}, AuthMethod: "none",
		Source: storage.SourceDynamic, CreatedAt: e.now}
}

// approval returns a user's approval of a new client, not stored yet.
func (e *env) approval(p person) storage.Approval {
	cl := e.client()
	return storage.Approval{
		Session: p.session, Client: &cl, Now: e.now,
		Grant: storage.Grant{
			ID: secrets.ID("gr_"), ClientID: cl.ID, UserID: p.ID, Scopes: oauth.Scopes{"mcp", "notes:write"},
			Resource: "https://mcp.example/mcp", AuthTime: e.now, CreatedAt: e.now,
			ExpiresAt: e.now.Add(100 * 24 * time.Hour)},
		Code: storage.Code{
			Hash: randomHash(), RedirectURI: "http://127.0.0.1:3210/cb", Challenge: "challenge",
			ExpiresAt: e.now.Add(time.Minute),
		},
	}
}

// approved stores an approval by a new user.
func (e *env) approved(t testing.TB) storage.Approval {
	t.Helper()
	a := e.approval(e.person(t))
	check(t, e.s.Approve(e.ctx, a))
	return a
}

// redemption returns the request that matches an approval.
func (e *env) redemption(a storage.Approval) storage.RedeemCode {
	refresh := new(storage.Refresh)
	*refresh = e.refresh()
	return storage.RedeemCode{
		Hash: a.Code.Hash, GrantID: a.Grant.ID, ClientID: a.Grant.ClientID, Challenge: a.Code.Challenge,
		RedirectURI: a.Code.RedirectURI, Resource: a.Grant.Resource, Now: e.now,
		Refresh: refresh}
}

// granted redeems a new approval and returns it with its first refresh token.
func (e *env) granted(t testing.TB) (storage.Approval, storage.PresentedRefresh) {
	t.Helper()
	a := e.approved(t)
	return a, e.redeem(t, e.redemption(a))
}

// redeem redeems a code and returns the first refresh token.
func (e *env) redeem(t testing.TB, r storage.RedeemCode) storage.PresentedRefresh {
	t.Helper()
	out, err := e.s.RedeemCode(e.ctx, r)
	check(t, err)
	return made(*r.Refresh, out.Grant.ID, out.Generation, r.Now)
}

// refresh returns a refresh token to be activated.
func (e *env) refresh() storage.Refresh {
	return storage.Refresh{Hash: randomHash(), Secret: randomHash(), ExpiresAt: e.now.Add(30 * 24 * time.Hour)}
}

// made returns the token that the store has activated.
func made(r storage.Refresh, grantID string, generation int64, at time.Time) storage.PresentedRefresh {
	if generation == 0 {
		return storage.HashedRefresh(r.Hash)
	}
	return storage.NumberedRefresh{
		GrantID: grantID, Generation: generation, IssuedAt: at, ExpiresAt: at.Add(30 * 24 * time.Hour),
		Secret: r.Secret,
	}
}

// successor returns the token that a rotation has activated.
func successor(r storage.RotateRefresh, out storage.Rotation) storage.PresentedRefresh {
	if t, ok := r.Token.(storage.NumberedRefresh); ok {
		r.Next.Secret = t.Secret
	}
	return made(r.Next, out.Grant.ID, out.Generation, out.RotatedAt)
}

// unknown returns a token without a grant.
func unknown() storage.PresentedRefresh { return storage.HashedRefresh(randomHash()) }

// rotation returns the request that rotates a refresh token of an approval.
func (e *env) rotation(a storage.Approval, token storage.PresentedRefresh) storage.RotateRefresh {
	return storage.RotateRefresh{Token: token, ClientID: a.Grant.ClientID, Resource: a.Grant.Resource,
		Next: e.refresh(), Sealed: []byte(secrets.Token("sealed ")), Grace: time.Minute, Now: e.now}
}

func (e *env) rotate(t testing.TB, r storage.RotateRefresh) storage.Rotation {
	t.Helper()
	out, err := e.s.RotateRefresh(e.ctx, r)
	check(t, err)
	return out
}

// wantLive checks whether a grant is usable for introspection and refresh.
func (e *env) wantLive(t testing.TB, a storage.Approval, live bool) {
	t.Helper()
	got, err := e.s.TokenActive(e.ctx,
		storage.TokenKey{TokenID: "t", GrantID: a.Grant.ID, ClientID: a.Grant.ClientID, Now: e.now})
	check(t, err)
	if got.Active != live {
		t.Errorf("the grant is active: got %v, want %v", got.Active, live)
	}
}

func (e *env) wantRefreshRefused(t testing.TB, a storage.Approval, token storage.PresentedRefresh) {
	t.Helper()
	_, err := e.s.RotateRefresh(e.ctx, e.rotation(a, token))
	wantErr(t, err, storage.ErrRevoked)
	_, _, err = e.s.RefreshToken(e.ctx, token, e.now)
	wantErr(t, err, storage.ErrNotFound)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}

// same compares records; an empty list equals none.
func same(t testing.TB, got, want any) {
	t.Helper()
	// The store assigns the status index; statusIndexes checks it.
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(storage.Grant{}, "StatusIndex")); d != "" {
		t.Errorf("differs (-want +got):\n%s", d)
	}
}
