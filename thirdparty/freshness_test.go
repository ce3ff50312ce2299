package thirdparty

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestAuthTime(t *testing.T) {
	const silent = -1 << 50 // the provider returns no auth_time
	for _, tt := range []struct {
		name  string
		fresh bool
		ago   time.Duration // since the user authenticated
		want  time.Duration // the age known here
		code  oauth.Code
	}{
		{"AS-217: the session is as old as the proof at the provider", false, time.Hour, time.Hour, ""},
		{"PM5 RFC 9470 6: what a provider does not say is not made up", false, silent, silent, ""},
		{"PM5: nor what it says of the future", false, -time.Hour, silent, ""},
		{"PM5: clocks may differ", false, -30 * time.Second, 0, ""},
		{"AS-217: new proof was demanded, and given", true, 0, 0, ""},
		{"AS-217: new proof was demanded, and given by a clock that is ahead", true, -30 * time.Second, 0, ""},
		{"AS-217 PM5: new proof was demanded, and the provider gives an old one", true, time.Hour, 0,
			oauth.UnmetAuthentication},
		{"PM5 OIDC 2: new proof was demanded, and the provider does not say", true, silent, 0,
			oauth.UnmetAuthentication},
		{"PM5: new proof was demanded, and it is a year from now", true, -365 * 24 * time.Hour, 0,
			oauth.UnmetAuthentication},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			now := r.Now().Truncate(time.Second)
			r.up.Behave(func(b *fakeidp.Behaviour) {
				b.EditIDToken = func(_, claims map[string]any) {
					claims["auth_time"] = now.Add(-tt.ago).Unix()
					if tt.ago == silent {
						delete(claims, "auth_time")
					}
				}
			})
			sentRequest := signIn
			if tt.fresh {
				sentRequest.Reauth = delegation.ReauthProved
			}
			b, s := r.leave(sentRequest), r.minted()
			a, err := r.Return(t.Context(),
				delegation.AuthorizationResponse{Provider: "corp", Params: b.back, Binding: b.Binding, Session: s})
			if code(err) != tt.code {
				t.Fatalf("got %v, want %q", err, tt.code)
			}
			if err != nil {
				r.nothingMade()
				return
			}
			v, err := r.store.Visit(t.Context(), storage.VisitKey{Session: s.Hash, Now: r.Now()})
			want := now.Add(-tt.want)
			if tt.want == silent {
				want = time.Time{}
			}
			if err != nil || v.Session.AuthTime.Sub(want).Abs() > time.Second ||
				a.AuthTime.Sub(want).Abs() > time.Second {
				t.Errorf("got %v and %v, want %v; %v", v.Session.AuthTime, a.AuthTime, want, err)
			}
		})
	}
}

// Security M5 of the providers' report.
func TestNothingProvesFreshness(t *testing.T) {
	plain := func(c *Config) {
		up := c.Connectors[0]
		c.Connectors[0] = Connector{
			ID: "corp", Type: "oauth2", Name: "Corp", ClientID: up.ClientID, ClientSecret: up.ClientSecret,
			AuthorizationURL: up.Issuer + "/authorize", TokenURL: up.Issuer + "/token",
			UserInfoURL: up.Issuer + "/userinfo",
		}
	}
	t.Run("PM5: plain OAuth 2.0 proves no new sign-in, and no browser is sent there for one", func(t *testing.T) {
		r := newRig(t, plain)
		sentRequest := signIn
		sentRequest.Reauth = delegation.ReauthProved
		if _, err := r.Depart(t.Context(), sentRequest); code(err) != oauth.UnmetAuthentication {
			t.Errorf("got %v", err)
		}
		r.nothingMade()
	})
	t.Run("PM5: an auth_time in user info proves nothing", func(t *testing.T) {
		r := newRig(t, plain)
		r.up.Behave(func(b *fakeidp.Behaviour) {
			b.EditUserInfo = func(claims map[string]any) { claims["auth_time"] = r.Now().Unix() }
		})
		if a, err := r.come(r.leave(signIn), "corp"); err != nil || !a.AuthTime.IsZero() {
			t.Errorf("got %v, %v", a.AuthTime, err)
		}
	})
}

// PE-10: a browser that was at the provider when its user stopped everything starts no session.
func TestStoppedMeanwhile(t *testing.T) {
	r := newRig(t, nil)
	before, err := r.come(r.leave(signIn), "corp")
	if err != nil {
		t.Fatal(err)
	}
	early := r.leave(signIn)
	if err := r.store.StopEverything(t.Context(), before.User.ID, r.Now()); err != nil {
		t.Fatal(err)
	}
	_, err = r.come(early, "corp")
	if code(err) != oauth.InvalidRequest || !strings.Contains(err.Error(), "took too long") {
		t.Errorf("got %v", err)
	}
	r.Advance(time.Second)
	if _, err := r.come(r.leave(signIn), "corp"); err != nil {
		t.Errorf("a later one: %v", err)
	}
}
