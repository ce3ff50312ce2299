package thirdparty

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secevent"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

const stream = "https://auth.example.com/stream"

// eventRig returns a rig that accepts security events of its upstream.
func eventRig(t *testing.T, edit func(*Connector)) (*rig, http.Handler) {
	t.Helper()
	r := newRig(t, func(c *Config) {
		c.Connectors[0].Events.Audience = []string{stream}
		if edit != nil {
			edit(&c.Connectors[0])
		}
	})
	return r, r.receiver(r.Delegation)
}

func (r *rig) receiver(d *Delegation) http.Handler {
	return secevent.NewReceiver(d.cfg.Logger, d.cfg.Audit, r.Now, d)
}

// push pushes a token as in RFC 8935 §2.1.
func push(h http.Handler, token string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/events", strings.NewReader(token))
	req.Header.Set("Content-Type", "application/secevent+jwt")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func TestSecurityEvents(t *testing.T) {
	for uri, reason := range map[string]string{
		secevent.SessionRevoked: reasonSession, secevent.CredentialChange: reasonCredentials,
		secevent.AccountDisabled: reasonAccount, secevent.AccountPurged: reasonAccount,
		secevent.CredentialChangeRequired: reasonCredentials, secevent.TokensRevoked: reasonSession,
	} {
		t.Run("AS-245: "+secevent.Name(uri)+" ends all of that person, and of no other", func(t *testing.T) {
			r, h := eventRig(t, nil)
			a, first := r.signIn("")
			_, second := r.signIn("")
			_, bob := r.signIn(fakeidp.Bob.Email)
			w := push(h, r.up.SecurityEvent(stream, uri, fakeidp.Alice.Subject, nil))
			if w.Code != http.StatusAccepted || w.Body.Len() != 0 {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			if r.active(first) || r.active(second) || !r.active(bob) {
				t.Error("the wrong ones ended")
			}
			if got := r.upstream(a.Upstream).EndReason; got != reason {
				t.Errorf("ended for %q, want %q", got, reason)
			}
			if r.EndNotice("corp", reason).String() == "" {
				t.Error("the person is not told why")
			}
		})
	}
	t.Run("AS-245: a session that is named ends, and no other of the person", func(t *testing.T) {
		r, h := eventRig(t, nil)
		a, g := r.signIn("")
		_, second := r.signIn("")
		sid := r.upstream(a.Upstream).SessionID
		for _, subject := range []map[string]any{
			{"format": "opaque", "id": sid},
			{"format": "complex", "user": map[string]any{"format": "iss_sub", "iss": r.up.URL, "sub": "sub-alice"},
				"session": map[string]any{"format": "opaque", "id": sid}},
		} {
			w := push(h, r.up.SecurityEvent(stream, secevent.SessionRevoked, "",
				func(_, c map[string]any) { c["sub_id"] = subject }))
			if w.Code != http.StatusAccepted || r.active(g) || !r.active(second) {
				t.Errorf("%v: got %d, active %v and %v", subject, w.Code, r.active(g), r.active(second))
			}
		}
	})
	t.Run("AS-245: sign-ins that rest on another provider, or on a password, stay", func(t *testing.T) {
		r, _ := eventRig(t, nil)
		other := fakeidp.Start(t)
		d := r.another(r.store, func(c *Config) {
			c.Connectors[0].Events.Audience = []string{stream}
			b := r.connector("other")
			b.Issuer, b.ClientID, b.ClientSecret = other.URL, other.ClientID, other.ClientSecret
			b.Events.Audience = []string{stream}
			c.Connectors = append(c.Connectors, b)
		})
		_, g := r.signIn("")
		w := push(r.receiver(d), other.SecurityEvent(stream, secevent.SessionRevoked, fakeidp.Alice.Subject, nil))
		if w.Code != http.StatusAccepted || !r.active(g) {
			t.Errorf("got %d, active %v", w.Code, r.active(g))
		}
		forged := other.SecurityEvent(stream, secevent.SessionRevoked, fakeidp.Alice.Subject,
			func(_, c map[string]any) {
				c["iss"] = r.up.URL
				c["sub_id"].(map[string]any)["iss"] = r.up.URL
			})
		w = push(r.receiver(d), forged)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"invalid_key"`) || !r.active(g) {
			t.Errorf("by the key of another issuer: got %d %s", w.Code, w.Body)
		}
	})
	set := func(name string, value any) func(*rig, map[string]any, map[string]any) {
		return func(_ *rig, _, c map[string]any) { c[name] = value }
	}
	without := func(name string) func(*rig, map[string]any, map[string]any) {
		return func(_ *rig, _, c map[string]any) { delete(c, name) }
	}
	typ := func(value string) func(*rig, map[string]any, map[string]any) {
		return func(_ *rig, h, _ map[string]any) { h["typ"] = value }
	}
	issued := func(ago time.Duration) func(*rig, map[string]any, map[string]any) {
		return func(r *rig, _, c map[string]any) { c["iat"] = r.Now().Add(-ago).Unix() }
	}
	for name, tt := range map[string]struct {
		edit func(r *rig, header, claims map[string]any)
		want string
	}{
		"of another issuer":       {set("iss", "https://evil.example"), "invalid_issuer"},
		"without an issuer":       {without("iss"), "invalid_issuer"},
		"for another receiver":    {set("aud", []string{"a", "b"}), "invalid_audience"},
		"without a jti":           {without("jti"), "invalid_request"},
		"without an iat":          {without("iat"), "invalid_request"},
		"without events":          {without("events"), "invalid_request"},
		"that is an access token": {typ("at+jwt"), "invalid_request"},
		"without a typ":           {typ(""), "invalid_request"},
		"that is a logout token":  {typ("logout+jwt"), "invalid_request"},
		"of eight days ago":       {issued(8 * 24 * time.Hour), "invalid_request"},
		"from the future":         {issued(-5 * time.Minute), "invalid_request"},
		"about an address": {
			set("sub_id", map[string]any{"format": "email", "email": fakeidp.Alice.Email}), "invalid_request"},
		"about another issuer's person": {
			set("sub_id", map[string]any{"format": "iss_sub", "iss": "https://evil.example", "sub": "sub-alice"}),
			"invalid_request"},
		"about no person": {without("sub_id"), "invalid_request"},
	} {
		t.Run("AS-245 RFC 8935 2.3: a token "+name+" is "+tt.want+", and ends nothing", func(t *testing.T) {
			r, h := eventRig(t, nil)
			_, g := r.signIn("")
			token := r.up.SecurityEvent(stream, secevent.SessionRevoked, fakeidp.Alice.Subject,
				func(header, c map[string]any) { tt.edit(r, header, c) })
			w := push(h, token)
			if w.Code != http.StatusBadRequest || !r.active(g) ||
				!strings.Contains(w.Body.String(), `"err":"`+tt.want+`"`) {
				t.Errorf("got %d %s, active %v", w.Code, w.Body, r.active(g))
			}
			if r.Log.Events(audit.SecurityEventRefused) != 1 {
				t.Error("it is not in the log")
			}
		})
	}
	for name, sign := range map[string]fakeidp.Signing{
		"with no signature": fakeidp.SignNone, "by an unknown key": fakeidp.SignUnknown,
		"under the kid of another key": fakeidp.SignWrongKey,
	} {
		t.Run("AS-245: a token "+name+" ends nothing", func(t *testing.T) {
			r, h := eventRig(t, nil)
			_, g := r.signIn("")
			r.up.Behave(func(b *fakeidp.Behaviour) { b.Sign = sign })
			w := push(h, r.up.SecurityEvent(stream, secevent.SessionRevoked, fakeidp.Alice.Subject, nil))
			if w.Code != http.StatusBadRequest || !r.active(g) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	t.Run("AS-245: events that end nothing are acknowledged", func(t *testing.T) {
		r, h := eventRig(t, nil)
		_, g := r.signIn("")
		for _, uri := range []string{
			secevent.Verification, secevent.AccountEnabled, "https://example.com/another",
			"https://schemas.openid.net/secevent/caep/event-type/token-claims-change",
		} {
			w := push(h, r.up.SecurityEvent(stream, uri, fakeidp.Alice.Subject, nil))
			if w.Code != http.StatusAccepted || !r.active(g) {
				t.Errorf("%s: got %d, active %v", uri, w.Code, r.active(g))
			}
		}
	})
	t.Run("AS-245: the transmitter presents what it was given", func(t *testing.T) {
		secret := strings.Repeat("s3", 20)
		r, h := eventRig(t, func(c *Connector) { c.Events.BearerToken = secret })
		_, g := r.signIn("")
		token := r.up.SecurityEvent(stream, secevent.SessionRevoked, fakeidp.Alice.Subject, nil)
		for _, header := range [][]string{nil, {"Authorization", "Bearer x"}, {"Authorization", "Basic " + secret}} {
			w := push(h, token, header...)
			if !strings.Contains(w.Body.String(), "authentication_failed") || !r.active(g) {
				t.Errorf("%v: got %d %s", header, w.Code, w.Body)
			}
		}
		if w := push(h, token, "Authorization", "Bearer "+secret); w.Code != http.StatusAccepted || r.active(g) {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		if strings.Contains(r.Log.String(), secret) {
			t.Error("the secret is in the log")
		}
	})
	t.Run("AS-245: what began after the event stays", func(t *testing.T) {
		r, h := eventRig(t, nil)
		_, before := r.signIn("")
		token := r.up.SecurityEvent(stream, secevent.CredentialChange, fakeidp.Alice.Subject, nil)
		r.Advance(2 * time.Minute)
		_, after := r.signIn("")
		if w := push(h, token); w.Code != http.StatusAccepted || r.active(before) || !r.active(after) {
			t.Errorf("got %d, active %v and %v", w.Code, r.active(before), r.active(after))
		}
	})
	t.Run("AS-245: while the keys cannot be had it is 503, and the token is good later", func(t *testing.T) {
		r, h := eventRig(t, nil)
		_, g := r.signIn("")
		r.up.RotateKeys()
		token := r.up.SecurityEvent(stream, secevent.SessionRevoked, fakeidp.Alice.Subject, nil)
		for range 2 {
			r.up.Fail(fakeidp.Keys, fakeidp.Fault{Times: 1, Status: http.StatusBadGateway})
			r.Advance(time.Minute)
			if w := push(h, token); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		}
		r.Advance(time.Minute)
		if w := push(h, token); w.Code != http.StatusAccepted || r.active(g) {
			t.Errorf("later: got %d %s", w.Code, w.Body)
		}
	})
	t.Run("AS-245 RFC 8935 2.1: a request that is none is refused", func(t *testing.T) {
		r, h := eventRig(t, nil)
		for _, body := range []string{"", "x", "a.b.c", strings.Repeat("x", 70<<10)} {
			if w := push(h, body); w.Code != http.StatusBadRequest {
				t.Errorf("%.10q: got %d", body, w.Code)
			}
		}
		token := r.up.SecurityEvent(stream, secevent.SessionRevoked, fakeidp.Alice.Subject, nil)
		if w := push(h, token, "Content-Type", "application/jwt"); w.Code != http.StatusBadRequest {
			t.Errorf("got %d", w.Code)
		}
	})
	t.Run("AS-245: any number of tokens that are no good hides no good one", func(t *testing.T) {
		r, h := eventRig(t, nil)
		_, g := r.signIn("")
		good := r.up.SecurityEvent(stream, secevent.SessionRevoked, fakeidp.Alice.Subject, nil)
		bad := r.up.SecurityEvent("another", secevent.SessionRevoked, fakeidp.Alice.Subject, nil)
		var codes []int
		for range 300 {
			codes = append(codes, push(h, bad).Code)
		}
		if !slices.Contains(codes, http.StatusTooManyRequests) {
			t.Error("they are not bounded")
		}
		if w := push(h, good); w.Code != http.StatusAccepted || r.active(g) {
			t.Errorf("got %d", w.Code)
		}
	})
}

func TestSecurityEventOnce(t *testing.T) {
	t.Run("AS-245: a token that comes again, at any replica, is acknowledged and ends nothing", func(t *testing.T) {
		r, h := eventRig(t, nil)
		r.signIn("")
		token := r.up.SecurityEvent(stream, secevent.SessionRevoked, fakeidp.Alice.Subject, nil)
		second := r.receiver(r.another(r.store, func(c *Config) { c.Connectors[0].Events.Audience = []string{stream} }))
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				if w := push([]http.Handler{h, second}[i%2], token); w.Code != http.StatusAccepted {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
			})
		}
		all.Wait()
		_, g := r.signIn("") // within the minute of allowed clock difference
		if w := push(second, token); w.Code != http.StatusAccepted || !r.active(g) {
			t.Errorf("got %d, active %v", w.Code, r.active(g))
		}
		if n := strings.Count(r.Log.String(), `"outcome":"repeated"`); n != 16 {
			t.Errorf("%d are in the log as repeated, want 16", n)
		}
		if n := r.Log.Events(audit.ProviderEnded); n != 1 {
			t.Errorf("the session ended %d times", n)
		}
	})
	for name, arm := range map[string]func(*storagetest.Failing){
		"that fails":            func(f *storagetest.Failing) { f.Arm(0) },
		"whose answer was lost": func(f *storagetest.Failing) { f.ArmLost(0) },
	} {
		t.Run("AS-245: a store "+name+" loses no event", func(t *testing.T) {
			r, _ := eventRig(t, nil)
			failing := storagetest.NewFailing(r.store)
			h := r.receiver(r.another(storage.Store(failing), func(c *Config) {
				c.Connectors[0].Events.Audience = []string{stream}
			}))
			_, g := r.signIn("")
			token := r.up.SecurityEvent(stream, secevent.SessionRevoked, fakeidp.Alice.Subject, nil)
			arm(failing)
			if w := push(h, token); w.Code != http.StatusServiceUnavailable {
				t.Errorf("got %d", w.Code)
			}
			failing.Disarm()
			if w := push(h, token); w.Code != http.StatusAccepted || r.active(g) {
				t.Errorf("again: got %d, active %v", w.Code, r.active(g))
			}
		})
	}
}
