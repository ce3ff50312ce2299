package thirdparty

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	await "github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// plainly changes the connector to plain OAuth 2.0.
func plainly(r *rig, c *Connector) {
	*c = Connector{
		ID: c.ID, Type: "oauth2", Name: "Plain", ClientID: r.up.ClientID, ClientSecret: r.up.ClientSecret,
		Scopes:           oauth.Scopes{"profile"},
		AuthorizationURL: r.up.URL + "/authorize", TokenURL: r.up.URL + "/token", UserInfoURL: r.up.URL + "/userinfo",
		RevocationURL: r.up.URL + "/revoke",
		Broker:        c.Broker, CheckEvery: c.CheckEvery, Outage: c.Outage,
	}
}

// unnamed removes everything from the metadata that identifies the owner of a token.
func unnamed(b *fakeidp.Behaviour) {
	b.EditMetadata = func(m map[string]any) { delete(m, "userinfo_endpoint"); delete(m, "introspection_endpoint") }
	b.NoIDTokenAtRefresh = true
}

// renewing returns a rig whose access tokens are renewed after a minute.
func renewing(t *testing.T, plain bool, edit func(*fakeidp.Behaviour)) *rig {
	r := newRig(t, brokering)
	if plain {
		r.Delegation = r.another(r.store, func(c *Config) { brokering(c); plainly(r, &c.Connectors[0]) })
	}
	r.up.Behave(func(b *fakeidp.Behaviour) { b.AccessTTL, b.NoIDToken = 2*time.Minute, plain })
	if edit != nil {
		r.up.Behave(edit)
	}
	return r
}

// handed returns the token that a resource server gets for the user.
func (r *rig) handed(d *Delegation, a delegation.Result) (delegation.Token, error) {
	return d.Token(r.t.Context(), delegation.TokenRequest{
		Provider: "corp", UserID: a.User.ID, UpstreamID: a.Upstream, Resource: resource,
		Scopes: oauth.Scopes{"profile"},
	})
}

// Security PM2, AS-217, OpenID Connect Core §12.2: a renewal with another account's tokens ends the
// session, and no server gets the tokens.
func TestRenewedWithAnother(t *testing.T) {
	bob := fakeidp.Bob.Subject
	for _, tt := range []struct {
		name  string
		plain bool
		edit  func(*fakeidp.Behaviour)
		late  bool // the response with the tokens is invalid: user info reveals the owner at the next question
	}{
		{name: "plain OAuth 2.0", plain: true},
		{name: "no ID token", edit: func(b *fakeidp.Behaviour) { b.NoIDTokenAtRefresh = true }},
		{name: "an ID token of that person"},
		{name: "an ID token whose signature is wrong",
			edit: func(b *fakeidp.Behaviour) { b.Sign = fakeidp.SignWrongKey }, late: true},
		{name: "an ID token about the right person, and a token of another", late: true,
			edit: func(b *fakeidp.Behaviour) {
				b.EditIDToken = func(_, claims map[string]any) {
					claims["sub"], claims["at_hash"] = fakeidp.Alice.Subject, "another"
				}
			}},
		{name: "an ID token about the right person, that is bound to no access token",
			edit: func(b *fakeidp.Behaviour) {
				b.EditIDToken = func(_, claims map[string]any) {
					claims["sub"] = fakeidp.Alice.Subject
					delete(claims, "at_hash")
				}
			}},
		{name: "introspection alone tells", edit: func(b *fakeidp.Behaviour) {
			b.NoIDTokenAtRefresh = true
			b.EditMetadata = func(m map[string]any) { delete(m, "userinfo_endpoint") }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := renewing(t, tt.plain, func(b *fakeidp.Behaviour) {
				if tt.edit != nil && b.EditMetadata == nil {
					var m fakeidp.Behaviour
					tt.edit(&m)
					b.EditMetadata = m.EditMetadata
				}
			})
			a, g := r.signIn("")
			before, err := r.handed(r.Delegation, a)
			if err != nil {
				t.Fatal(err)
			}
			r.up.Behave(func(b *fakeidp.Behaviour) {
				b.RenewAs = bob
				if tt.edit != nil {
					tt.edit(b)
				}
			})
			r.Advance(90 * time.Second)
			if tt.late {
				if got, err := r.handed(r.Delegation, a); err != nil || got.Token != before.Token {
					t.Errorf("before it is known whose they are: got another token, %v", err)
				}
			}
			if got, err := r.handed(r.Delegation, a); code(err) != oauth.InteractionRequired || got.Token != "" {
				t.Errorf("a resource server got %v", err)
			}
			if err := r.Check(t.Context(), a.Upstream, time.Hour); !errors.Is(err, storage.ErrRevoked) || r.active(g) {
				t.Errorf("got %v, want %v", err, storage.ErrRevoked)
			}
			u := r.upstream(a.Upstream)
			if u.EndReason != reasonMistaken || r.EndNotice("corp", u.EndReason).String() == "" {
				t.Errorf("ended for %q", u.EndReason)
			}
			r.Close()
			if live := r.up.Sessions(bob); len(live) != 0 {
				t.Error("the tokens were not given back")
			}
		})
	}
}

