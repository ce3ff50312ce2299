package thirdparty

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// TestEnds: any end of a session at the provider also ends everything here that depends on it.
func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		edit   func(*Connector)
		before func(*fakeidp.Behaviour)
		end    func(r *rig)
		reason string
	}{
		{name: "AS-218 AS-219: the account is disabled there (user info says no, and so does refresh)",
			end: func(r *rig) { r.up.RevokeAll(fakeidp.Alice.Subject) }, reason: reasonRevoked},
		{name: "AS-218 AS-219: the account is gone there",
			end: func(r *rig) { r.up.SetPeople(fakeidp.Bob) }, reason: reasonRevoked},
		{name: "AS-218: invalid_grant when renewing",
			before: func(b *fakeidp.Behaviour) { b.AccessTTL = 2 * time.Minute },
			end: func(r *rig) {
				r.up.Behave(func(b *fakeidp.Behaviour) { b.RefreshDenied = "invalid_grant" })
			}, reason: reasonRevoked},
		{name: "AS-218: no refresh token, and user info says no",
			before: func(b *fakeidp.Behaviour) { b.NoRefresh = true },
			end:    func(r *rig) { r.up.RevokeAll(fakeidp.Alice.Subject) }, reason: reasonRevoked},
		{name: "AS-218: tokens without an end, and user info says no",
			before: func(b *fakeidp.Behaviour) { b.NoRefresh, b.AccessTTL = true, -1 },
			end:    func(r *rig) { r.up.RevokeAll(fakeidp.Alice.Subject) }, reason: reasonRevoked},
		{name: "AS-219: no refresh token, and the access token has expired",
			before: func(b *fakeidp.Behaviour) { b.NoRefresh, b.AccessTTL = true, 3*time.Minute },
			end:    func(*rig) {}, reason: reasonExpired},
		{name: "AS-218: user info believes the token until it expires, and refresh says no",
			edit: func(c *Connector) { c.CheckBy = checkByRefresh },
			end: func(r *rig) {
				r.up.Behave(func(b *fakeidp.Behaviour) { b.RefreshDenied = "invalid_grant" })
			}, reason: reasonRevoked},
		{name: "AS-218: introspection says that it is not active",
			edit: func(c *Connector) { c.IntrospectionURL = "introspect" },
			end:  func(r *rig) { r.up.RevokeAll(fakeidp.Alice.Subject) }, reason: reasonRevoked},
		{name: "AS-219: the rules do not hold any more",
			edit: func(c *Connector) { c.Allow.Groups = []string{"staff"} },
			end: func(r *rig) {
				r.up.EditPerson(fakeidp.Alice.Subject,
					func(p *fakeidp.Person) { p.Claims = map[string]any{"groups": []string{"guests"}} })
			}, reason: reasonNotAllowed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				if tt.edit != nil {
					tt.edit(&c.Connectors[0])
				}
				if at := &c.Connectors[0].IntrospectionURL; *at != "" {
					*at = c.Connectors[0].Issuer + "/introspect"
				}
			})
			r.up.SetPeople(withGroups(fakeidp.Alice, "staff"), fakeidp.Bob)
			if tt.before != nil {
				r.up.Behave(tt.before)
			}
			a, g := r.signIn(fakeidp.Alice.Email)
			if err := r.Check(t.Context(), a.Upstream, 0); err != nil || !r.active(g) {
				t.Fatalf("before: %v", err)
			}
			tt.end(r)
			r.Advance(4 * time.Minute)
			if err := r.Check(t.Context(), a.Upstream, time.Second); !errors.Is(err, storage.ErrRevoked) {
				t.Fatalf("got %v, want %v", err, storage.ErrRevoked)
			}
			u := r.upstream(a.Upstream)
			if u.EndReason != tt.reason || len(u.Sealed) != 0 {
				t.Errorf("ended for %q with %d bytes sealed, want %q and none", u.EndReason, len(u.Sealed), tt.reason)
			}
			if r.active(g) || r.rows("sessions") != 0 {
				t.Error("AS-219: grant or browser session live on")
			}
			if r.Log.Events(audit.ProviderEnded) != 1 {
				t.Error("no audit event")
			}
			if r.EndNotice("corp", u.EndReason).String() == "" {
				t.Error("nothing to tell the person")
			}
			if err := r.Check(t.Context(), a.Upstream, time.Hour); !errors.Is(err, storage.ErrRevoked) {
				t.Errorf("asked again: %v", err)
			}
			if _, _, err := r.Permit(t.Context(), a.Upstream, resource, oauth.Scopes{"mcp"}); !errors.Is(err,
				storage.ErrRevoked) {
				t.Errorf("Permit: %v", err)
			}
		})
	}
}

