package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func roles(t *testing.T, e *env) {
	root := storage.User{ID: "usr_r", Name: "root", Role: storage.Administrator, CreatedAt: e.now}
	anna := storage.User{ID: "usr_a", Name: "anna", Role: storage.Auditor, CreatedAt: e.now}
	check(t, e.s.CreateUser(e.ctx, root))
	check(t, e.s.CreateUser(e.ctx, anna))
	want := func(id string, role storage.Role) {
		t.Helper()
		u, err := e.s.User(e.ctx, id)
		check(t, err)
		same(t, u.Role, role)
	}
	wantOpen := func(h storage.Hash, open bool) {
		t.Helper()
		if v, err := e.s.Visit(e.ctx, storage.VisitKey{Session: h, Now: e.now}); (err == nil) != open {
			t.Errorf("the session: got %+v, %v", v.User, err)
		}
	}
	t.Run("OB-10 an account has the role with which it was created", func(t *testing.T) {
		want(root.ID, storage.Administrator)
		want(anna.ID, storage.Auditor)
	})
	t.Run("OB-10 another role ends the sessions, the same one does not", func(t *testing.T) {
		h := randomHash()
		check(t, e.s.PutSession(e.ctx, storage.Session{
			Hash: h, UserID: anna.ID, AuthTime: e.now, CreatedAt: e.now, ExpiresAt: e.now.Add(time.Hour),
		}, storage.SignInStart{At: e.now}))
		check(t, e.s.SetRole(e.ctx, anna.ID, storage.Auditor))
		wantOpen(h, true)
		check(t, e.s.SetRole(e.ctx, anna.ID, storage.Support))
		wantOpen(h, false)
		want(anna.ID, storage.Support)
	})
	t.Run("OB-10 the last administrator stays one, also beside a disabled one", func(t *testing.T) {
		wantErr(t, e.s.SetRole(e.ctx, root.ID, ""), storage.ErrLast)
		wantErr(t, e.s.SetRole(e.ctx, root.ID, storage.Auditor), storage.ErrLast)
		check(t, e.s.SetRole(e.ctx, root.ID, storage.Administrator))
		check(t, e.s.SetRole(e.ctx, anna.ID, storage.Administrator))
		check(t, e.s.SetUserDisabled(e.ctx, anna.ID, true, e.now))
		wantErr(t, e.s.SetRole(e.ctx, root.ID, storage.Support), storage.ErrLast)
		check(t, e.s.SetUserDisabled(e.ctx, anna.ID, false, e.now))
		check(t, e.s.SetRole(e.ctx, root.ID, storage.Support))
		want(root.ID, storage.Support)
		want(anna.ID, storage.Administrator)
		check(t, e.s.SetRole(e.ctx, root.ID, ""))
		want(root.ID, "")
	})
	t.Run("OB-10 an unknown account has none", func(t *testing.T) {
		wantErr(t, e.s.SetRole(e.ctx, "usr_x", storage.Auditor), storage.ErrNotFound)
	})
}

// raceLastAdministrator: all administrators give up the role at once, and one of them cannot.
func raceLastAdministrator(t *testing.T, e *env) {
	id := func(i int) string { return fmt.Sprint("usr_", i) }
	for i := range racers {
		check(t, e.s.CreateUser(e.ctx, storage.User{
			ID: id(i), Name: id(i), Role: storage.Administrator, CreatedAt: e.now,
		}))
	}
	var c tally
	compete(func(i int) { c.add(e.s.SetRole(e.ctx, id(i), ""), storage.ErrLast) })
	c.want(t, racers-1)
}