// Security PM2: renewed tokens are stored, but not used until the provider has confirmed their
// owner.
func TestRenewedAndNotNamed(t *testing.T) {
	for _, plain := range []bool{true, false} {
		t.Run("AS-219: user info is down at a renewal", func(t *testing.T) {
			r := renewing(t, plain, func(b *fakeidp.Behaviour) { b.NoIDTokenAtRefresh = true })
			a, g := r.signIn("")
			before, err := r.handed(r.Delegation, a)
			if err != nil {
				t.Fatal(err)
			}
			r.Advance(90 * time.Second)
			r.up.Fail(fakeidp.UserInfo, fakeidp.Error500)
			was := r.upstream(a.Upstream)
			for range 3 {
				if got, err := r.handed(r.Delegation, a); err != nil || got.Token != before.Token {
					t.Errorf("the earlier token is good for 30 s: got another one, %v", err)
				}
			}
			if u := r.upstream(a.Upstream); !u.CheckedAt.Equal(was.CheckedAt) || u.Version == was.Version {
				t.Errorf("checked at %v, version %d: confirmed, or lost", u.CheckedAt, u.Version)
			}
			r.Advance(time.Minute)
			if got, err := r.handed(r.Delegation, a); code(err) != oauth.TemporarilyUnavailable || got.Token != "" {
				t.Errorf("the earlier token has expired: got %v", err)
			}
			r.up.Heal()
			r.Advance(20 * time.Second)
			got, err := r.handed(r.Delegation, a)
			if err != nil || got.Token == before.Token || !r.active(g) {
				t.Errorf("healed: %v", err)
			}
			if n := r.up.Calls(fakeidp.Token); n != 2 {
				t.Errorf("%d token requests, want one of the sign-in and one renewal", n)
			}
		})
	}
	t.Run("AS-219: another replica goes on where one has ended", func(t *testing.T) {
		r := renewing(t, true, nil)
		a, _ := r.signIn("")
		r.Advance(90 * time.Second)
		c, u := r.byID["corp"], r.upstream(a.Upstream)
		held, err := r.open(u)
		if err != nil {
			t.Fatal(err)
		}
		renewed, _, err := c.Refresh(t.Context(), held.Tokens)
		if err != nil {
			t.Fatal(err)
		}
		held.Renewed = &renewed
		if err := r.take(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		if _, err := r.keep(t.Context(), u, held); err != nil { // the process stops here
			t.Fatal(err)
		}
		r.Advance(claimTTL)
		other := r.another(r.store, func(c *Config) { brokering(c); plainly(r, &c.Connectors[0]) })
		other.round(t.Context())
		got, err := r.handed(other, a)
		if err != nil || got.Token != renewed.Access {
			t.Errorf("got another token, %v", err)
		}
	})
	t.Run("RFC 7662 2.2: introspection that names the person is good enough", func(t *testing.T) {
		r := renewing(t, false, func(b *fakeidp.Behaviour) {
			b.EditMetadata = func(m map[string]any) { delete(m, "userinfo_endpoint") }
			b.NoIDTokenAtRefresh = true
		})
		a, _ := r.signIn("")
		before, _ := r.handed(r.Delegation, a)
		r.Advance(90 * time.Second)
		if got, err := r.handed(r.Delegation, a); err != nil || got.Token == before.Token {
			t.Errorf("got the earlier one, %v", err)
		}
	})
	t.Run("SP-06: a provider that cannot say whose a token is keeps its sign-ins, and no resource server gets the token",
		func(t *testing.T) {
			r := renewing(t, false, unnamed)
			a, g := r.signIn("")
			for range 3 {
				r.Advance(90 * time.Second)
				if err := r.Check(t.Context(), a.Upstream, time.Second); err != nil || !r.active(g) {
					t.Errorf("the sign-in: %v", err)
				}
				if got, err := r.handed(r.Delegation, a); code(err) != oauth.InteractionRequired || got.Token != "" {
					t.Errorf("got %v", err)
				}
			}
			r.up.RevokeAll(fakeidp.Alice.Subject)
			r.Advance(90 * time.Second)
			if err := r.Check(t.Context(), a.Upstream, time.Second); !errors.Is(err, storage.ErrRevoked) {
				t.Errorf("revoked: got %v", err)
			}
		})
	t.Run("OpenID Connect Core 12.2: a renewal with an ID token that does not verify confirms nothing",
		func(t *testing.T) {
			r := renewing(t, false, unnamed)
			a, _ := r.signIn("")
			r.up.Behave(func(b *fakeidp.Behaviour) { b.NoIDTokenAtRefresh, b.Sign = false, fakeidp.SignWrongKey })
			was := r.upstream(a.Upstream)
			for range 3 {
				r.Advance(90 * time.Second)
				if err := r.Check(t.Context(), a.Upstream, time.Second); err != nil {
					t.Errorf("within the time for outages: %v", err)
				}
			}
			if u := r.upstream(a.Upstream); !u.CheckedAt.Equal(was.CheckedAt) {
				t.Error("the session was confirmed")
			}
			r.Advance(time.Hour)
			if err := r.Check(t.Context(), a.Upstream, time.Second); code(err) != oauth.TemporarilyUnavailable {
				t.Errorf("after that: %v", err)
			}
			r.up.Behave(func(b *fakeidp.Behaviour) { b.Sign = fakeidp.SignGood })
			r.Advance(time.Minute)
			if err := r.Check(t.Context(), a.Upstream, time.Second); err != nil {
				t.Errorf("mended: %v", err)
			}
		})
}

// Security PM2, race: a renewal returns another account's tokens and the provider is slow to reveal
// it. No replica hands them out in the meantime.
func TestRacesOfARenewal(t *testing.T) {
	r := newRig(t, nil)
	all := r.replicas(t, 3)
	for _, d := range all {
		d.byID["corp"].Broker = []BrokerRule{{Resource: resource, Scopes: oauth.Scopes{"profile"}}}
	}
	for round := range 6 {
		r.up.Behave(func(b *fakeidp.Behaviour) {
			b.AccessTTL, b.NoIDTokenAtRefresh, b.RenewAs = 2*time.Minute, true, ""
		})
		a, g := r.signIn("")
		own, err := r.handed(all[0], a)
		if err != nil {
			t.Fatal(err)
		}
		r.up.Behave(func(b *fakeidp.Behaviour) { b.RenewAs = fakeidp.Bob.Subject })
		r.Advance(90 * time.Second)
		answer, before := make(chan struct{}), r.up.Calls(fakeidp.UserInfo)
		r.up.Fail(fakeidp.UserInfo, fakeidp.Fault{Held: answer})
		var group sync.WaitGroup
		for i := range 24 {
			switch i {
			case 8:
				await.Until(t, "a renewal asks for the user info",
					func() bool { return r.up.Calls(fakeidp.UserInfo) > before })
			case 9 + 2*round: // each round has more callers waiting for the answer
				close(answer)
			}
			group.Go(func() {
				d := all[i%len(all)]
				if i%8 == 7 {
					d.round(t.Context())
					return
				}
				if got, err := r.handed(d, a); err == nil && got.Token != own.Token {
					t.Errorf("round %d: a resource server got another token", round)
				}
			})
		}
		group.Wait()
		if r.active(g) || r.upstream(a.Upstream).EndReason != reasonMistaken {
			t.Errorf("round %d: the session stands", round)
		}
		if v := r.up.Violations(); len(v) > 0 {
			t.Fatalf("round %d: the upstream reproaches us: %q", round, v)
		}
	}
}
