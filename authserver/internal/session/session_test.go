package session

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

type state struct {
	Query string `json:"q"`
}

func manager(t testing.TB, issuer string, now func() time.Time, keys ...byte) *Manager {
	t.Helper()
	if keys == nil {
		keys = []byte{1}
	}
	var masters [][]byte
	for _, k := range keys {
		masters = append(masters, bytes.Repeat([]byte{k}, 32))
	}
	m, err := New(Config{SecretKeys: masters, Issuer: issuer, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// carry returns a request with the cookies of a response.
func carry(w *httptest.ResponseRecorder) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, c := range w.Result().Cookies() {
		r.AddCookie(c)
	}
	return r
}

func TestCookies(t *testing.T) {
	for issuer, wantSecure := range map[string]bool{
		"https://auth.example.com/t": true, "http://127.0.0.1:8414": false,
	} {
		t.Run("AS-75 "+issuer, func(t *testing.T) {
			m := manager(t, issuer, nil)
			w := httptest.NewRecorder()
			minted := m.Mint("usr_1")
			m.SetCurrent(w, httptest.NewRequest(http.MethodGet, "/", nil), minted.InBrowser())
			m.Browser(w, httptest.NewRequest(http.MethodGet, "/", nil))
			m.Remember(w, httptest.NewRequest(http.MethodGet, "/", nil), "Alice")
			for _, c := range w.Result().Cookies() {
				if c.Secure != wantSecure || strings.HasPrefix(c.Name, "__Host-") != wantSecure || !c.HttpOnly ||
					c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
					t.Errorf("got %+v", c)
				}
				if strings.Contains(c.Value, minted.value) {
					t.Errorf("%s shows the session id in clear", c.Name)
				}
			}
			r := carry(w)
			if h, ok := m.Token(r); !ok || h != minted.Session.Hash {
				t.Errorf("got %x %v, want the minted session", h, ok)
			}
			if d := m.KnownBrowser(r); d.Name != "alice" || d.ID == "" {
				t.Errorf("AS-05: got %+v, want the browser of alice", d)
			}
		})
	}
	t.Run("PE-05 a browser keeps its id for one person, and has another for the next", func(t *testing.T) {
		m := manager(t, "http://localhost", nil)
		remembered := func(r *http.Request, name string) *http.Request {
			w := httptest.NewRecorder()
			m.Remember(w, r, name)
			return carry(w)
		}
		first := remembered(httptest.NewRequest(http.MethodGet, "/", nil), "Alice")
		again := remembered(first, "alice")
		other := remembered(again, "bob")
		if a, b := m.KnownBrowser(first), m.KnownBrowser(again); a != b || a.ID == "" {
			t.Errorf("got %+v, then %+v", a, b)
		}
		if d := m.KnownBrowser(other); d.Name != "bob" || d.ID == m.KnownBrowser(first).ID {
			t.Errorf("got %+v", d)
		}
	})
	t.Run("AS-05 a browser from before there were ids is known", func(t *testing.T) {
		m, w := manager(t, "http://localhost", nil), httptest.NewRecorder()
		m.set(w, m.device, "alice", deviceTTL)
		if d := m.KnownBrowser(carry(w)); d != (KnownBrowser{Name: "alice"}) {
			t.Errorf("got %+v", d)
		}
	})
	t.Run("SP-14 every session has a fresh id", func(t *testing.T) {
		m := manager(t, "http://localhost", nil)
		if a, b := m.Mint("u"), m.Mint("u"); a.Session.Hash == b.Session.Hash {
			t.Error("two sessions share an id")
		}
	})
	t.Run("AS-47 a forged cookie identifies no person", func(t *testing.T) {
		m := manager(t, "http://localhost", nil)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: m.session, Value: "forged"})
		if _, ok := m.Token(r); ok {
			t.Error("accepted")
		}
	})
	t.Run("a cookie of one name is no good under another", func(t *testing.T) {
		m := manager(t, "http://localhost", nil)
		w := httptest.NewRecorder()
		m.Browser(w, httptest.NewRequest(http.MethodGet, "/", nil))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: m.session, Value: w.Result().Cookies()[0].Value})
		if _, ok := m.Token(r); ok {
			t.Error("a browser id passed for a session")
		}
	})
	t.Run("the browser id is given once and stays", func(t *testing.T) {
		m := manager(t, "http://localhost", nil)
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		a := m.Browser(w, r)
		if b := m.Browser(w, r); a != b || len(w.Result().Cookies()) != 1 {
			t.Errorf("got %q then %q with %d cookies", a, b, len(w.Result().Cookies()))
		}
		if c := m.Browser(httptest.NewRecorder(), carry(w)); c != a {
			t.Errorf("got %q, want %q", c, a)
		}
	})
	t.Run("AS-47 a browser id that cannot be read is no id, and the new one is given exactly once", func(t *testing.T) {
		m, w := manager(t, "http://localhost", nil), httptest.NewRecorder()
		manager(t, "http://localhost", nil, 9).Browser(w, httptest.NewRequest(http.MethodGet, "/", nil))
		strange := w.Result().Cookies()[0]
		for name, c := range map[string]*http.Cookie{
			"junk": {Name: m.browserName("x"), Value: "x"}, "under another master key": strange,
		} {
			r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
			r.AddCookie(c)
			a := m.Browser(w, r)
			if b := m.Browser(w, r); a != b || len(w.Result().Cookies()) != 1 {
				t.Errorf("%s: got %q then %q with %d cookies", name, a, b, len(w.Result().Cookies()))
			}
			again := carry(w)
			again.Header["Cookie"] = []string{c.Name + "=" + c.Value + "; " + again.Header.Get("Cookie")}
			if c := m.Browser(httptest.NewRecorder(), again); c != a {
				t.Errorf("%s, beside ours: got %q, want %q", name, c, a)
			}
		}
	})
	t.Run("an older master key still opens, a stranger's does not", func(t *testing.T) {
		w := httptest.NewRecorder()
		m := manager(t, "http://localhost", nil, 1)
		m.SetCurrent(w, httptest.NewRequest(http.MethodGet, "/", nil), m.Mint("u").InBrowser())
		if _, ok := manager(t, "http://localhost", nil, 2, 1).Token(carry(w)); !ok {
			t.Error("signed out by a key change")
		}
		if _, ok := manager(t, "http://localhost", nil, 2).Token(carry(w)); ok {
			t.Error("opened under a foreign key")
		}
	})
}

