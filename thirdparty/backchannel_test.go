package thirdparty

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

// logoutNow posts a body to the back-channel logout endpoint.
func (r *rig) logoutNow(path, contentType, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	r.Logout().ServeHTTP(w, req)
	return w
}

func (r *rig) logout(token string) *httptest.ResponseRecorder {
	return r.logoutNow("/callback/corp/logout", "application/x-www-form-urlencoded",
		url.Values{"logout_token": {token}}.Encode())
}

func TestLogout(t *testing.T) {
	t.Run("AS-219 OpenID Back-Channel Logout 2.8: a session that ends there ends here, and no other",
		func(t *testing.T) {
			r := newRig(t, nil)
			a, g := r.signIn("")
			_, second := r.signIn("")
			w := r.logout(r.up.LogoutToken("", r.upstream(a.Upstream).SessionID, nil))
			if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("got %d %v", w.Code, w.Header())
			}
			if r.active(g) || !r.active(second) {
				t.Error("the wrong one ended")
			}
			if u := r.upstream(a.Upstream); u.EndReason != reasonLoggedOut {
				t.Errorf("ended for %q", u.EndReason)
			}
		})
	t.Run("AS-219: without a session all of the person end, and no others", func(t *testing.T) {
		r := newRig(t, nil)
		_, first := r.signIn("")
		_, second := r.signIn("")
		_, bob := r.signIn(fakeidp.Bob.Email)
		if w := r.logout(r.up.LogoutToken(fakeidp.Alice.Subject, "", nil)); w.Code != http.StatusOK {
			t.Errorf("got %d", w.Code)
		}
		if r.active(first) || r.active(second) || !r.active(bob) {
			t.Error("the wrong ones ended")
		}
	})
	t.Run("AS-219: a session that we have no name for may be the one, if it is the person's", func(t *testing.T) {
		r := newRig(t, nil)
		r.up.Behave(func(b *fakeidp.Behaviour) {
			b.EditIDToken = func(_, c map[string]any) { delete(c, "sid") }
		})
		_, unnamed := r.signIn("")
		_, bob := r.signIn(fakeidp.Bob.Email)
		r.up.Behave(func(b *fakeidp.Behaviour) { b.EditIDToken = nil })
		_, another := r.signIn("")
		sid := r.up.Sessions(fakeidp.Alice.Subject)[0]
		if w := r.logout(r.up.LogoutToken(fakeidp.Alice.Subject, sid, nil)); w.Code != http.StatusOK {
			t.Errorf("got %d", w.Code)
		}
		if r.active(unnamed) || !r.active(another) || !r.active(bob) {
			t.Errorf("unnamed %v, another %v, bob %v", r.active(unnamed), r.active(another), r.active(bob))
		}
	})
	t.Run("AS-219: nothing to end is no error", func(t *testing.T) {
		r := newRig(t, nil)
		if w := r.logout(r.up.LogoutToken(fakeidp.Alice.Subject, "", nil)); w.Code != http.StatusOK {
			t.Errorf("got %d", w.Code)
		}
	})
	t.Run("AS-219: a logout token is good for once", func(t *testing.T) {
		r := newRig(t, nil)
		token := r.up.LogoutToken(fakeidp.Alice.Subject, "", nil)
		if w := r.logout(token); w.Code != http.StatusOK {
			t.Fatalf("got %d", w.Code)
		}
		_, g := r.signIn("")
		if w := r.logout(token); w.Code != http.StatusBadRequest || !r.active(g) {
			t.Errorf("replayed: got %d", w.Code)
		}
	})
	for name, edit := range map[string]func(header, claims map[string]any){
		"for another client": func(_, c map[string]any) { c["aud"] = "somebody else" },
		"of another issuer":  func(_, c map[string]any) { c["iss"] = "https://evil.example" },
		"with a nonce":       func(_, c map[string]any) { c["nonce"] = "n" },
		"without events":     func(_, c map[string]any) { delete(c, "events") },
		"without a jti":      func(_, c map[string]any) { delete(c, "jti") },
		"without anybody":    func(_, c map[string]any) { delete(c, "sub") },
		"that has expired":   func(_, c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() },
		"of yesterday": func(_, c map[string]any) {
			c["iat"] = time.Now().Add(-24 * time.Hour).Unix()
			delete(c, "exp")
		},
		"that is an ID token":  func(h, c map[string]any) { delete(c, "events"); h["typ"] = "JWT" },
		"of an unsuitable typ": func(h, _ map[string]any) { h["typ"] = "at+jwt" },
	} {
		t.Run("AS-219: a logout token "+name+" does nothing", func(t *testing.T) {
			r := newRig(t, nil)
			_, g := r.signIn("")
			w := r.logout(r.up.LogoutToken(fakeidp.Alice.Subject, "", edit))
			if w.Code != http.StatusBadRequest || w.Header().Get("Cache-Control") != "no-store" || !r.active(g) {
				t.Errorf("got %d", w.Code)
			}
		})
	}
	t.Run("AS-223: bad requests are refused, whatever they are", func(t *testing.T) {
		r := newRig(t, nil)
		const form = "application/x-www-form-urlencoded"
		for _, tt := range []struct {
			path, kind, body string
			want             int
		}{
			{"/callback/nobody/logout", form, "logout_token=x", http.StatusNotFound},
			{"/logout", form, "logout_token=x", http.StatusNotFound},
			{"/callback/corp/logout", form, "", http.StatusBadRequest},
			{"/callback/corp/logout", form, "logout_token=x", http.StatusBadRequest},
			{"/callback/corp/logout", form, "logout_token=x&logout_token=y", http.StatusBadRequest},
			{"/callback/corp/logout", form, "logout_token=" + strings.Repeat("x", maxLogout), http.StatusBadRequest},
			{"/callback/corp/logout", "application/json", `{"logout_token":"x"}`, http.StatusBadRequest},
			{"/callback/corp/logout", "", "logout_token=x", http.StatusBadRequest},
		} {
			if w := r.logoutNow(tt.path, tt.kind, tt.body); w.Code != tt.want ||
				w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s %q %.40q: got %d, want %d", tt.path, tt.kind, tt.body, w.Code, tt.want)
			}
		}
		get := httptest.NewRecorder()
		r.Logout().ServeHTTP(get, httptest.NewRequest(http.MethodGet, "/callback/corp/logout", nil))
		if get.Code != http.StatusMethodNotAllowed {
			t.Errorf("GET: got %d", get.Code)
		}
	})
	t.Run("L1 Back-Channel Logout 2.8: beside any number of tokens that are no good, the provider's own is heard",
		func(t *testing.T) {
			r := newRig(t, nil)
			_, g := r.signIn("")
			forged := r.up.LogoutToken(fakeidp.Alice.Subject, "", func(_, c map[string]any) { c["aud"] = "another" })
			r.up.Behave(func(b *fakeidp.Behaviour) { b.Sign = fakeidp.SignWrongKey })
			wrong := r.up.LogoutToken(fakeidp.Alice.Subject, "", nil)
			r.up.Behave(func(b *fakeidp.Behaviour) { b.Sign = fakeidp.SignGood })
			for i := range 30 * junkAllowed {
				r.logout([]string{"x", forged, wrong}[i%3])
			}
			if w := r.logout("x"); w.Code != http.StatusTooManyRequests {
				t.Errorf("junk: got %d", w.Code)
			}
			if w := r.logout(r.up.LogoutToken(fakeidp.Alice.Subject, "", nil)); w.Code != http.StatusOK || r.active(g) {
				t.Errorf("the provider's own: got %d", w.Code)
			}
		})
	t.Run("PL9: tokens by unknown keys leave sign-ins the keys that they need", func(t *testing.T) {
		r := newRig(t, nil)
		r.up.Behave(func(b *fakeidp.Behaviour) { b.Sign = fakeidp.SignUnknown })
		for range 30 {
			r.logout(r.up.LogoutToken(fakeidp.Alice.Subject, "", nil))
		}
		const keyReads = 6 // burst for logout tokens
		if n := r.up.Calls(fakeidp.Keys); n > keyReads {
			t.Errorf("the keys were read %d times, want %d at most", n, keyReads)
		}
		r.up.Behave(func(b *fakeidp.Behaviour) { b.Sign = fakeidp.SignGood })
		r.up.RotateKeys()
		if _, err := r.come(r.leave(signIn), "corp"); err != nil {
			t.Errorf("a sign-in after the keys were replaced: %v", err)
		}
	})
	t.Run("AS-223: too many are put off", func(t *testing.T) {
		r := newRig(t, nil)
		for i := range 10 * junkAllowed {
			if w := r.logout(secrets.ID("")); w.Code != http.StatusBadRequest {
				t.Fatalf("request %d: got %d", i, w.Code)
			}
		}
		if w := r.logout("x"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			t.Errorf("got %d", w.Code)
		}
		r.Advance(time.Second)
		if w := r.logout("x"); w.Code != http.StatusBadRequest {
			t.Errorf("later: got %d", w.Code)
		}
	})
}
