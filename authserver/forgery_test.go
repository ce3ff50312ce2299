package authserver

import (
	"net/http"
	"net/url"
	"testing"
)

// TestForgedForms checks that a form of another site is refused in two ways. The browser's
// Sec-Fetch-Site header (or Origin without it) shows it, and the state is sealed for one browser.
// Each is sufficient without the other.
func TestForgedForms(t *testing.T) {
	r := newRig(t)
	ours := r.http.URL
	for _, tt := range []struct {
		name    string
		header  []string
		refused bool
	}{
		{"RU-04 ours, by a browser of today", []string{"Sec-Fetch-Site", "same-origin", "Origin", ours}, false},
		{"RU-04 ours, without Sec-Fetch-Site", []string{"Origin", ours}, false},
		{"RU-04 ours, without either", nil, false},
		{"RU-04 of another site", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, true},
		{"RU-04 of another site, without Sec-Fetch-Site", []string{"Origin", "https://evil.example"}, true},
		{"RU-04 of another site, without Origin", []string{"Sec-Fetch-Site", "cross-site"}, true},
		{"RU-04 of another site that hides its origin, without Sec-Fetch-Site", []string{"Origin", "null"}, true},
		{"RU-04 of another port", []string{"Origin", "http://127.0.0.1:1"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := r.person()
			form := func(by *person) url.Values {
				return url.Values{
					"step":     {by.get("/authorize?" + authorizeQuery().Encode()).step(t)},
					"username": {"alice"}, "password": {"correct horse battery"},
				}
			}
			want := http.StatusSeeOther
			if tt.refused {
				want = http.StatusForbidden
			}
			if pg := p.post("/login", form(p), tt.header...); pg.status != want {
				t.Errorf("a form of this browser: got %d, want %d", pg.status, want)
			}
			if want == http.StatusSeeOther {
				want = http.StatusBadRequest
			}
			if pg := r.person().post("/login", form(r.person()), tt.header...); pg.status != want {
				t.Errorf("a form of another browser: got %d, want %d", pg.status, want)
			}
		})
	}
	t.Run("RU-04 every form is guarded by the headers", func(t *testing.T) {
		p := r.person()
		for _, path := range []string{
			"/login", "/consent", "/choose", "/login/passkey", "/login/recovery", "/login/second", "/prove",
			"/login/forgotten", "/link/mcplk_x", "/setup", "/setup/check", "/device", "/logout", "/language",
			"/clearance/x", "/account/connections", "/account/sign-ins", "/account/stop", "/account/notices",
			pageWays, pagePasskey, pageApp, pageRecovery, pagePassword, pageKeys, "/login/device", "/device/sign-in",
		} {
			for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "same-site"}} {
				if pg := p.post(path, url.Values{}, header...); pg.status != http.StatusForbidden {
					t.Errorf("%s with %v: got %d, want 403", path, header, pg.status)
				}
			}
		}
	})
}
