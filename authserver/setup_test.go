package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestSetupCheck checks that a replaced setup link is reported before the operator has typed a
// password (issue 11, 4.7). The response is the same for every invalid link.
func TestSetupCheck(t *testing.T) {
	r := newRig(t)
	p := r.person()
	token := func() string {
		t.Helper()
		link, err := r.SetupLink(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, token, _ := strings.Cut(link, "token=")
		return token
	}
	first, second := token(), token()
	pg := p.get("/setup")
	if !strings.Contains(pg.header.Get("Content-Security-Policy"), "; connect-src 'self'") {
		t.Errorf("its script may not ask: %s", pg.header.Get("Content-Security-Policy"))
	}
	step := pg.step(t)
	for name, tt := range map[string]struct {
		step, token string
		want        int
	}{
		"the last one":       {step, second, 204},
		"one that it ended":  {step, first, 410},
		"one that was made":  {step, "x", 410},
		"none":               {step, "", 410},
		"of another browser": {"x", second, 400},
	} {
		got := p.post("/setup/check", url.Values{"step": {tt.step}, "token": {tt.token}})
		if got.status != tt.want || got.body != "" {
			t.Errorf("%s: got %d %q, want %d", name, got.status, got.body, tt.want)
		}
	}
	if got := p.post("/setup/check", url.Values{"step": {step}, "token": {second}}, "Sec-Fetch-Site",
		"cross-site"); got.status != 403 {
		t.Errorf("from another site: got %d", got.status)
	}
	done := p.post("/setup",
		url.Values{"step": {step}, "token": {second}, "username": {"root"}, "password": {"correct horse battery"}})
	if done.status != 200 {
		t.Fatalf("checking has spent the token: got %d %s", done.status, done.body)
	}
	if got := p.post("/setup/check", url.Values{"step": {step}, "token": {second}}); got.status != 410 {
		t.Errorf("spent: got %d", got.status)
	}
}

// A refused name or password leads back to the form, which still has the link's token. An invalid
// token is reported, and only a valid one creates an account.
func TestSetupAgain(t *testing.T) {
	r := newRig(t)
	p := r.person()
	link, err := r.SetupLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(link, "token=")
	step := p.get("/setup").step(t)
	for _, tt := range []struct {
		name, user, password, token string
		status                      int
		says                        string
	}{
		{"a short password", "root", "short", token, 400, "at least 8 characters"},
		{"a common password", "root", "password123", token, 400, "most common"},
		{"a bad name", "ro ot", "correct horse battery", token, 400, "letters, digits"},
		{"a wrong token", "root", "correct horse battery", "x", 403, "no longer valid"},
	} {
		pg := p.post("/setup",
			url.Values{"step": {step}, "token": {tt.token}, "username": {tt.user}, "password": {tt.password}})
		if pg.status != tt.status || !strings.Contains(pg.body, tt.says) ||
			!strings.Contains(pg.body, `value="`+tt.user+`"`) || !strings.Contains(pg.body, `value="`+tt.token+`"`) {
			t.Errorf("%s: got %d %.1500s", tt.name, pg.status, pg.body)
		}
		if strings.Contains(pg.body, tt.password) {
			t.Errorf("%s: the page repeats the password", tt.name)
		}
	}
	pg := p.post("/setup",
		url.Values{"step": {step}, "token": {token}, "username": {"root"}, "password": {"correct horse battery"}})
	if pg.status != 200 || !strings.Contains(pg.body, "root") {
		t.Errorf("got %d %.400s", pg.status, pg.body)
	}
}

// RU-13: the page after the setup mentions passkeys and a console only where they are available.
func TestSetupSaysWhatIsThere(t *testing.T) {
	for name, test := range map[string]struct {
		change            func(*Config)
		passkeys, console bool
	}{
		"nothing": {func(*Config) {}, false, false},
		"passkeys and a console": {func(c *Config) {
			named(c)
			c.Console = func(*Visitors) http.Handler { return http.NotFoundHandler() }
		}, true, true},
		"a console elsewhere": {func(c *Config) {
			c.Console = func(*Visitors) http.Handler { return http.NotFoundHandler() }
			c.ConsoleApart = true
		}, false, false},
	} {
		r := newRig(t, test.change)
		p := r.person()
		link, err := r.SetupLink(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, token, _ := strings.Cut(link, "token=")
		pg := p.post("/setup", url.Values{
			"step": {p.get("/setup").step(t)}, "token": {token}, "username": {"root"},
			"password": {"correct horse battery"},
		})
		if got := strings.Contains(pg.body, "add a passkey"); pg.status != 200 || got != test.passkeys {
			t.Errorf("RU-13: %s: status %d, passkeys: %v", name, pg.status, got)
		}
		if got := strings.Contains(pg.body, "leads to the console"); got != test.console {
			t.Errorf("RU-13: %s: console: %v", name, got)
		}
	}
}
