package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func users(t *testing.T, e *env) {
	anna := storage.User{
		ID: "usr_1", Name: "Anna", PasswordHash: "$argon2id$x", Role: storage.Administrator, CreatedAt: e.now,
		LastLoginAt: e.now,
	}
	berta := storage.User{ID: "usr_2", Name: "bertA", Disabled: true, CreatedAt: e.now}

	t.Run("there is a password when the first account has one, and none when the last one is gone", func(t *testing.T) {
		for _, step := range []struct {
			do   func() error
			want bool
		}{
			{func() error { return nil }, false},
			{func() error { return e.s.CreateUser(e.ctx, storage.User{ID: "usr_p", Name: "p", CreatedAt: e.now}) },
				false},
			{func() error { return e.s.SetPassword(e.ctx, "usr_p", "$argon2id$x", true, e.now) }, true},
			{func() error { return e.s.SetUserDisabled(e.ctx, "usr_p", true, e.now) }, true},
			{func() error { return e.s.DeleteUser(e.ctx, "usr_p", e.now) }, false},
		} {
			check(t, step.do())
			has, err := e.s.HasPasswords(e.ctx)
			check(t, err)
			same(t, has, step.want)
		}
	})
	t.Run("what was created is found by id, and by name in any case", func(t *testing.T) {
		for _, u := range []storage.User{anna, berta} {
			check(t, e.s.CreateUser(e.ctx, u))
			got, err := e.s.User(e.ctx, u.ID)
			check(t, err)
			same(t, got, u)
		}
		for _, name := range []string{"anna", "Anna", "ANNA"} {
			got, err := e.s.UserByName(e.ctx, name)
			check(t, err)
			same(t, got, anna)
		}
	})
	t.Run("a taken name in any case, or id, is ErrExists", func(t *testing.T) {
		wantErr(t, e.s.CreateUser(e.ctx, storage.User{ID: "usr_3", Name: "aNNa", CreatedAt: e.now}), storage.ErrExists)
		wantErr(t, e.s.CreateUser(e.ctx, storage.User{ID: "usr_1", Name: "other", CreatedAt: e.now}), storage.ErrExists)
	})
	t.Run("unknown is ErrNotFound, in every verb", func(t *testing.T) {
		_, err := e.s.User(e.ctx, "none")
		wantErr(t, err, storage.ErrNotFound)
		_, err = e.s.UserByName(e.ctx, "none")
		wantErr(t, err, storage.ErrNotFound)
		wantErr(t, e.s.SetPassword(e.ctx, "none", "x", true, e.now), storage.ErrNotFound)
		wantErr(t, e.s.SetUserDisabled(e.ctx, "none", true, e.now), storage.ErrNotFound)
		wantErr(t, e.s.DeleteUser(e.ctx, "none", e.now), storage.ErrNotFound)
		wantErr(t, e.s.TouchLogin(e.ctx, "none", e.now), storage.ErrNotFound)
	})
	t.Run("lists by name without regard to case, page by page", func(t *testing.T) {
		page, err := e.s.ListUsers(e.ctx, "", 1)
		check(t, err)
		same(t, page, []storage.User{anna})
		page, err = e.s.ListUsers(e.ctx, "ANNA", 10)
		check(t, err)
		same(t, page, []storage.User{berta})
	})
	t.Run("a sign-in is recorded, a password replaced, an account enabled", func(t *testing.T) {
		at := e.now.Add(time.Hour)
		check(t, e.s.TouchLogin(e.ctx, berta.ID, at))
		check(t, e.s.SetPassword(e.ctx, berta.ID, "$new", false, e.now))
		check(t, e.s.SetUserDisabled(e.ctx, berta.ID, false, e.now))
		got, err := e.s.User(e.ctx, berta.ID)
		check(t, err)
		want := berta
		want.LastLoginAt, want.PasswordHash, want.Disabled = at, "$new", false
		same(t, got, want)
	})
	t.Run("PE-16 mail goes where it was said last", func(t *testing.T) {
		check(t, e.s.CreateUser(e.ctx, storage.User{ID: "usr_m", Name: "m", Mail: "m@a.example", CreatedAt: e.now}))
		for _, mail := range []string{"m@b.example", ""} {
			check(t, e.s.SetMail(e.ctx, "usr_m", mail))
			got, err := e.s.UserByName(e.ctx, "m")
			check(t, err)
			same(t, got.Mail, mail)
		}
		wantErr(t, e.s.SetMail(e.ctx, "none", "x@a.example"), storage.ErrNotFound)
	})
	t.Run("PE-13 a person is spoken to in the language that they chose last", func(t *testing.T) {
		check(t, e.s.CreateUser(e.ctx, storage.User{ID: "usr_l", Name: "l", Locale: "de", CreatedAt: e.now}))
		got, err := e.s.User(e.ctx, "usr_l")
		check(t, err)
		same(t, got.Locale, "de")
		for _, tag := range []string{"pt", ""} {
			check(t, e.s.SetLocale(e.ctx, "usr_l", tag))
			got, err := e.s.UserByName(e.ctx, "l")
			check(t, err)
			same(t, got.Locale, tag)
		}
		wantErr(t, e.s.SetLocale(e.ctx, "none", "de"), storage.ErrNotFound)
	})
	t.Run("a deleted user is gone and the name is free", func(t *testing.T) {
		check(t, e.s.DeleteUser(e.ctx, berta.ID, e.now))
		_, err := e.s.User(e.ctx, berta.ID)
		wantErr(t, err, storage.ErrNotFound)
		check(t, e.s.CreateUser(e.ctx, storage.User{ID: "usr_4", Name: "berta", CreatedAt: e.now}))
	})
}

