package session

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// aged returns a cookie value as if it had been created earlier: securecookie dates its values by
// its own clock, under the signature.
func aged(t *testing.T, purpose, name, value string, by time.Duration) string {
	t.Helper()
	ring, err := secrets.NewRing(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.URLEncoding.DecodeString(value)
	if err != nil {
		t.Fatal(err)
	}
	parts := bytes.SplitN(raw, []byte("|"), 3) // date, value, signature
	made := fmt.Sprintf("%d|%s|", time.Now().Add(-by).Unix(), parts[1])
	mac := hmac.New(sha256.New, ring.Keys(purpose+" mac", 32)[0])
	mac.Write([]byte(name + "|" + made[:len(made)-1]))
	return base64.URLEncoding.EncodeToString(append([]byte(made), mac.Sum(nil)...))
}

func TestLifetimes(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Now()
	m := manager(t, "http://localhost", func() time.Time { return now })
	t.Run("a sign-in lasts for 14 days, in the store and in the browser", func(t *testing.T) {
		w, minted := httptest.NewRecorder(), m.Mint("usr_1")
		m.SetCurrent(w, httptest.NewRequest(http.MethodGet, "/", nil), minted.InBrowser())
		s := minted.Session
		if !s.ExpiresAt.Equal(now.Add(14*day)) || !s.CreatedAt.Equal(now) || !s.AuthTime.Equal(now) ||
			s.UserID != "usr_1" {
			t.Errorf("got %+v", s)
		}
		if c := w.Result().Cookies()[0]; c.MaxAge != 14*24*60*60 {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("or for as long as is configured", func(t *testing.T) {
		m, err := New(Config{SecretKeys: [][]byte{bytes.Repeat([]byte{1}, 32)}, TTL: time.Hour, Now: m.now})
		if err != nil {
			t.Fatal(err)
		}
		if s := m.Mint("usr_1").Session; !s.ExpiresAt.Equal(now.Add(time.Hour)) {
			t.Errorf("got %v", s.ExpiresAt)
		}
	})
	t.Run("AS-05 a browser is known for a year", func(t *testing.T) {
		w := httptest.NewRecorder()
		m.Remember(w, httptest.NewRequest(http.MethodGet, "/", nil), "Alice")
		c := w.Result().Cookies()[0]
		if c.MaxAge != 365*24*60*60 {
			t.Errorf("got %+v", c)
		}
		for days, want := range map[time.Duration]bool{0: true, 31: true, 364: true, 366: false} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.AddCookie(&http.Cookie{Name: c.Name, Value: aged(t, "cookie", c.Name, c.Value, days*day)})
			if got := m.KnownBrowser(r).Name == "alice"; got != want {
				t.Errorf("after %d days: got %v, want %v", days, got, want)
			}
		}
	})
	t.Run("the id of a browser lasts until it is closed", func(t *testing.T) {
		w := httptest.NewRecorder()
		m.Browser(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if c := w.Result().Cookies()[0]; c.MaxAge != 0 || !c.Expires.IsZero() {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("AS-47 a form may be filled in for an hour", func(t *testing.T) {
		s, err := m.SealStep("login", "b", state{"q"})
		if err != nil {
			t.Fatal(err)
		}
		s = aged(t, "step", "login", s, time.Hour-time.Second)
		now = now.Add(time.Hour - time.Second)
		var got state
		if err := m.OpenStep("login", "b", s, &got); err != nil || got.Query != "q" {
			t.Errorf("just before: got %+v, %v", got, err)
		}
		now = now.Add(time.Second)
		if err := m.OpenStep("login", "b", s, &state{}); !errors.Is(err, ErrStep) {
			t.Errorf("then: got %v, want ErrStep", err)
		}
	})
	t.Run("signing out takes the cookie away", func(t *testing.T) {
		w := httptest.NewRecorder()
		m.Clear(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if c := w.Result().Cookies()[0]; c.Name != m.session || c.Value != "" || c.MaxAge != -1 {
			t.Errorf("got %+v", c)
		}
	})
}

// A state with another structure comes from another version of this program. Opening half of it
// would not match the form that was shown.
func TestStepOfAnotherShape(t *testing.T) {
	m := manager(t, "http://localhost", nil)
	s, err := m.SealStep("login", "b", map[string]int{"q": 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.OpenStep("login", "b", s, &state{}); !errors.Is(err, ErrStep) {
		t.Errorf("AS-47: got %v, want ErrStep", err)
	}
}

func TestNobodyIsRemembered(t *testing.T) {
	m, w := manager(t, "http://localhost", nil), httptest.NewRecorder()
	m.Remember(w, httptest.NewRequest(http.MethodGet, "/", nil), "")
	if m.KnownBrowser(carry(w)).Name != "" {
		t.Error("AS-05: a browser without a sign-in is known")
	}
}
