package session

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestSignIn(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	m := manager(t, "https://auth.example.com", func() time.Time { return now })
	signIn := SignIn{
		State: "the-state", Binding: "the-binding", UserID: "usr_1", ExpiresAt: now.Add(10 * time.Minute),
	}
	w := httptest.NewRecorder()
	m.SetSignIn(w, httptest.NewRequest(http.MethodGet, "/", nil), signIn)
	c := w.Result().Cookies()[0]
	t.Run("AS-220 the cookie is bound to the host, for ten minutes, and shows nothing", func(t *testing.T) {
		if !strings.HasPrefix(c.Name, "__Host-mcp-authd-trip-") || len(c.Name) != len("__Host-mcp-authd-trip-")+8 ||
			!c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 600 || c.Path != "/" {
			t.Errorf("got %+v", c)
		}
		if s := c.String(); strings.Contains(s, signIn.State) || strings.Contains(s, signIn.Binding) ||
			strings.Contains(s, "usr_1") {
			t.Errorf("got %s", s)
		}
	})
	t.Run("AS-220 it comes back for its state only", func(t *testing.T) {
		if got, ok := m.SignIn(carry(w), "the-state"); !ok || got.Binding != "the-binding" || got.UserID != "usr_1" {
			t.Errorf("got %+v, %v", got, ok)
		}
		for _, state := range []string{"", "another-state", "the-state "} {
			if got, ok := m.SignIn(carry(w), state); ok || got.Binding != "" {
				t.Errorf("%q: got %+v", state, got)
			}
		}
	})
	t.Run("AS-220 renamed or changed it is refused", func(t *testing.T) {
		for _, forged := range []*http.Cookie{
			{Name: m.signInName("another-state"), Value: c.Value}, {Name: c.Name, Value: c.Value + "A"},
			{Name: c.Name, Value: "the-binding"}, {Name: c.Name},
		} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.AddCookie(forged)
			for _, state := range []string{"the-state", "another-state"} {
				if got, ok := m.SignIn(r, state); ok {
					t.Errorf("%s: got %+v", forged, got)
				}
			}
		}
	})
	t.Run("AS-220 it expires, even if the browser keeps it", func(t *testing.T) {
		now = now.Add(10 * time.Minute)
		defer func() { now = now.Add(-10 * time.Minute) }()
		if got, ok := m.SignIn(carry(w), "the-state"); ok {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("AS-220 it ends", func(t *testing.T) {
		w := httptest.NewRecorder()
		m.EndSignIn(w, "the-state")
		if got := w.Result().Cookies()[0]; got.Name != c.Name || got.MaxAge != -1 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestSignInsAreBounded(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	m := manager(t, "http://127.0.0.1:8414", func() time.Time { return now })
	foreign := m.signIn + "foreign0"
	jar := map[string]string{foreign: "x", "mcp-authd-browser": "kept"}
	for i := range 20 {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		for name, value := range jar {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
		m.SetSignIn(w, r, SignIn{State: fmt.Sprint("state-", i), Binding: "b", ExpiresAt: now.Add(10 * time.Minute)})
		for _, c := range w.Result().Cookies() {
			if c.MaxAge < 0 {
				delete(jar, c.Name)
			} else {
				jar[c.Name] = c.Value
			}
		}
		now = now.Add(time.Second)
	}
	t.Run("AS-220 a browser has eight sign-ins at most, the latest, and its other cookies stay", func(t *testing.T) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for name, value := range jar {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
		if len(jar) != maxSignIns+2 || jar["mcp-authd-browser"] != "kept" {
			t.Errorf("got %d cookies", len(jar))
		}
		if jar[foreign] != "x" {
			t.Error("RU-02 the sign-in of another server of the host was removed")
		}
		for i := range 20 {
			if _, ok := m.SignIn(r, fmt.Sprint("state-", i)); ok != (i >= 20-maxSignIns) {
				t.Errorf("sign-in %d: got %v", i, ok)
			}
		}
	})
}
