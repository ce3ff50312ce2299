package authserver

import (
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Security M5 of the providers' report: no claim about a sign-in exceeds the provider's.
func TestAuthTime(t *testing.T) {
	r, f := delegated(t)
	authTime := func(t *testing.T, out map[string]any) int64 {
		t.Helper()
		return r.verified(t, out["access_token"].(string)).AuthTime
	}
	t.Run("PM5 RFC 9470 6 auth_time is what the provider said", func(t *testing.T) {
		if got := authTime(t, r.person().signInAt("google")); got != r.now().Unix() {
			t.Errorf("got %d", got)
		}
	})
	f.set(func(f *providers) { f.silent = true })
	p := r.person()
	t.Run("PM5 RFC 9470 6 and left out when it said nothing, also after a refresh and at introspection",
		func(t *testing.T) {
			out := p.signInAt("google", "scope", "mcp offline_access")
			if got := authTime(t, out); got != 0 {
				t.Errorf("got %d", got)
			}
			pg := p.post("/introspect", url.Values{"token": {out["access_token"].(string)}}, "Authorization",
				basic("machine", testSecret))
			if !strings.Contains(pg.body, `"active":true`) || strings.Contains(pg.body, "auth_time") {
				t.Errorf("introspection says %s", pg.body)
			}
			status, out := p.token(refreshForm(out["refresh_token"]))
			if status != 200 || authTime(t, out) != 0 {
				t.Errorf("refreshed: %d %v", status, out)
			}
		})
	t.Run("PM5 nor is it made up on the way over the consent page", func(t *testing.T) {
		pg := p.get("/authorize?" + authorizeQuery("prompt", "consent").Encode())
		back := p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"approve"}})
		_, out := p.token(codeForm(responseOf(t, back).Get("code")))
		if got := authTime(t, out); got != 0 {
			t.Errorf("got %d", got)
		}
	})
	t.Run("PM5 OIDC 3.1.2.1 max_age asks such a session to sign in", func(t *testing.T) {
		pg := p.get("/authorize?" + authorizeQuery("max_age", "1000000000").Encode())
		if pg.status != 200 || !strings.Contains(pg.body, `name="password"`) {
			t.Errorf("got %d %s", pg.status, pg.header.Get("Location"))
		}
	})
	for name, tt := range map[string]struct{ demand, value, want string }{
		"PM5 RFC 9470 5 max_age that the provider cannot prove": {
			"max_age", "0", "unmet_authentication_requirements",
		},
		"PM5 OIDC 3.1.2.1 prompt=login that the provider cannot prove": {"prompt", "login", "login_required"},
	} {
		t.Run(name, func(t *testing.T) {
			f.set(func(f *providers) { f.returnErr = oauth.NewError(oauth.UnmetAuthentication, "It cannot prove it.") })
			defer f.set(func(f *providers) { f.returnErr = nil })
			p := r.person()
			got := responseOf(t,
				p.back(callback(t, "google", p.leave(authorizeQuery("provider", "google", tt.demand, tt.value)))))
			if got.Get("error") != tt.want || got.Has("code") {
				t.Errorf("got %v", got)
			}
		})
	}
}
