package thirdparty

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

func TestArrival(t *testing.T) {
	t.Run("AS-217 AS-225: a person comes back, and all is stored at once", func(t *testing.T) {
		r := newRig(t, nil)
		b := r.leave(signIn)
		asked, _ := url.Parse(b.URL)
		q := asked.Query()
		if q.Get("state") != b.State || q.Get("nonce") == "" || q.Get("code_challenge_method") != "S256" ||
			q.Get("redirect_uri") != issuer+"/callback/corp" {
			t.Errorf("asked with %v", q)
		}
		if q.Has("resource") {
			t.Error("SP-06: a resource parameter went upstream")
		}
		if d := b.ExpiresAt.Sub(r.Now()); d > 10*time.Minute {
			t.Errorf("AS-220: the state lives for %v", d)
		}
		s := r.minted()
		a, err := r.Return(t.Context(),
			delegation.AuthorizationResponse{Provider: "corp", Params: b.back, Binding: b.Binding, Session: s})
		if err != nil {
			t.Fatal(err)
		}
		if string(a.Request.Payload) != "the request" || !strings.HasPrefix(a.User.ID, "usr_") ||
			a.User.PasswordHash != "" {
			t.Errorf("got %+v", a)
		}
		v, err := r.store.Visit(t.Context(), storage.VisitKey{Session: s.Hash, Now: r.Now()})
		if err != nil || v.User.ID != a.User.ID || v.Session.UpstreamID != a.Upstream {
			t.Errorf("the session: %+v, %v", v, err)
		}
		u := r.upstream(a.Upstream)
		if u.Subject != fakeidp.Alice.Subject || u.UserID != a.User.ID || u.SessionID == "" || u.Linked ||
			u.Version != 1 {
			t.Errorf("the session there: %+v", u)
		}
		if r.rows("departures") != 0 {
			t.Error("the departure is still there")
		}
		if r.Log.Events(audit.ProviderSignedIn) != 1 {
			t.Error("no audit event")
		}
	})
	t.Run("AS-217: who comes back again is the same user", func(t *testing.T) {
		r := newRig(t, nil)
		first, _ := r.signIn("")
		again, _ := r.signIn("")
		other, _ := r.signIn(fakeidp.Bob.Email)
		if first.User.ID != again.User.ID || first.User.ID == other.User.ID || first.Upstream == again.Upstream {
			t.Errorf("got %s %s %s", first.User.ID, again.User.ID, other.User.ID)
		}
	})
	t.Run("AS-217: an account that gets another one's e-mail address does not become that person", func(t *testing.T) {
		r := newRig(t, nil)
		alice, _ := r.signIn("")
		r.up.SetPeople(fakeidp.Person{
			Subject: "sub-mallory", Login: "mallory", Name: fakeidp.Alice.Name, Email: fakeidp.Alice.Email,
		})
		mallory, _ := r.signIn("")
		if mallory.User.ID == alice.User.ID || mallory.User.Name == alice.User.Name {
			t.Errorf("got %+v and %+v", alice.User, mallory.User)
		}
	})
	t.Run("AS-217: the same person is the same user after the database was lost", func(t *testing.T) {
		r := newRig(t, nil)
		a, _ := r.signIn("")
		p := provider.Profile{Subject: fakeidp.Alice.Subject, Label: "somebody"}
		if got := r.newcomer(r.byID["corp"], p, r.Now()).ID; got != a.User.ID {
			t.Errorf("got %s, want %s", got, a.User.ID)
		}
	})
}

// hurried records the deadline for a provider's answer about the user.
type hurried struct {
	provider.Provider
	within time.Duration
}

func (h *hurried) Exchange(
	ctx context.Context, code, verifier, nonce, redirectURI string,
) (provider.Tokens, provider.Profile, error) {
	until, _ := ctx.Deadline()
	h.within = time.Until(until)
	return h.Provider.Exchange(ctx, code, verifier, nonce, redirectURI)
}

