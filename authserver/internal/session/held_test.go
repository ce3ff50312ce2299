package session

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// AS-239: a browser holds up to five sessions. One is current, and an earlier version reads that
// one.
func TestHeld(t *testing.T) {
	for _, issuer := range []string{"http://localhost", "https://auth.example.com"} {
		m := manager(t, issuer, nil, 1)
		jar := map[string]string{}
		visit := func(f func(w http.ResponseWriter, r *http.Request)) *http.Request {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			for name, value := range jar {
				r.AddCookie(&http.Cookie{Name: name, Value: value})
			}
			w := httptest.NewRecorder()
			f(w, r)
			for _, c := range w.Result().Cookies() {
				if jar[c.Name] = c.Value; c.MaxAge < 0 {
					delete(jar, c.Name)
				}
				if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure != m.secure {
					t.Errorf("%s is not guarded: %+v", c.Name, c)
				}
			}
			return r
		}
		var begun []BrowserSession
		for range MaxHeld + 2 {
			visit(func(w http.ResponseWriter, r *http.Request) {
				_, held := m.Held(r)
				s := m.Mint("usr_1").InBrowser()
				m.SetCurrent(w, r, s, held...)
				begun = append([]BrowserSession{s}, begun...)
			})
		}
		visit(func(_ http.ResponseWriter, r *http.Request) {
			current, held := m.Held(r)
			if token, _ := m.Token(r); !current || token != begun[0].Hash || !slices.Equal(held, begun[:MaxHeld]) {
				t.Errorf("got %v %v, want the last five of %v", current, held, begun)
			}
		})
		visit(func(w http.ResponseWriter, r *http.Request) {
			_, held := m.Held(r)
			m.SetCurrent(w, r, held[2], held...)
		})
		visit(func(w http.ResponseWriter, r *http.Request) {
			if _, held := m.Held(r); held[0] != begun[2] || len(held) != MaxHeld {
				t.Errorf("got %v, want %v first of five", held, begun[2])
			}
			m.DropCurrent(w, r, begun[0])
		})
		visit(func(w http.ResponseWriter, r *http.Request) {
			if current, held := m.Held(r); current || !slices.Equal(held, begun[:1]) {
				t.Errorf("got %v %v, want one that is not current", current, held)
			}
			m.DropCurrent(w, r)
		})
		if len(jar) != 0 {
			t.Errorf("left behind: %v", jar)
		}
	}
}
