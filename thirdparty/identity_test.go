package thirdparty

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// local creates a user with a password.
func (r *rig) local(id string) storage.User {
	r.t.Helper()
	u := storage.User{
		ID: id, Name: strings.TrimPrefix(id, "usr_"), PasswordHash: "$argon2id$x", CreatedAt: r.Now(),
	}
	if err := r.store.CreateUser(r.t.Context(), u); err != nil {
		r.t.Fatal(err)
	}
	return u
}

func link(userID string) delegation.Request {
	return delegation.Request{Provider: "corp", Purpose: delegation.PurposeLink, UserID: userID}
}

func TestLink(t *testing.T) {
	t.Run("AS-217: an account there is tied to who is signed in here, and signs them in from then on",
		func(t *testing.T) {
			r := newRig(t, nil)
			u := r.local("usr_ada")
			a, err := r.connect(r.leave(link(u.ID)))
			if err != nil || a.User.ID != u.ID || !r.upstream(a.Upstream).Linked || r.rows("sessions") != 0 {
				t.Fatalf("got %+v, %v", a, err)
			}
			if in, _ := r.signIn(""); in.User.ID != u.ID {
				t.Errorf("signed in as %s", in.User.ID)
			}
			if r.Log.Events(audit.ProviderLinked) != 1 {
				t.Error("no audit event")
			}
			ids, err := r.Identities(t.Context(), u.ID)
			if err != nil || len(ids) != 1 || ids[0].Subject != fakeidp.Alice.Subject || ids[0].Label == "" {
				t.Errorf("got %+v, %v", ids, err)
			}
		})
	t.Run("AS-217: an account of another person is not tied, and its tokens are revoked", func(t *testing.T) {
		r := newRig(t, nil)
		r.signIn("") // alice is a separate user
		u := r.local("usr_mallory")
		if _, err := r.come(r.leave(link(u.ID)), "corp"); code(err) != oauth.AccessDenied {
			t.Errorf("got %v", err)
		}
		r.Close()
		if n := len(r.up.Sessions(fakeidp.Alice.Subject)); n != 1 {
			t.Errorf("%d sessions live at the provider, want 1", n)
		}
		if r.rows("upstreams") != 1 || r.rows("identities") != 1 {
			t.Error("something was stored")
		}
	})
	t.Run("AS-217: the user was deleted meanwhile", func(t *testing.T) {
		r := newRig(t, nil)
		u := r.local("usr_ada")
		b := r.leave(link(u.ID))
		if err := r.store.DeleteUser(t.Context(), u.ID, r.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := r.come(b, "corp"); code(err) != oauth.AccessDenied {
			t.Errorf("got %v", err)
		}
		r.nothingMade()
	})
	t.Run("AS-219: a disabled user does not come in, and nothing is left of it", func(t *testing.T) {
		r := newRig(t, nil)
		a, _ := r.signIn("")
		if err := r.store.SetUserDisabled(t.Context(), a.User.ID, true, r.Now()); err != nil {
			t.Fatal(err)
		}
		sessions := r.rows("upstreams")
		if _, err := r.come(r.leave(signIn), "corp"); code(err) != oauth.AccessDenied {
			t.Errorf("got %v", err)
		}
		if r.rows("upstreams") != sessions || r.rows("sessions") != 0 {
			t.Error("something was stored")
		}
		if err := r.Check(t.Context(), a.Upstream, time.Hour); !errors.Is(err, storage.ErrRevoked) {
			t.Errorf("the earlier session: %v", err)
		}
	})
}

func TestRulesApplied(t *testing.T) {
	t.Run("AS-223: whom the rules do not admit gets no account, and the tokens are given back", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Connectors[0].Allow.Groups = []string{"staff"} })
		_, err := r.come(r.leave(signIn), "corp")
		if code(err) != oauth.AccessDenied ||
			!strings.Contains(oauth.AsError(err).Description, "may not use this server") {
			t.Errorf("got %v", err)
		}
		if log := r.Log.String(); attempt.CauseOf(err) != attempt.CauseRule ||
			!strings.Contains(err.Error(), `allow.groups of the provider "corp" does not admit alice`) ||
			!strings.Contains(log, `"rule":"groups"`) || !strings.Contains(log, `"account":"alice`) {
			t.Errorf("RU-12: person and rule are not named: %v, %s", err, log)
		}
		r.Close()
		if n := len(r.up.Sessions(fakeidp.Alice.Subject)); n != 0 {
			t.Errorf("%d sessions live at the provider", n)
		}
		r.nothingMade()
	})
	t.Run("AS-217: scopes are kept to those for whom the rule holds, by what is known now", func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Connectors[0].ScopeRules = []ScopeRule{
				{Resource: resource, Scopes: oauth.Scopes{"admin"}, Groups: []string{"staff"}},
			}
		})
		r.up.SetPeople(withGroups(fakeidp.Alice, "staff"))
		a, _ := r.signIn("")
		permitted := func(want ...string) {
			t.Helper()
			got, by, err := r.Permit(t.Context(), a.Upstream, resource, oauth.Scopes{"read", "admin"})
			if err != nil || got.String() != strings.Join(want, " ") {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
			if rule := `scope_rules[0] of the provider "corp"`; (by == rule) != (len(want) < 2) {
				t.Errorf("RU-12: %v because of %q", got, by)
			}
		}
		permitted("read", "admin")
		r.up.SetPeople(withGroups(fakeidp.Alice))
		r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL = time.Minute })
		r.Advance(6 * time.Minute)
		if err := r.Check(t.Context(), a.Upstream, 0); err != nil {
			t.Fatal(err)
		}
		permitted("read")
	})
}

