package thirdparty

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func brokering(c *Config) {
	c.Connectors[0].Broker = []BrokerRule{{Resource: resource, Scopes: oauth.Scopes{"profile", "calendar"}}}
}

func TestBroker(t *testing.T) {
	ask := func(a delegation.Result, scopes ...string) delegation.TokenRequest {
		return delegation.TokenRequest{
			Provider: "corp", UserID: a.User.ID, UpstreamID: a.Upstream, Resource: resource, Scopes: scopes,
		}
	}
	t.Run("RS-202 AS-229: a resource server with a rule gets the token of the calling user", func(t *testing.T) {
		r := newRig(t, brokering)
		alice, _ := r.signIn("")
		bob, _ := r.signIn(fakeidp.Bob.Email)
		got, err := r.Token(t.Context(), ask(alice, "profile"))
		if err != nil || got.Type != "Bearer" || !got.Scopes.Has("profile") || got.ExpiresAt.IsZero() {
			t.Fatalf("got %v, %v", got.Scopes, err)
		}
		held, _ := r.open(r.upstream(alice.Upstream))
		if got.Token != held.Tokens.Access {
			t.Error("it is another token")
		}
		crossed := ask(alice, "profile")
		crossed.UpstreamID = bob.Upstream // another user's session is ignored
		if got, err := r.Token(t.Context(), crossed); err != nil || got.Token != held.Tokens.Access {
			t.Errorf("RS-203: got another person's token, %v", err)
		}
	})
	for _, tt := range []struct {
		name string
		edit func(*delegation.TokenRequest)
		code oauth.Code
	}{
		{"AS-229: another resource", func(r *delegation.TokenRequest) { r.Resource = "https://other.example/mcp" },
			oauth.InvalidTarget},
		{"AS-229: an unknown provider", func(r *delegation.TokenRequest) { r.Provider = "nobody" },
			oauth.InvalidTarget},
		{"AS-229: a scope that the rule does not have, though the person granted it",
			func(r *delegation.TokenRequest) { r.Scopes = oauth.Scopes{"email"} }, oauth.InvalidScope},
		{"RS-202: a scope that the person has not granted",
			func(r *delegation.TokenRequest) { r.Scopes = oauth.Scopes{"calendar"} }, oauth.InteractionRequired},
		{"RS-202: all of the rule, which the person has not granted",
			func(r *delegation.TokenRequest) { r.Scopes = nil }, oauth.InteractionRequired},
		{"RS-202: a user who never was there",
			func(r *delegation.TokenRequest) { r.UserID, r.UpstreamID = "usr_local", "" }, oauth.InteractionRequired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, brokering)
			a, _ := r.signIn("")
			q := ask(a, "profile")
			tt.edit(&q)
			if got, err := r.Token(t.Context(), q); code(err) != tt.code || got.Token != "" {
				t.Errorf("got %v, want %s", err, tt.code)
			}
		})
	}
	t.Run("AS-218: no token once the provider has ended the session", func(t *testing.T) {
		r := newRig(t, brokering)
		a, g := r.signIn("")
		r.up.RevokeAll(fakeidp.Alice.Subject)
		r.Advance(6 * time.Minute)
		if _, err := r.Token(t.Context(), ask(a, "profile")); code(err) != oauth.InteractionRequired || r.active(g) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("AS-218: a detached sign-in stays, but its token is gone when the provider renews no more",
		func(t *testing.T) {
			r := newRig(t, func(c *Config) { brokering(c); c.Connectors[0].Detached = true })
			r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL = 2 * time.Minute })
			a, g := r.signIn("")
			first, err := r.Token(t.Context(), ask(a, "profile"))
			if err != nil {
				t.Fatal(err)
			}
			r.Advance(90 * time.Second)
			if got, err := r.Token(t.Context(), ask(a, "profile")); err != nil || got.Token == first.Token {
				t.Errorf("not renewed: %v", err)
			}
			r.up.RevokeAll(fakeidp.Alice.Subject)
			r.Advance(90 * time.Second)
			for range 2 {
				if _, err := r.Token(t.Context(), ask(a, "profile")); code(err) != oauth.InteractionRequired {
					t.Errorf("got %v", err)
				}
			}
			if err := r.Check(t.Context(), a.Upstream, time.Second); err != nil || !r.active(g) {
				t.Errorf("the sign-in: %v", err)
			}
		})
	t.Run("AS-219: a token that is about to end is renewed first", func(t *testing.T) {
		r := newRig(t, brokering)
		r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL = 4 * time.Minute })
		a, _ := r.signIn("")
		first, err := r.Token(t.Context(), ask(a, "profile"))
		if err != nil {
			t.Fatal(err)
		}
		r.Advance(3*time.Minute + time.Second)
		second, err := r.Token(t.Context(), ask(a, "profile"))
		if err != nil || second.Token == first.Token || second.ExpiresAt.Sub(r.Now()) <= time.Minute {
			t.Errorf("got the same: %v, until %v, %v", first.Token == second.Token, second.ExpiresAt, err)
		}
		r.up.FailAll(fakeidp.Down) // a token that is valid for another moment is better than an error
		r.Advance(3*time.Minute + 30*time.Second)
		if _, err := r.Token(t.Context(), ask(a, "profile")); err != nil {
			t.Errorf("down: %v", err)
		}
		r.Advance(time.Minute)
		if got, err := r.Token(t.Context(), ask(a, "profile")); err == nil {
			t.Errorf("an expired token was given out, of %v", got.ExpiresAt)
		}
	})
	t.Run("RS-202: what was missing is granted, in addition to what was there, and is found", func(t *testing.T) {
		r := newRig(t, brokering)
		a, _ := r.signIn("")
		b := r.leave(delegation.Request{
			Provider: "corp", Purpose: delegation.PurposeExtend, UserID: a.User.ID, Scopes: oauth.Scopes{"calendar"},
		})
		if !strings.Contains(b.URL, "calendar") {
			t.Errorf("not asked for: %s", b.URL)
		}
		got, err := r.come(b, "corp")
		if err != nil || got.User.ID != a.User.ID {
			t.Fatal(err)
		}
		token, err := r.Token(t.Context(), ask(a, "calendar", "profile"))
		if err != nil || !token.Scopes.Has("calendar", "profile") {
			t.Errorf("got %v, %v", token.Scopes, err)
		}
		if r.rows("sessions") != 1 {
			t.Error("RS-200: a request for more scopes signs no person in")
		}
		// A request for more scopes replaces the linked session with one that has both.
		b = r.leave(delegation.Request{
			Provider: "corp", Purpose: delegation.PurposeExtend, UserID: a.User.ID, Scopes: oauth.Scopes{"tasks"},
		})
		if !strings.Contains(b.URL, "calendar") || !strings.Contains(b.URL, "tasks") {
			t.Errorf("earlier scopes are not requested: %s", b.URL)
		}
	})
	t.Run("RFC 6749 5.1: a provider that does not say which scopes it granted has granted all that were asked",
		func(t *testing.T) {
			r := newRig(t, brokering)
			r.up.Behave(func(b *fakeidp.Behaviour) { b.NoScope = true })
			a, _ := r.signIn("")
			if _, err := r.Token(t.Context(), ask(a, "calendar")); code(err) != oauth.InteractionRequired {
				t.Errorf("before: %v", err)
			}
			b := r.leave(delegation.Request{
				Provider: "corp", Purpose: delegation.PurposeExtend, UserID: a.User.ID,
				Scopes: oauth.Scopes{"calendar"},
			})
			if _, err := r.come(b, "corp"); err != nil {
				t.Fatal(err)
			}
			for range 2 { // also after a renewal
				if got, err := r.Token(t.Context(), ask(a, "calendar", "profile")); err != nil ||
					!got.Scopes.Has("calendar", "profile") {
					t.Errorf("got %v, %v", got.Scopes, err)
				}
				r.Advance(time.Hour)
			}
		})
	t.Run("RS-202: what was asked for and not granted stays missing", func(t *testing.T) {
		r := newRig(t, brokering)
		r.up.Behave(func(b *fakeidp.Behaviour) { b.Grant = []string{"openid", "profile", "offline_access"} })
		a, _ := r.signIn("")
		b := r.leave(delegation.Request{
			Provider: "corp", Purpose: delegation.PurposeExtend, UserID: a.User.ID, Scopes: oauth.Scopes{"calendar"},
		})
		if _, err := r.come(b, "corp"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Token(t.Context(), ask(a, "calendar")); code(err) != oauth.InteractionRequired {
			t.Errorf("got %v", err)
		}
	})
}