func withGroups(p fakeidp.Person, groups ...string) fakeidp.Person {
	p.Claims = map[string]any{"groups": groups}
	return p
}

func TestOutage(t *testing.T) {
	for name, fault := range map[string]fakeidp.Fault{
		"down": fakeidp.Down, "500": fakeidp.Error500, "429": fakeidp.Error429, "a page": fakeidp.HTML,
		"huge": fakeidp.Huge,
	} {
		t.Run("AS-223: an outage ("+name+") ends nothing: the last answer counts for a while, then it is unknown",
			func(t *testing.T) {
				r := newRig(t, nil)
				a, g := r.signIn("")
				r.up.FailAll(fault)
				r.Advance(30 * time.Minute)
				if err := r.Check(t.Context(), a.Upstream, 0); err != nil {
					t.Errorf("within the time for outages: %v", err)
				}
				r.Advance(31 * time.Minute)
				err := r.Check(t.Context(), a.Upstream, 0)
				if code(err) != oauth.TemporarilyUnavailable || oauth.AsError(err).RetryAfter == 0 {
					t.Errorf("got %v", err)
				}
				r.Advance(24 * time.Hour)
				if err := r.Check(t.Context(), a.Upstream, 0); code(err) != oauth.TemporarilyUnavailable {
					t.Errorf("a day later: got %v", err)
				}
				if !r.active(g) || !r.upstream(a.Upstream).EndedAt.IsZero() {
					t.Error("it was ended")
				}
				r.up.Heal()
				r.Advance(time.Minute)
				if err := r.Check(t.Context(), a.Upstream, 0); err != nil {
					t.Errorf("healed: %v", err)
				}
			})
	}
	t.Run("AS-223: a provider that is down is left alone after a few attempts, and one event says so",
		func(t *testing.T) {
			r := newRig(t, nil)
			var ids []string
			for range 8 {
				a, _ := r.signIn("")
				ids = append(ids, a.Upstream)
			}
			r.Advance(10 * time.Minute)
			r.up.Forget()
			r.up.FailAll(fakeidp.Down)
			for _, id := range ids {
				if err := r.Check(t.Context(), id, 0); err != nil {
					t.Error(err)
				}
			}
			if u := r.upstream(ids[7]); u.Version != 1 {
				t.Error("the last one was claimed although no provider was to be asked")
			}
			// the HTTP client tries a broken connection twice
			if n := r.up.Calls(fakeidp.UserInfo); n > tolerated*2 {
				t.Errorf("asked %d times", n)
			}
			if n := r.Log.Events(audit.ProviderUnreachable); n != 1 {
				t.Errorf("%d events, want 1", n)
			}
		})
	t.Run("AS-217: an answer about another person does not count", func(t *testing.T) {
		r := newRig(t, nil)
		r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL = 12 * time.Hour })
		a, g := r.signIn("")
		r.up.Behave(func(b *fakeidp.Behaviour) {
			b.EditUserInfo = func(claims map[string]any) { claims["sub"] = fakeidp.Bob.Subject }
		})
		r.Advance(6 * time.Minute)
		if err := r.Check(t.Context(), a.Upstream, 0); err != nil || !r.active(g) {
			t.Errorf("got %v", err)
		}
		r.Advance(time.Hour)
		if err := r.Check(t.Context(), a.Upstream, 0); code(err) != oauth.TemporarilyUnavailable {
			t.Errorf("later: %v", err)
		}
		if held, err := r.open(r.upstream(a.Upstream)); err != nil || held.Profile.Subject != fakeidp.Alice.Subject {
			t.Errorf("got %s, %v", held.Profile.Subject, err)
		}
	})
	t.Run("AS-223: our client is refused there (invalid_client): no person is signed out for it", func(t *testing.T) {
		r := newRig(t, nil)
		r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL = 2 * time.Minute })
		a, g := r.signIn("")
		r.up.Fail(fakeidp.Token, fakeidp.OAuthError(401, "invalid_client"))
		r.Advance(4 * time.Minute)
		if err := r.Check(t.Context(), a.Upstream, time.Second); err != nil || !r.active(g) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("AS-223: a slow provider does not hold a caller that gives up, and its answer is kept", func(t *testing.T) {
		r := newRig(t, nil)
		r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL = 2 * time.Minute })
		a, _ := r.signIn("")
		answer := make(chan struct{})
		r.up.Forget()
		r.up.Fail(fakeidp.Token, fakeidp.Fault{Held: answer})
		r.Advance(4 * time.Minute)
		before := r.upstream(a.Upstream)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			r.asked(fakeidp.Token)
			cancel()
		}()
		if err := r.Check(ctx, a.Upstream, time.Second); code(err) != oauth.TemporarilyUnavailable {
			t.Errorf("got %v", err)
		}
		close(answer)
		r.Close() // returns when the answer is stored
		if u := r.upstream(a.Upstream); u.Version == before.Version || !u.CheckedAt.After(before.CheckedAt) {
			t.Errorf("the answer was lost: %+v", u)
		}
	})
}