func TestSlowArrival(t *testing.T) {
	r := newRig(t, nil)
	h := &hurried{Provider: r.byID["corp"].Provider}
	r.byID["corp"].Provider = h
	r.signIn("")
	t.Run("AS-223 a provider that takes its time over each of many questions does not hold a browser for minutes",
		func(t *testing.T) {
			if h.within <= 0 || h.within > time.Minute {
				t.Errorf("got %v", h.within)
			}
		})
}

// TestNoRefreshToken: the beginning of a sign-in without a refresh token is logged, because it ends
// with its access token.
func TestNoRefreshToken(t *testing.T) {
	for _, tt := range []struct {
		name     string
		behave   func(*fakeidp.Behaviour)
		detached bool
		want     bool
	}{
		{"a refresh token", func(*fakeidp.Behaviour) {}, false, false},
		{"none", func(b *fakeidp.Behaviour) { b.NoRefresh = true }, false, true},
		{"none, and none is needed", func(b *fakeidp.Behaviour) { b.NoRefresh, b.AccessTTL = true, -1 }, false, false},
		{"none, detached", func(b *fakeidp.Behaviour) { b.NoRefresh = true }, true, false},
	} {
		r := newRig(t, func(c *Config) { c.Connectors[0].Detached = tt.detached })
		r.up.Behave(tt.behave)
		r.signIn("")
		if got := strings.Contains(r.Log.String(), "gave no refresh token"); got != tt.want {
			t.Errorf("RU-12: %s: logged %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestReturnRefused: each refused return gives the client an error and stores nothing.
func TestReturnRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		do    func(r *rig, b *browser) // after the provider has answered
		cause func(b *fakeidp.Behaviour)
		fail  map[fakeidp.Endpoint]fakeidp.Fault
		code  oauth.Code
		says  string
		lost  bool // the request is unknown afterwards
		// reproached: the upstream also sees the violation
		reproached bool
	}{
		{name: "AS-220: no state", do: func(_ *rig, b *browser) { b.back.Del("state") }, code: oauth.InvalidRequest,
			lost: true},
		{name: "AS-220: another state", do: func(_ *rig, b *browser) { b.back.Set("state", secrets.Token("")) },
			code: oauth.InvalidRequest, lost: true},
		{name: "AS-220: two states", do: func(_ *rig, b *browser) { b.back.Add("state", b.State) },
			code: oauth.InvalidRequest, lost: true},
		{name: "AS-220: a browser without the other half", do: func(_ *rig, b *browser) { b.Binding = "" },
			code: oauth.InvalidRequest, lost: true},
		{name: "AS-220: another browser, on a trip of its own",
			do: func(r *rig, b *browser) { b.Binding = r.leave(signIn).Binding }, code: oauth.InvalidRequest,
			lost: true},
		{name: "AS-220: halves the other way round",
			do:   func(_ *rig, b *browser) { b.back.Set("state", b.Binding); b.Binding = b.State },
			code: oauth.InvalidRequest, lost: true},
		{name: "AS-220: after ten minutes", do: func(r *rig, _ *browser) { r.Advance(10 * time.Minute) },
			code: oauth.InvalidRequest, says: "took too long", lost: true},
		{name: "AS-225 RFC 9207: another issuer",
			cause: func(b *fakeidp.Behaviour) { b.ResponseIssuer = "https://evil.example" }, code: oauth.ServerError},
		{name: "AS-225 RFC 9207: the issuer that was promised is missing",
			do: func(_ *rig, b *browser) { b.back.Del("iss") }, code: oauth.ServerError},
		{name: "AS-225 RFC 9207: another issuer beside an error",
			cause: func(b *fakeidp.Behaviour) { b.ResponseIssuer, b.Deny = "https://evil.example", "access_denied" },
			code:  oauth.ServerError},
		{name: "AS-223: denied", cause: func(b *fakeidp.Behaviour) { b.Deny = "access_denied" },
			code: oauth.AccessDenied, says: "At Corp, access was declined"},
		{name: "RU-12: an administrator has to agree",
			cause: func(b *fakeidp.Behaviour) { b.Deny = "consent_required" }, code: oauth.AccessDenied,
			says: "An administrator of your organization may have to approve it"},
		{name: "RU-12: an administrator has to agree, as Entra says it", cause: func(b *fakeidp.Behaviour) {
			b.Deny, b.DenyDescription = "access_denied", "AADSTS90094: The grant requires administrator permission."
		}, code: oauth.AccessDenied, says: "An administrator of your organization may have to approve it"},
		{name: "AS-223: it is busy", cause: func(b *fakeidp.Behaviour) { b.Deny = "temporarily_unavailable" },
			code: oauth.TemporarilyUnavailable, says: "try again"},
		{name: "AS-223: it broke", cause: func(b *fakeidp.Behaviour) { b.Deny = "server_error" },
			code: oauth.ServerError},
		{name: "AS-223: it does not take our client",
			cause: func(b *fakeidp.Behaviour) { b.Deny = "unauthorized_client" }, code: oauth.ServerError,
			says: "operator"},
		{name: "AS-223: neither code nor error", do: func(_ *rig, b *browser) { b.back.Del("code") },
			code: oauth.ServerError},
		{name: "AS-223: two codes", do: func(_ *rig, b *browser) { b.back.Add("code", "x") }, code: oauth.ServerError},
		{name: "AS-223: a code that was never issued", do: func(_ *rig, b *browser) { b.back.Set("code", "forged") },
			code: oauth.AccessDenied, reproached: true},
		{name: "AS-225: the code of another trip (no PKCE match)",
			do:   func(r *rig, b *browser) { b.back.Set("code", r.leave(signIn).back.Get("code")) },
			code: oauth.AccessDenied, reproached: true},
		{name: "AS-225: another nonce", cause: func(b *fakeidp.Behaviour) {
			b.EditIDToken = func(_, claims map[string]any) { claims["nonce"] = "another" }
		}, code: oauth.ServerError},
		{name: "AS-225: an unsigned ID token",
			cause: func(b *fakeidp.Behaviour) { b.Sign = fakeidp.SignNone }, code: oauth.ServerError},
		{name: "AS-225: an ID token for another client", cause: func(b *fakeidp.Behaviour) {
			b.EditIDToken = func(_, claims map[string]any) { claims["aud"] = "somebody else" }
		}, code: oauth.ServerError},
		{name: "AS-223: /token is down", fail: map[fakeidp.Endpoint]fakeidp.Fault{fakeidp.Token: fakeidp.Down},
			code: oauth.TemporarilyUnavailable, says: "Corp could not be reached"},
		{name: "AS-223: /token answers 500",
			fail: map[fakeidp.Endpoint]fakeidp.Fault{fakeidp.Token: fakeidp.Error500},
			code: oauth.TemporarilyUnavailable},
		{name: "AS-223: /token answers 429",
			fail: map[fakeidp.Endpoint]fakeidp.Fault{fakeidp.Token: fakeidp.Error429},
			code: oauth.TemporarilyUnavailable},
		{name: "AS-223: /token answers garbage",
			fail: map[fakeidp.Endpoint]fakeidp.Fault{fakeidp.Token: fakeidp.Garbage}, code: oauth.ServerError},
		{name: "AS-223: /token answers a page", fail: map[fakeidp.Endpoint]fakeidp.Fault{fakeidp.Token: fakeidp.HTML},
			code: oauth.ServerError},
		{name: "AS-223: /token answers without end",
			fail: map[fakeidp.Endpoint]fakeidp.Fault{fakeidp.Token: fakeidp.Huge}, code: oauth.ServerError},
		{name: "AS-223: the keys are down", fail: map[fakeidp.Endpoint]fakeidp.Fault{fakeidp.Keys: fakeidp.Down},
			code: oauth.TemporarilyUnavailable},
		{name: "AS-223: user info is down", fail: map[fakeidp.Endpoint]fakeidp.Fault{fakeidp.UserInfo: fakeidp.Down},
			code: oauth.TemporarilyUnavailable},
		{name: "AS-223: user info is about another person", cause: func(b *fakeidp.Behaviour) {
			b.EditUserInfo = func(claims map[string]any) { claims["sub"] = "sub-bob" }
		}, code: oauth.ServerError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.reproached = tt.reproached
			if tt.cause != nil {
				r.up.Behave(tt.cause)
			}
			b := r.leave(signIn)
			if tt.do != nil {
				tt.do(r, &b)
			}
			for e, f := range tt.fail {
				r.up.Fail(e, f)
			}
			a, err := r.come(b, "corp")
			var told *oauth.Error
			if !errors.As(err, &told) || told.Code != tt.code || !strings.Contains(told.Description, tt.says) {
				t.Fatalf("got %v, want %s ... %q", err, tt.code, tt.says)
			}
			if told.Description != oauth.SafeDescription(told.Description) ||
				strings.Contains(told.Description, "boom") {
				t.Errorf("not for the wire: %q", told.Description)
			}
			if known := a.Request.Provider != ""; known == tt.lost {
				t.Errorf("the trip is known: %v", known)
			}
			if !tt.lost && r.Log.Events(audit.ProviderRefused) != 1 {
				t.Error("no audit event")
			}
			if _, err := r.db.Exec("DELETE FROM departures"); err != nil { // from browsers that did not return
				t.Fatal(err)
			}
			r.nothingMade()
		})
	}
}

func TestReturnOnce(t *testing.T) {
	t.Run("AS-220: a callback that is replayed fails, and the code is not redeemed twice", func(t *testing.T) {
		r := newRig(t, nil)
		b := r.leave(signIn)
		if _, err := r.come(b, "corp"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.come(b, "corp"); code(err) != oauth.InvalidRequest {
			t.Errorf("got %v", err)
		}
		if n := r.up.Calls(fakeidp.Token); n != 1 {
			t.Errorf("%d token requests, want 1", n)
		}
	})
	t.Run("AS-220: of many callbacks at once one comes in", func(t *testing.T) {
		r := newRig(t, nil)
		b := r.leave(signIn)
		const n = 32
		got := make(chan error, n)
		for range n {
			go func() { _, err := r.come(b, "corp"); got <- err }()
		}
		in := 0
		for range n {
			if err := <-got; err == nil {
				in++
			} else if code(err) != oauth.InvalidRequest {
				t.Errorf("got %v", err)
			}
		}
		if in != 1 || r.rows("upstreams") != 1 || r.up.Calls(fakeidp.Token) != 1 {
			t.Errorf("%d came in", in)
		}
	})
	t.Run("AS-220: a caller with one half cannot use it up", func(t *testing.T) {
		r := newRig(t, nil)
		b := r.leave(signIn)
		foreign := b
		foreign.Binding = secrets.Token("")
		if _, err := r.come(foreign, "corp"); code(err) != oauth.InvalidRequest {
			t.Errorf("got %v", err)
		}
		if _, err := r.come(b, "corp"); err != nil {
			t.Errorf("its own browser: %v", err)
		}
	})
}

func TestMixUp(t *testing.T) {
	t.Run("AS-224 RFC 9700 4.4: an answer at the callback of another connector is refused before its code goes anywhere",
		func(t *testing.T) {
			var r *rig
			evil := fakeidp.Start(t)
			r = newRig(t, func(c *Config) {
				other := c.Connectors[0]
				other.ID, other.Issuer, other.ClientID, other.ClientSecret = "evil", evil.URL, evil.ClientID,
					evil.ClientSecret
				c.Connectors = append(c.Connectors, other)
			})
			b := r.leave(signIn) // to corp
			a, err := r.come(b, "evil")
			if code(err) != oauth.ServerError || a.Request.Provider != "corp" {
				t.Errorf("got %+v, %v", a, err)
			}
			if n := evil.Calls(fakeidp.Token); n != 0 {
				t.Errorf("SP-06: the code of one provider went to another, %d times", n)
			}
			if _, err := r.come(b, "corp"); code(err) != oauth.InvalidRequest {
				t.Errorf("afterwards: %v", err)
			}
			r.nothingMade()
		})
	t.Run("AS-224: ... also where neither provider names itself in its answers", func(t *testing.T) {
		evil := fakeidp.Start(t)
		r := newRig(t, func(c *Config) {
			other := c.Connectors[0]
			other.ID, other.Issuer = "evil", evil.URL
			c.Connectors = append(c.Connectors, other)
		})
		for _, u := range []*fakeidp.Upstream{r.up, evil} {
			u.Behave(func(b *fakeidp.Behaviour) { b.NoResponseIssuer = true })
		}
		b := r.leave(signIn)
		if _, err := r.come(b, "evil"); code(err) != oauth.ServerError {
			t.Errorf("got %v", err)
		}
		if n := evil.Calls(fakeidp.Token); n != 0 {
			t.Errorf("SP-06: the code of one provider went to another, %d times", n)
		}
		r.nothingMade()
	})
	t.Run("AS-224: an unknown connector", func(t *testing.T) {
		r := newRig(t, nil)
		if _, err := r.come(browser{}, "nobody"); code(err) != oauth.InvalidRequest {
			t.Errorf("got %v", err)
		}
		if _, err := r.Depart(t.Context(),
			delegation.Request{Provider: "nobody", Purpose: delegation.PurposeSignIn}); code(
			err) != oauth.InvalidRequest {
			t.Errorf("got %v", err)
		}
	})
}

func TestDepart(t *testing.T) {
	t.Run("AS-223: nothing is stored when the provider cannot be reached", func(t *testing.T) {
		r := newRig(t, nil)
		r.up.FailAll(fakeidp.Down)
		if _, err := r.Depart(t.Context(), signIn); code(err) != oauth.TemporarilyUnavailable {
			t.Errorf("got %v", err)
		}
		r.nothingMade()
		r.up.Heal()
		r.signIn("") // a normal sign-in works again
	})
	t.Run("AS-220 SP-04: each departure has a state, nonce and verifier of its own, sealed at rest",
		func(t *testing.T) {
			r := newRig(t, nil)
			seen := map[string]bool{}
			for range 8 {
				b := r.leave(signIn)
				u, _ := url.Parse(b.URL)
				for _, v := range []string{
					b.State, b.Binding, u.Query().Get("nonce"), u.Query().Get("code_challenge"),
				} {
					if seen[v] || len(v) < 43 {
						t.Errorf("%q is not fresh", v)
					}
					seen[v] = true
				}
			}
			dump := r.dump()
			for v := range seen {
				if strings.Contains(dump, v) {
					t.Errorf("%q is in the database", v)
				}
			}
			if strings.Contains(dump, "the request") {
				t.Error("the payload is readable")
			}
		})
	t.Run("linking needs a user, and a sign-in must not have one", func(t *testing.T) {
		r := newRig(t, nil)
		for _, sentRequest := range []delegation.Request{
			{Provider: "corp", Purpose: delegation.PurposeLink},
			{Provider: "corp", Purpose: delegation.PurposeExtend},
			{Provider: "corp", Purpose: delegation.PurposeSignIn, UserID: "usr_1"},
		} {
			if _, err := r.Depart(t.Context(), sentRequest); err == nil {
				t.Errorf("%+v went", sentRequest)
			}
		}
	})
}

func TestKeysChangeMidFlow(t *testing.T) {
	t.Run("AS-223: the master key changes while a browser is away", func(t *testing.T) {
		r := newRig(t, nil)
		b := r.leave(signIn)
		newer := bytes.Repeat([]byte{9}, secrets.KeySize)
		r.Delegation = r.another(r.store, func(c *Config) { c.SecretKeys = [][]byte{newer, masterKey} })
		if _, err := r.come(b, "corp"); err != nil {
			t.Error(err)
		}
	})
	t.Run("AS-223: the old master key is gone when it returns", func(t *testing.T) {
		r := newRig(t, nil)
		b := r.leave(signIn)
		r.Delegation = r.another(r.store,
			func(c *Config) { c.SecretKeys = [][]byte{bytes.Repeat([]byte{9}, secrets.KeySize)} })
		if _, err := r.come(b, "corp"); code(err) != oauth.InvalidRequest {
			t.Errorf("got %v", err)
		}
		r.nothingMade()
	})
	t.Run("AS-225: the provider changes its signing key while a browser is away", func(t *testing.T) {
		r := newRig(t, nil)
		r.signIn("") // reads the old key
		b := r.leave(signIn)
		r.up.RotateKeys()
		if _, err := r.come(b, "corp"); err != nil {
			t.Error(err)
		}
	})
}