func TestStep(t *testing.T) {
	now := time.Now()
	m := manager(t, "http://localhost", func() time.Time { return now })
	seal := func() string {
		s, err := m.SealStep("login", "browser-1", state{"a=b"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Run("AS-47 it opens for its purpose in its browser", func(t *testing.T) {
		var got state
		if err := m.OpenStep("login", "browser-1", seal(), &got); err != nil || got.Query != "a=b" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	for _, tt := range []struct{ name, purpose, browser, sealed string }{
		{"another browser", "login", "browser-2", seal()},
		{"no browser", "login", "", seal()},
		{"another purpose", "consent", "browser-1", seal()},
		{"altered", "login", "browser-1", "A" + seal()},
		{"empty", "login", "browser-1", ""},
		{"huge", "login", "browser-1", strings.Repeat("A", maxStepLength+1)},
	} {
		t.Run("AS-47 refused: "+tt.name, func(t *testing.T) {
			if err := m.OpenStep(tt.purpose, tt.browser, tt.sealed, &state{}); !errors.Is(err, ErrStep) {
				t.Errorf("got %v, want ErrStep", err)
			}
		})
	}
	t.Run("AS-47 refused: an hour old", func(t *testing.T) {
		s := seal()
		now = now.Add(stepTTL)
		if err := m.OpenStep("login", "browser-1", s, &state{}); !errors.Is(err, ErrStep) {
			t.Errorf("got %v, want ErrStep", err)
		}
	})
	t.Run("a request of six kilobytes fits, an endless one does not", func(t *testing.T) {
		if _, err := m.SealStep("login", "b", state{strings.Repeat("%41", 2<<10)}); err != nil {
			t.Error(err)
		}
		if _, err := m.SealStep("login", "b", state{strings.Repeat("x", 64<<10)}); !errors.Is(err, ErrStepSize) {
			t.Errorf("got %v, want ErrStepSize", err)
		}
	})
}

func FuzzOpenStep(f *testing.F) {
	m := manager(f, "http://localhost", nil)
	good, _ := m.SealStep("login", "b", state{"q"})
	f.Add(good)
	f.Add("")
	f.Add("MTcwMDAwMDAwMHxhYmM=")
	f.Fuzz(func(t *testing.T, sealed string) {
		var s state
		if err := m.OpenStep("login", "b", sealed, &s); err == nil && s.Query != "q" {
			t.Errorf("opened %q to %+v", sealed, s)
		}
	})
}
