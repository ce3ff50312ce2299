package session

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// tabs returns the request of a browser that has opened several pages at once.
func tabs(m *Manager, count int) (ids []string, r *http.Request) {
	r = httptest.NewRequest(http.MethodGet, "/", nil)
	for range count {
		w := httptest.NewRecorder()
		ids = append(ids, m.Browser(w, httptest.NewRequest(http.MethodGet, "/", nil)))
		for _, c := range w.Result().Cookies() {
			r.AddCookie(c)
		}
	}
	return ids, r
}

func TestTabs(t *testing.T) {
	m := manager(t, "https://auth.example.com", nil)
	open := func(r *http.Request, sealed string) (string, error) {
		w, opened := httptest.NewRecorder(), ""
		err := m.As(w, r, func(browser string) error {
			opened = browser
			return m.OpenStep("login", browser, sealed, &state{})
		})
		if again := m.Browser(w, r); err == nil && again != opened {
			t.Errorf("RU-03 the request is of the browser %q, and then of %q", opened, again)
		}
		return opened, err
	}
	t.Run("RU-03 the forms of all tabs that a fresh browser opens together can be sent", func(t *testing.T) {
		ids, r := tabs(m, 3)
		for i, id := range ids {
			sealed, err := m.SealStep("login", id, state{"q"})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := open(r.Clone(t.Context()), sealed); err != nil || got != id {
				t.Errorf("tab %d: got %q, %v", i, got, err)
			}
		}
	})
	t.Run("RU-03 AS-47 the form of another browser cannot", func(t *testing.T) {
		_, r := tabs(m, 3)
		sealed, err := m.SealStep("login", "another", state{"q"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := open(r, sealed); err != ErrStep {
			t.Errorf("got %v, want ErrStep", err)
		}
		if _, err := open(httptest.NewRequest(http.MethodGet, "/", nil), sealed); err != ErrStep {
			t.Errorf("without a cookie: got %v, want ErrStep", err)
		}
	})
	t.Run("RU-03 a browser that has an id gets no other", func(t *testing.T) {
		ids, r := tabs(m, 3)
		w := httptest.NewRecorder()
		if id := m.Browser(w, r); id != ids[0] || len(w.Result().Cookies()) != 0 {
			t.Errorf("got %q with %v, want %q", id, w.Result().Cookies(), ids[0])
		}
	})
	t.Run("RU-03 ids are bounded, and unreadable ones go first", func(t *testing.T) {
		ids, r := tabs(m, maxBrowserIDs)
		for i := range 5 {
			r.Header.Set("Cookie", m.browserName(fmt.Sprint(i))+"=x; "+r.Header.Get("Cookie"))
		}
		r.AddCookie(&http.Cookie{Name: "other", Value: "kept"})
		w := httptest.NewRecorder()
		m.Browser(w, r)
		if left := m.browserIDs(r); m.Browser(w, r) != ids[0] || len(left) != maxBrowserIDs {
			t.Errorf("got %d ids", len(left))
		}
		if gone := w.Result().Cookies(); len(gone) != 5 {
			t.Errorf("got %v", gone)
		}
		for _, c := range w.Result().Cookies() {
			if c.MaxAge >= 0 {
				t.Errorf("got %v", c)
			}
		}
		if _, err := r.Cookie("other"); err != nil {
			t.Error("a cookie of another program was taken off the request")
		}
	})
}

// RU-02: one issuer does not read the cookies that another issuer on the host sets or removes.
func TestIssuersOfOneHost(t *testing.T) {
	for _, issuers := range [][2]string{
		{"http://127.0.0.1:8414", "http://127.0.0.1:8415"},
		{"https://example.com/a", "https://example.com/b"},
	} {
		a, b := manager(t, issuers[0], nil, 1), manager(t, issuers[1], nil, 2)
		var names [2]map[string]bool
		for i, m := range []*Manager{a, b} {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
			m.SetCurrent(w, r, m.Mint("usr_1").InBrowser(), m.Mint("usr_2").InBrowser())
			m.Browser(w, r)
			m.Remember(w, r, "alice")
			m.ChooseLanguage(w, "fr", "")
			m.AskLanguage(w, r, "de")
			m.DropCurrent(w, r)
			names[i] = map[string]bool{}
			for _, c := range w.Result().Cookies() {
				if slices.Contains(slices.Collect(maps.Values(m.before)), c.Name) {
					continue // read only if the cookie with the new name is missing
				}
				if names[i][c.Name] = true; names[0][c.Name] && names[1][c.Name] {
					t.Errorf("RU-02 %v share the cookie %s", issuers, c.Name)
				}
			}
		}
	}
}

// RU-02: an upgrade from the names that all servers on a host shared signs nobody out, and does not
// change other servers' cookies.
func TestNamesBefore(t *testing.T) {
	const issuer = "https://auth.example.com"
	before := func(key byte) (*Manager, *http.Request) {
		m := manager(t, issuer, nil, key)
		for _, name := range []*string{&m.session, &m.device, &m.waiting, &m.chosen} {
			*name = m.before[*name]
		}
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		m.SetCurrent(w, r, m.Mint("usr_1").InBrowser(), m.Mint("usr_2").InBrowser())
		m.Remember(w, r, "alice")
		m.ChooseLanguage(w, "fr", "")
		m.set(w, m.before[m.browser], "the browser", 0)
		return m, carry(w)
	}
	old, r := before(1)
	_, want := old.Held(r)
	m := manager(t, issuer, nil, 1)
	if current, got := m.Held(r); !current || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("RU-02 got the sessions %v, want %v", got, want)
	}
	if d, l := m.KnownBrowser(r), language(m, r); d.Name != "alice" || l != "fr" {
		t.Errorf("RU-02 got %v, %q", d, l)
	}
	w := httptest.NewRecorder()
	if id := m.Browser(w, r); id != "the browser" {
		t.Errorf("RU-02 earlier forms belong to another browser: %q", id)
	}
	m.DropCurrent(w, r)
	removed := map[string]bool{}
	for _, c := range w.Result().Cookies() {
		removed[c.Name] = c.MaxAge < 0
	}
	if !removed[m.before[m.session]] || !removed[m.before[m.waiting]] {
		t.Errorf("RU-02 a session that was dropped comes back by its name before: %v", removed)
	}
	_, foreign := before(2)
	if _, ok := m.Token(foreign); ok {
		t.Error("RU-02 a session of another server counts")
	}
	w = httptest.NewRecorder()
	m.Browser(w, foreign)
	m.SetCurrent(w, foreign, m.Mint("usr_1").InBrowser())
	m.DropCurrent(w, foreign)
	m.Remember(w, foreign, "bob")
	for _, c := range w.Result().Cookies() {
		if _, err := foreign.Cookie(c.Name); err == nil && c.Name != m.browserName(m.Browser(w, foreign)) {
			t.Errorf("RU-02 the cookie of another server was changed: %v", c)
		}
	}
}

// RU-02: a server of the previous version, beside this one, knows who signed in here. Another
// server on the host changes nothing.
func TestVersionsSideBySide(t *testing.T) {
	const issuer = "https://auth.example.com"
	m := manager(t, issuer, nil, 1)
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
	minted := m.Mint("usr_1").InBrowser()
	m.SetCurrent(w, r, minted)
	r = carry(w)
	old := manager(t, issuer, nil, 1)
	old.session, old.waiting = old.before[old.session], old.before[old.waiting]
	if current, held := old.Held(r); !current || held[0] != minted {
		t.Errorf("RU-02 the previous version knows %v, want %v", held, minted)
	}
	other := httptest.NewRecorder()
	manager(t, "https://auth.example.com/b", nil, 2).SetCurrent(other, r, m.Mint("usr_2").InBrowser())
	for _, c := range other.Result().Cookies() {
		if _, err := r.Cookie(c.Name); err == nil {
			t.Errorf("RU-02 another server sets %s", c.Name)
		}
	}
}

// Issue 32, B: while two versions run side by side, the latest session is current. The other one is
// kept, so that it can be ended.
func TestSessionsThatDisagree(t *testing.T) {
	const issuer = "https://auth.example.com"
	m := manager(t, issuer, nil, 1)
	ours, theirs := m.Mint("usr_1").InBrowser(), m.Mint("usr_1").InBrowser()
	for _, tt := range []struct {
		name      string
		ours, old time.Duration // age of the cookie
		want      []BrowserSession
	}{
		{"the version before has set one since", time.Hour, 0, []BrowserSession{theirs, ours}},
		{"this version has set one since", 0, time.Hour, []BrowserSession{ours, theirs}},
	} {
		t.Run("RU-02 "+tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			for name, c := range map[string]struct {
				value string
				ago   time.Duration
			}{m.session: {ours.value, tt.ours}, m.before[m.session]: {theirs.value, tt.old}} {
				r.AddCookie(&http.Cookie{Name: name, Value: aged(t, "cookie", name, m.encode(name, c.value), c.ago)})
			}
			token, _ := m.Token(r)
			if current, held := m.Held(r); !current || !slices.Equal(held, tt.want) || token != tt.want[0].Hash {
				t.Errorf("got %v, want %v", held, tt.want)
			}
			w := httptest.NewRecorder()
			m.DropCurrent(w, r)
			removed := map[string]bool{}
			for _, c := range w.Result().Cookies() {
				removed[c.Name] = c.MaxAge < 0
			}
			if !removed[m.session] || !removed[m.before[m.session]] {
				t.Errorf("removed %v, want both", removed)
			}
		})
	}
}

func language(m *Manager, r *http.Request) string {
	l, _ := m.Languages(r)
	return l.Tag
}