func setup(t *testing.T, e *env) {
	first, second := randomHash(), randomHash()
	admin := storage.User{ID: "usr_a", Name: "root", PasswordHash: "x", Role: storage.Administrator, CreatedAt: e.now}
	expires := e.now.Add(time.Hour)
	wantOpen := func(t *testing.T, want bool) {
		t.Helper()
		open, err := e.s.SetupOpen(e.ctx)
		check(t, err)
		if open != want {
			t.Errorf("setup is open: got %v, want %v", open, want)
		}
	}
	t.Run("an ordinary user leaves setup open", func(t *testing.T) {
		check(t, e.s.CreateUser(e.ctx, storage.User{ID: "usr_o", Name: "ordinary", CreatedAt: e.now}))
		wantOpen(t, true)
	})
	t.Run("without a token nothing is created", func(t *testing.T) {
		wantErr(t, e.s.CreateFirstAdmin(e.ctx, first, admin, e.now), storage.ErrNotFound)
		wantErr(t, e.s.CreateFirstAdmin(e.ctx, storage.Hash{}, admin, e.now), storage.ErrNotFound)
		wantErr(t, e.s.CheckSetupToken(e.ctx, first, e.now), storage.ErrNotFound)
		wantErr(t, e.s.CheckSetupToken(e.ctx, storage.Hash{}, e.now), storage.ErrNotFound)
	})
	t.Run("only the latest token is valid", func(t *testing.T) {
		check(t, e.s.PutSetupToken(e.ctx, first, expires, e.now))
		check(t, e.s.PutSetupToken(e.ctx, second, expires, e.now))
		wantErr(t, e.s.CreateFirstAdmin(e.ctx, first, admin, e.now), storage.ErrNotFound)
		wantErr(t, e.s.CheckSetupToken(e.ctx, first, e.now), storage.ErrNotFound)
	})
	t.Run("to look at a token spends nothing", func(t *testing.T) {
		check(t, e.s.CheckSetupToken(e.ctx, second, expires.Add(-time.Millisecond)))
		wantErr(t, e.s.CheckSetupToken(e.ctx, second, expires), storage.ErrExpired)
	})
	t.Run("at its expiry it is expired, and nothing is created", func(t *testing.T) {
		wantErr(t, e.s.CreateFirstAdmin(e.ctx, second, admin, expires), storage.ErrExpired)
		wantOpen(t, true)
	})
	t.Run("a taken name is ErrExists and leaves the token valid", func(t *testing.T) {
		wantErr(t, e.s.CreateFirstAdmin(e.ctx, second, storage.User{ID: "usr_x", Name: "Ordinary", CreatedAt: e.now},
			e.now), storage.ErrExists)
		wantOpen(t, true)
	})
	t.Run("a millisecond before it works, once", func(t *testing.T) {
		check(t, e.s.CreateFirstAdmin(e.ctx, second, admin, expires.Add(-time.Millisecond)))
		wantOpen(t, false)
		got, err := e.s.UserByName(e.ctx, "root")
		check(t, err)
		same(t, got, admin)
		other := storage.User{ID: "usr_b", Name: "other", Role: storage.Administrator, CreatedAt: e.now}
		wantErr(t, e.s.CreateFirstAdmin(e.ctx, second, other, e.now), storage.ErrExists)
		wantErr(t, e.s.PutSetupToken(e.ctx, first, expires, e.now), storage.ErrExists)
		wantErr(t, e.s.CheckSetupToken(e.ctx, second, e.now), storage.ErrExists)
	})
}