func TestDisconnect(t *testing.T) {
	t.Run("AS-219: what rests on an account that is untied ends, and its tokens are given back", func(t *testing.T) {
		r := newRig(t, nil)
		u := r.local("usr_ada")
		if _, err := r.connect(r.leave(link(u.ID))); err != nil {
			t.Fatal(err)
		}
		a, g := r.signIn("")
		if err := r.Disconnect(t.Context(), u.ID, "corp", fakeidp.Alice.Subject, storage.Hash{}); err != nil {
			t.Fatal(err)
		}
		r.Close()
		if r.active(g) || len(r.up.Sessions(fakeidp.Alice.Subject)) != 0 {
			t.Error("something lives on")
		}
		if end := r.upstream(a.Upstream).EndReason; end != reasonDisconnected {
			t.Errorf("ended for %q", end)
		}
		if r.Log.Events(audit.ProviderEnded) != 2 {
			t.Error("no audit events")
		}
	})
	t.Run("AS-217: no person loses the last way in, nor unties an account that is not theirs", func(t *testing.T) {
		r := newRig(t, nil)
		a, g := r.signIn("")
		if err := r.Disconnect(t.Context(), a.User.ID, "corp", fakeidp.Alice.Subject, storage.Hash{}); !errors.Is(err,
			storage.ErrLast) || !r.active(g) {
			t.Errorf("got %v", err)
		}
		u := r.local("usr_mallory")
		if err := r.Disconnect(t.Context(), u.ID, "corp", fakeidp.Alice.Subject, storage.Hash{}); !errors.Is(err,
			storage.ErrNotFound) || !r.active(g) {
			t.Errorf("got %v", err)
		}
		r.Close()
		if n := len(r.up.Sessions(fakeidp.Alice.Subject)); n != 1 {
			t.Errorf("%d sessions at the provider", n)
		}
	})
}

func TestFarewell(t *testing.T) {
	r := newRig(t, nil)
	for _, reason := range []string{
		reasonRevoked, reasonExpired, reasonLoggedOut, reasonNotAllowed, reasonDisconnected, reasonDisabled,
	} {
		for _, provider := range []string{"corp", "gone"} {
			if text := r.EndNotice(provider, reason).String(); text == "" || strings.Contains(text, "{") {
				t.Errorf("%s %s: %q", provider, reason, text)
			}
		}
	}
	if text := r.EndNotice("corp", "anything").String(); text != "" {
		t.Errorf("got %q", text)
	}
}
