package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func sessions(t *testing.T, e *env) {
	p := e.person(t)
	visit := func(k storage.VisitKey) (storage.Visit, error) { return e.s.Visit(e.ctx, k) }
	here := storage.VisitKey{Session: p.session, Now: e.now}

	t.Run("a visit knows the session and the account", func(t *testing.T) {
		got, err := visit(here)
		check(t, err)
		same(t, got, storage.Visit{User: p.User, Session: storage.Session{Hash: p.session, UserID: p.ID,
			AuthTime: e.now, CreatedAt: e.now, ExpiresAt: e.now.Add(24 * time.Hour),
			ProvedAt: e.now, SeenAt: e.now}})
		if got.Consented != nil {
			t.Errorf("without a consent: got %#v, want nil", got.Consented)
		}
	})
	t.Run("unknown, or at its expiry, is ErrNotFound", func(t *testing.T) {
		_, err := visit(storage.VisitKey{Session: randomHash(), Now: e.now})
		wantErr(t, err, storage.ErrNotFound)
		_, err = visit(storage.VisitKey{Session: p.session, Now: e.now.Add(24*time.Hour - time.Millisecond)})
		check(t, err)
		_, err = visit(storage.VisitKey{Session: p.session, Now: e.now.Add(24 * time.Hour)})
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("an ended session is gone; ending it again is no error", func(t *testing.T) {
		q := e.person(t)
		check(t, e.s.EndSession(e.ctx, q.session, e.now))
		check(t, e.s.EndSession(e.ctx, q.session, e.now))
		_, err := visit(storage.VisitKey{Session: q.session, Now: e.now})
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("a session cannot be put over another's", func(t *testing.T) {
		evil := e.person(t)
		wantErr(t, e.s.PutSession(e.ctx,
			storage.Session{Hash: p.session, UserID: evil.ID, ExpiresAt: e.now.Add(time.Hour)},
			storage.SignInStart{}), storage.ErrExists)
	})
	t.Run("a sign-in that was under way when the password changed, or the account was disabled, begins no session",
		func(t *testing.T) {
			q := e.person(t)
			begin := func(hash string) error {
				return e.s.PutSession(e.ctx,
					storage.Session{Hash: randomHash(), UserID: q.ID, ExpiresAt: e.now.Add(time.Hour)},
					storage.SignInStart{PasswordHash: hash})
			}
			check(t, e.s.SetPassword(e.ctx, q.ID, "new", false, e.now))
			wantErr(t, begin("old"), storage.ErrNotFound)
			check(t, begin("new"))
			check(t, begin("")) // no password was checked
			check(t, e.s.SetUserDisabled(e.ctx, q.ID, true, e.now))
			wantErr(t, begin("new"), storage.ErrNotFound)
			wantErr(t, e.s.PutSession(e.ctx,
				storage.Session{Hash: randomHash(), UserID: "usr_nobody", ExpiresAt: e.now},
				storage.SignInStart{}), storage.ErrNotFound)
		})
	t.Run("a consent is per client and resource; the client is known everywhere", func(t *testing.T) {
		a := e.approval(p)
		check(t, e.s.Approve(e.ctx, a))
		k := here
		k.ClientID, k.Resource = a.Grant.ClientID, a.Grant.Resource
		got, err := visit(k)
		check(t, err)
		same(t, got.Consented, a.Grant.Scopes)
		if !got.Known {
			t.Error("the client is not known")
		}
		k.Resource = "https://other.example/"
		got, err = visit(k)
		check(t, err)
		if got.Consented != nil || !got.Known {
			t.Errorf("for another resource: got %#v, known %v; want nil, true", got.Consented, got.Known)
		}
		k.ClientID = "another"
		got, err = visit(k)
		check(t, err)
		if got.Known {
			t.Error("another client is known")
		}
	})
	t.Run("a consent to no scope is a consent", func(t *testing.T) {
		a := e.approval(p)
		a.Grant.Scopes = nil
		check(t, e.s.Approve(e.ctx, a))
		got, err := visit(storage.VisitKey{
			Session: p.session, ClientID: a.Grant.ClientID, Resource: a.Grant.Resource, Now: e.now,
		})
		check(t, err)
		if got.Consented == nil || len(got.Consented) != 0 {
			t.Errorf("got %#v, want the empty list", got.Consented)
		}
	})
}

func approvals(t *testing.T, e *env) {
	p := e.person(t)
	refused := func(t *testing.T, a storage.Approval, want error) {
		t.Helper()
		wantErr(t, e.s.Approve(e.ctx, a), want)
		_, err := e.s.RedeemCode(e.ctx, e.redemption(a))
		wantErr(t, err, storage.ErrNotFound)
	}
	t.Run("stores the client with its first grant", func(t *testing.T) {
		a := e.approval(p)
		check(t, e.s.Approve(e.ctx, a))
		got, err := e.s.Client(e.ctx, a.Client.ID)
		check(t, err)
		want := *a.Client
		want.LastUsedAt = e.now
		same(t, got, want)
	})
	t.Run("a client that the store knows by a row stays as it is", func(t *testing.T) {
		a := e.approval(p)
		a.Client.Source = storage.SourceCIMD // its metadata document is authoritative
		check(t, e.s.PutClient(e.ctx, storage.Client{ID: a.Client.ID, Name: "First", CreatedAt: e.now}))
		check(t, e.s.Approve(e.ctx, a))
		got, err := e.s.Client(e.ctx, a.Client.ID)
		check(t, err)
		if got.Name != "First" {
			t.Errorf("got name %q, want First", got.Name)
		}
	})
	t.Run("a client that lives elsewhere is not stored", func(t *testing.T) {
		a := e.approval(p)
		a.Client = nil
		check(t, e.s.Approve(e.ctx, a))
		_, err := e.s.Client(e.ctx, a.Grant.ClientID)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("remembers the union of what was consented", func(t *testing.T) {
		a := e.approval(p)
		check(t, e.s.Approve(e.ctx, a))
		b := e.approval(p)
		b.Client, b.Grant.ClientID, b.Grant.Scopes, b.Now = nil, a.Grant.ClientID, oauth.Scopes{"mcp", "admin"},
			e.now.Add(time.Second)
		check(t, e.s.Approve(e.ctx, b))
		got, err := e.s.Visit(e.ctx,
			storage.VisitKey{Session: p.session, ClientID: a.Grant.ClientID, Resource: a.Grant.Resource, Now: e.now})
		check(t, err)
		same(t, got.Consented, oauth.Scopes{"mcp", "notes:write", "admin"})
	})
	t.Run("an unknown or expired session is ErrNotFound and stores nothing", func(t *testing.T) {
		a := e.approval(p)
		a.Session = randomHash()
		refused(t, a, storage.ErrNotFound)
		a = e.approval(p)
		a.Now = e.now.Add(24 * time.Hour)
		refused(t, a, storage.ErrNotFound)
		_, err := e.s.Client(e.ctx, a.Client.ID)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("another person's session is ErrNotFound", func(t *testing.T) {
		a := e.approval(p)
		a.Session = e.person(t).session
		refused(t, a, storage.ErrNotFound)
	})
	t.Run("a disabled account is ErrNotFound", func(t *testing.T) {
		q := e.person(t)
		check(t, e.s.SetUserDisabled(e.ctx, q.ID, true, e.now))
		refused(t, e.approval(q), storage.ErrNotFound)
	})
	t.Run("a deleted client is ErrRevoked, and no consent is remembered", func(t *testing.T) {
		a := e.approval(p)
		check(t, e.s.DeleteClient(e.ctx, a.Client.ID, e.now))
		refused(t, a, storage.ErrRevoked)
		a.Client = nil
		refused(t, a, storage.ErrRevoked)
		got, err := e.s.Visit(e.ctx,
			storage.VisitKey{Session: p.session, ClientID: a.Grant.ClientID, Resource: a.Grant.Resource, Now: e.now})
		check(t, err)
		if got.Known || got.Consented != nil {
			t.Error("a consent was remembered")
		}
	})
	t.Run("a grant with its code cannot be stored over another", func(t *testing.T) {
		a := e.approval(p)
		check(t, e.s.Approve(e.ctx, a))
		b := e.approval(p)
		b.Grant.ID = a.Grant.ID
		wantErr(t, e.s.Approve(e.ctx, b), storage.ErrExists)
		got, err := e.s.RedeemCode(e.ctx, e.redemption(a))
		check(t, err)
		same(t, got.Grant, a.Grant)
	})
}
