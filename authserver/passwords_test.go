package authserver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestPasswordForm checks that a form that no user can use is hidden (usability 5).
func TestPasswordForm(t *testing.T) {
	shown := func(p *person) (form, link bool) {
		t.Helper()
		login, home := p.get("/authorize?"+authorizeQuery().Encode()), p.get("/")
		if login.status != 200 || home.status != 200 {
			t.Fatalf("got %d and %d", login.status, home.status)
		}
		return strings.Contains(login.body, `type="password"`), strings.Contains(home.body, `href="/login"`)
	}
	const always, with = "alone", "beside providers"
	for name, rigged := range map[string]func(*testing.T) *rig{
		always: func(t *testing.T) *rig { return newRig(t) },
		with:   func(t *testing.T) *rig { r, _ := delegated(t); return r },
	} {
		t.Run(name, func(t *testing.T) {
			r := rigged(t)
			p := r.person()
			if form, link := shown(p); !form || !link {
				t.Errorf("alice has a password: form %v, link %v", form, link)
			}
			alice, err := r.Users().Find(t.Context(), "alice")
			if err != nil {
				t.Fatal(err)
			}
			if err := r.store.DeleteUser(t.Context(), alice.ID, r.now()); err != nil {
				t.Fatal(err)
			}
			r.advance(passwordsTTL)
			if form, link := shown(p); form != (name == always) || link != (name == always) {
				t.Errorf("no account has a password: form %v, link %v", form, link)
			}
			if _, err := r.Users().Create(t.Context(), "bert", "correct horse battery", false); err != nil {
				t.Fatal(err)
			}
			r.advance(passwordsTTL)
			if form, link := shown(p); !form || !link {
				t.Errorf("bert has a password: form %v, link %v", form, link)
			}
		})
	}
}

// TestNoOtherWay checks that a page without another choice is not linked.
func TestNoOtherWay(t *testing.T) {
	r, f := delegated(t)
	f.list = f.list[:1]
	other := func() bool {
		pg := r.person().get("/authorize?" + authorizeQuery("provider", "google").Encode())
		if !strings.Contains(pg.body, "Approve") {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		return strings.Contains(pg.body, "Sign in another way")
	}
	if !other() {
		t.Error("alice cannot use her password")
	}
	alice, err := r.Users().Find(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.store.DeleteUser(t.Context(), alice.ID, r.now()); err != nil {
		t.Fatal(err)
	}
	r.advance(passwordsTTL)
	if other() {
		t.Error("no other authentication method")
	}
}

// unreadable is a store that fails.
type unreadable struct{ storage.Users }

func (unreadable) HasPasswords(context.Context) (bool, error) { return false, errors.New("away") }

func TestPasswordFormWithoutAStore(t *testing.T) {
	p := &passwords{store: unreadable{}, now: time.Now}
	if !p.offered(t.Context()) {
		t.Error("people with a password are shut out because it cannot be told that there are any")
	}
}
