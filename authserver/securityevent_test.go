package authserver

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secevent"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeissuer"
	"github.com/mcp-authd/mcp-authd/internal/trust"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const eventStream = "https://auth.example.com/stream"

// newEventRig returns a server that receives the security events of its trusted identity provider.
func newEventRig(t *testing.T) *bearerRig {
	t.Helper()
	r := newBearerRig(t, func(e, _ *storage.TrustEntry) { e.EventAudience = []string{eventStream} })
	issuers, err := trust.New(trust.Options{Issuer: r.as.Issuer, Store: r.store, Now: r.now, Log: r.as.Logger})
	if err != nil {
		t.Fatal(err)
	}
	r.restart(func(c *Config) {
		c.SecurityEvents = secevent.NewReceiver(r.as.Logger, r.as.Audit, r.now, trust.NewEvents(issuers, r.store))
	})
	return r
}

// event returns an event about a user of acme at the current time.
func (r *bearerRig) event(uri, sub string) fakeissuer.Claims {
	return fakeissuer.Claims{
		"iss": r.acme.URL, "aud": eventStream, "jti": "set " + sub + uri, "iat": r.now().Unix(),
		"sub_id": map[string]any{"format": "iss_sub", "iss": r.acme.URL, "sub": "auth0|" + sub},
		"events": map[string]any{uri: map[string]any{}},
	}
}

// deliver pushes a security event token to the server, and checks the response; code is "" for 202.
func (r *bearerRig) deliver(raw string, code secevent.Code) {
	r.t.Helper()
	resp, err := http.Post(r.http.URL+"/events", "application/"+secevent.Type, strings.NewReader(raw))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct{ Err secevent.Code }
	_ = json.NewDecoder(resp.Body).Decode(&out)
	want := http.StatusBadRequest
	if code == "" {
		want = http.StatusAccepted
	}
	if resp.StatusCode != want || out.Err != code {
		r.t.Errorf("got %d %s, want %d %s", resp.StatusCode, out.Err, want, code)
	}
}

func (r *bearerRig) live(grantID string) bool {
	r.t.Helper()
	g, err := r.store.Grant(r.t.Context(), grantID)
	if err != nil {
		r.t.Fatal(err)
	}
	return g.RevokedAt.IsZero()
}

func TestEventsOfTrustedIssuers(t *testing.T) {
	for _, uri := range []string{
		secevent.SessionRevoked, secevent.CredentialChange, secevent.AccountDisabled, secevent.AccountPurged,
	} {
		t.Run("AS-245 "+secevent.Name(uri)+" ends what that person has, and no assertion of before brings it back",
			func(t *testing.T) {
				r := newEventRig(t)
				before := r.claims().With(fakeissuer.Claims{"jti": "kept back"})
				_, ada := r.granted(r.jag(r.claims()))
				_, eve := r.granted(r.jag(r.claims().With(fakeissuer.Claims{"sub": "auth0|eve", "email": nil})))
				_, job := r.granted(r.job(r.push()))
				r.deliver(r.acme.Sign(secevent.Type, r.event(uri, "ada")), "")
				if r.live(ada.GrantID) || !r.live(eve.GrantID) || !r.live(job.GrantID) {
					t.Errorf("live: ada %v, eve %v, job %v",
						r.live(ada.GrantID), r.live(eve.GrantID), r.live(job.GrantID))
				}
				r.refused(r.jag(before), oauth.InvalidGrant)
				r.advance(time.Second)
				_, again := r.granted(r.jag(r.claims()))
				r.deliver(r.acme.Sign(secevent.Type, r.event(secevent.Verification, "ada")), "")
				if !r.live(again.GrantID) || again.Subject != ada.Subject {
					t.Errorf("a new assertion: got %+v", again)
				}
			})
	}
	t.Run("AS-245 a token that comes again ends nothing more", func(t *testing.T) {
		r := newEventRig(t)
		raw := r.acme.Sign(secevent.Type, r.event(secevent.SessionRevoked, "ada"))
		r.deliver(raw, "")
		r.advance(time.Second)
		_, ada := r.granted(r.jag(r.claims()))
		r.deliver(raw, "")
		if !r.live(ada.GrantID) {
			t.Error("it was carried out again")
		}
	})
	t.Run("AS-245 about a person who is not known: 202, and nothing ends", func(t *testing.T) {
		r := newEventRig(t)
		_, ada := r.granted(r.jag(r.claims()))
		r.deliver(r.acme.Sign(secevent.Type, r.event(secevent.AccountPurged, "stranger")), "")
		if !r.live(ada.GrantID) {
			t.Error("another person's grant has ended")
		}
	})
	t.Run("AS-245 what is not believed ends nothing", func(t *testing.T) {
		r := newEventRig(t)
		_, ada := r.granted(r.jag(r.claims()))
		good := r.event(secevent.SessionRevoked, "ada")
		forger := fakeissuer.New(t, r.acme.URL, "k", r.now)
		of := func(iss string) fakeissuer.Claims {
			return good.With(fakeissuer.Claims{
				"sub_id": map[string]any{"format": "iss_sub", "iss": iss, "sub": "auth0|ada"},
			})
		}
		r.deliver(forger.Sign(secevent.Type, good), secevent.InvalidKey)
		r.deliver(r.ci.Sign(secevent.Type, good), secevent.InvalidKey) // a key of another entry
		r.deliver(r.ci.Sign(secevent.Type, good.With(fakeissuer.Claims{"iss": r.ci.URL})), secevent.InvalidIssuer)
		r.deliver(r.acme.Sign(secevent.Type, good.With(fakeissuer.Claims{"aud": r.as.Issuer})),
			secevent.InvalidAudience)
		r.deliver(r.acme.Sign(secevent.Type, of("https://other.example")), secevent.InvalidRequest)
		r.deliver(r.acme.Sign(fakeissuer.IDJAG, good), secevent.InvalidRequest)
		if !r.live(ada.GrantID) {
			t.Error("the grant has ended")
		}
	})
	t.Run("AS-245 without a source the endpoint knows no issuer", func(t *testing.T) {
		r := newBearerRig(t)
		issuers, err := trust.New(trust.Options{Issuer: r.as.Issuer, Store: r.store, Now: r.now, Log: r.as.Logger})
		if err != nil {
			t.Fatal(err)
		}
		r.restart(func(c *Config) {
			c.SecurityEvents = secevent.NewReceiver(r.as.Logger, r.as.Audit, r.now, trust.NewEvents(issuers, r.store))
		})
		r.deliver(r.acme.Sign(secevent.Type, r.event(secevent.SessionRevoked, "ada")), secevent.InvalidIssuer)
	})
}