// hostile is a provider whose answers cause a panic.
type hostile struct{ provider.Provider }

func (hostile) Inspect(context.Context, provider.Tokens) (*provider.Profile, error) {
	panic("an unexpected document")
}

func (hostile) Owner(context.Context, provider.Tokens) (*provider.Profile, error) {
	panic("an unexpected document")
}

func (hostile) Refresh(context.Context, provider.Tokens) (provider.Tokens, *provider.Profile, error) {
	panic("an unexpected document")
}

func TestPanic(t *testing.T) {
	r := newRig(t, nil)
	a, g := r.signIn("")
	c := r.byID["corp"]
	c.Provider = hostile{c.Provider}
	r.Advance(6 * time.Minute)
	if err := r.Check(t.Context(), a.Upstream, 0); err != nil || !r.active(g) {
		t.Errorf("AS-223: got %v", err)
	}
	r.Advance(time.Hour)
	if err := r.Check(t.Context(), a.Upstream, 0); code(err) != oauth.TemporarilyUnavailable {
		t.Errorf("AS-223: later: got %v", err)
	}
}

func TestFreshness(t *testing.T) {
	t.Run("AS-218: the provider is asked again when its word is older than asked for, and not before",
		func(t *testing.T) {
			r := newRig(t, nil)
			a, _ := r.signIn("")
			r.up.Forget()
			asked := func(maxAge time.Duration, want int) {
				t.Helper()
				if err := r.Check(t.Context(), a.Upstream, maxAge); err != nil {
					t.Fatal(err)
				}
				if n := r.up.Calls(fakeidp.UserInfo); n != want {
					t.Errorf("asked %d times, want %d", n, want)
				}
			}
			asked(0, 0)
			r.Advance(11 * time.Second)
			asked(0, 0)
			asked(10*time.Second, 1)
			asked(10*time.Second, 1)
			r.Advance(5 * time.Minute)
			asked(0, 2)
		})
	t.Run("AS-219: tokens are renewed ahead of their end", func(t *testing.T) {
		r := newRig(t, nil)
		a, _ := r.signIn("")
		r.Advance(59*time.Minute + time.Second)
		if err := r.Check(t.Context(), a.Upstream, 0); err != nil {
			t.Fatal(err)
		}
		held, err := r.open(r.upstream(a.Upstream))
		if err != nil || held.Tokens.Expires.Sub(r.Now()) < 59*time.Minute {
			t.Errorf("got %v, %v", held.Tokens.Expires, err)
		}
		for range 5 { // repeat, each time with the new refresh token
			r.Advance(time.Hour)
			if err := r.Check(t.Context(), a.Upstream, 0); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("AS-219: an access token that was withdrawn early is renewed, not the end", func(t *testing.T) {
		r := newRig(t, nil)
		a, g := r.signIn("")
		r.up.ExpireAccess()
		r.Advance(6 * time.Minute)
		if err := r.Check(t.Context(), a.Upstream, 0); err != nil || !r.active(g) {
			t.Error(err)
		}
	})
	t.Run("AS-219: rules see what user info says after a renewal that says nothing", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Connectors[0].Allow.Groups = []string{"staff"} })
		r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL, b.NoIDTokenAtRefresh = 2*time.Minute, true })
		p := fakeidp.Alice
		p.UserInfoOnly = map[string]any{"groups": []string{"staff"}}
		r.up.SetPeople(p)
		a, g := r.signIn("")
		r.up.EditPerson(p.Subject, func(p *fakeidp.Person) { p.UserInfoOnly = nil })
		r.Advance(2 * time.Minute)
		if err := r.Check(t.Context(), a.Upstream, time.Second); !errors.Is(err, storage.ErrRevoked) || r.active(g) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("AS-218: of many requests at once one asks", func(t *testing.T) {
		r := newRig(t, nil)
		r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL = 2 * time.Minute })
		a, _ := r.signIn("")
		r.Advance(4 * time.Minute)
		r.up.Forget()
		answer := make(chan struct{})
		r.up.Fail(fakeidp.Token, fakeidp.Fault{Held: answer})
		var group sync.WaitGroup
		for range 32 {
			group.Go(func() {
				if err := r.Check(t.Context(), a.Upstream, time.Second); err != nil {
					t.Error(err)
				}
			})
		}
		r.asked(fakeidp.Token)
		close(answer)
		group.Wait()
		if n := r.up.Calls(fakeidp.Token); n != 1 {
			t.Errorf("%d token requests, want 1", n)
		}
	})
	t.Run("AS-217: an unknown session, or one of a removed connector, is not honoured",
		func(t *testing.T) {
			r := newRig(t, nil)
			a, _ := r.signIn("")
			if err := r.Check(t.Context(), "ups_unknown", 0); !errors.Is(err, storage.ErrRevoked) {
				t.Errorf("got %v", err)
			}
			other := r.another(r.store, func(c *Config) { c.Connectors[0].ID = "another" })
			if err := other.Check(t.Context(), a.Upstream, time.Hour); !errors.Is(err, storage.ErrRevoked) {
				t.Errorf("got %v", err)
			}
			if err := r.Check(t.Context(), a.Upstream, time.Hour); err != nil {
				t.Errorf("it was ended: %v", err)
			}
		})
	t.Run("AS-218: detached sign-ins outlive the session at the provider", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Connectors[0].Detached = true })
		a, g := r.signIn("")
		r.up.RevokeAll(fakeidp.Alice.Subject)
		r.Advance(2 * time.Hour)
		r.up.Forget()
		if err := r.Check(t.Context(), a.Upstream, time.Second); err != nil || !r.active(g) {
			t.Error(err)
		}
		if n := len(r.up.Requests("")); n != 0 {
			t.Errorf("asked %d times", n)
		}
		r.Advance(24 * time.Hour)
		r.round(t.Context())
		if err := r.Check(t.Context(), a.Upstream, time.Second); err != nil || !r.active(g) {
			t.Errorf("after the background check: %v", err)
		}
	})
	t.Run("AS-223: a row that was copied over another one does not open, and ends nothing", func(t *testing.T) {
		r := newRig(t, nil)
		alice, _ := r.signIn("")
		bob, _ := r.signIn(fakeidp.Bob.Email)
		if _, err := r.db.Exec(
			"UPDATE upstreams SET sealed = (SELECT sealed FROM upstreams WHERE id = ?) WHERE id = ?", alice.Upstream,
			bob.Upstream); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Permit(t.Context(), bob.Upstream, resource,
			oauth.Scopes{"mcp"}); code(err) != oauth.TemporarilyUnavailable {
			t.Errorf("Permit: %v", err)
		}
		r.Advance(2 * time.Hour)
		if err := r.Check(t.Context(), bob.Upstream, 0); code(err) != oauth.TemporarilyUnavailable {
			t.Errorf("Check: %v", err)
		}
		if err := r.Check(t.Context(), alice.Upstream, 0); err != nil {
			t.Errorf("the other one: %v", err)
		}
	})
}
