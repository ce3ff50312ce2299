package ways_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/authkit"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

const (
	issuer = "https://auth.example"
	here   = "the mark of this browser"
	there  = "the mark of another browser"
)

// rig is a Ways over a store, with a clock that the test sets.
type rig struct {
	*ways.Ways
	*installation.Installation
	t     testing.TB
	users *users.Users
	ring  *secrets.Ring
	alice storage.User
	phone *authkit.Authenticator
}

// newRig returns a server whose host was formerly old.example.
func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{Installation: installation.New(t), t: t, phone: authkit.New(issuer)}
	var err error
	r.ring, err = secrets.NewRing(bytes.Repeat([]byte{7}, 32))
	r.must(err)
	r.users, err = users.New(users.Config{
		Store: r.Store, Now: r.Now, Audit: r.Audit,
		Sleep: func(context.Context, time.Duration) error { return nil },
	})
	r.must(err)
	r.Ways = r.at(issuer, "old.example")
	r.alice = r.person("alice")
	return r
}

// at returns the Ways of a server with another issuer and the same store.
func (r *rig) at(issuer string, previous ...string) *ways.Ways {
	r.t.Helper()
	site, err := ways.NewSite(issuer, "", previous)
	r.must(err)
	w, err := ways.New(ways.Config{
		Store: r.Store, Ring: r.ring, Site: site, Guesses: r.users, Passwords: true, Now: r.Now,
		Audit: r.Audit,
	})
	r.must(err)
	return w
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) person(name string) storage.User { return r.account(name, "") }

func (r *rig) account(name string, role storage.Role) storage.User {
	u := storage.User{ID: secrets.ID("usr_"), Name: name, Role: role, CreatedAt: r.Now()}
	r.must(r.Store.CreateUser(r.t.Context(), u))
	return u
}

func (r *rig) enrol(u storage.User, with *authkit.Authenticator) storage.Way {
	r.t.Helper()
	way, err := r.FinishPasskey(r.t.Context(), here, u, "Phone", r.made(u, with))
	r.must(err)
	return way
}

// made returns an answer that enrolls a passkey.
func (r *rig) made(u storage.User, with *authkit.Authenticator) ways.Answer {
	r.t.Helper()
	c, err := r.BeginPasskey(r.t.Context(), here, u)
	r.must(err)
	response, err := with.Create(c.Options)
	r.must(err)
	return ways.Answer{Sealed: c.Sealed, Response: response}
}

// asked begins a sign-in and returns the answer.
func (r *rig) asked(ask ways.Ask, with *authkit.Authenticator) ways.Answer {
	r.t.Helper()
	c, err := r.BeginSignIn(r.t.Context(), here, ask)
	r.must(err)
	response, err := with.Get(c.Options)
	r.must(err)
	return ways.Answer{Sealed: c.Sealed, Response: response}
}

// signIn signs in with a discoverable passkey.
func (r *rig) signIn(with *authkit.Authenticator) (ways.Proven, error) {
	r.t.Helper()
	return r.FinishSignIn(r.t.Context(), here, ways.SignIn, r.asked(ways.Ask{Purpose: ways.SignIn}, with))
}

func wantErr(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}

func optionsOf(t testing.TB, c ways.Ceremony) (o struct {
	RPID             string `json:"rpId"`
	UserVerification string `json:"userVerification"`
	AllowCredentials []any  `json:"allowCredentials"`
},
) {
	t.Helper()
	if err := json.Unmarshal(c.Options, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func (r *rig) logged(text string) int { return strings.Count(r.Log.String(), text) }

func challengeOf(t testing.TB, c ways.Ceremony) string {
	t.Helper()
	var o struct {
		Challenge string `json:"challenge"`
	}
	if err := json.Unmarshal(c.Options, &o); err != nil {
		t.Fatal(err)
	}
	return o.Challenge
}
