package authserver

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestDeadEnds checks that errors are a page for users and JSON for programs, not a line of plain
// text (issue 11, 4.7).
func TestDeadEnds(t *testing.T) {
	r := newRig(t)
	all := httptest.NewServer(r.Server.Handler())
	defer all.Close()
	ask := func(method, path string, header ...string) page {
		t.Helper()
		jar, _ := cookiejar.New(nil)
		p := &person{
			r, &http.Client{
				Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			},
		}
		req, _ := http.NewRequest(method, all.URL+path, strings.NewReader(""))
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		return p.do(req)
	}
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, tt := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"GET", "/nothing", 404, "There is no such page"},
		{"GET", "/consent", 405, "This page cannot be opened again"},
		{"GET", "/logout", 405, "This page cannot be opened again"},
		{"GET", "/token", 405, "This page cannot be opened again"},
		{"POST", "/consent", 403, "This form was not sent from this server"},
	} {
		header := []string{}
		if tt.status == 403 {
			header = []string{"Sec-Fetch-Site", "cross-site"}
		}
		pg := ask(tt.method, tt.path, append(header, "Accept", browser)...)
		id := pg.header.Get("X-Request-Id")
		if pg.status != tt.status || !strings.HasPrefix(pg.header.Get("Content-Type"), "text/html") ||
			!strings.Contains(pg.body, tt.says) ||
			!strings.Contains(pg.body, id) || id == "" || !strings.Contains(pg.body, `href="/"`) ||
			!strings.Contains(pg.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s %s: got %d %.500s", tt.method, tt.path, pg.status, pg.body)
		}
		if tt.status == 405 && pg.header.Get("Allow") == "" {
			t.Errorf("%s %s has no Allow", tt.method, tt.path)
		}
		pg = ask(tt.method, tt.path, append(header, "Accept", "application/json")...)
		if pg.status != tt.status || pg.header.Get("Content-Type") != "application/json" ||
			!strings.Contains(pg.body, `"error":"invalid_request"`) {
			t.Errorf("%s %s for a program: got %d %s", tt.method, tt.path, pg.status, pg.body)
		}
	}
	if pg := ask("GET", "/robots.txt"); pg.status != 200 || !strings.Contains(pg.body, "Disallow: /") {
		t.Errorf("robots.txt: got %d %s", pg.status, pg.body)
	}
	icon := ask("GET", "/favicon.ico").header.Get("Location")
	if pg := ask("GET", icon); pg.status != 200 || pg.header.Get("Content-Type") != "image/svg+xml" {
		t.Errorf("favicon.ico leads to %q: %d %s", icon, pg.status, pg.header.Get("Content-Type"))
	}
}

// TestStartPageSignIn checks that users with a password can sign in at the start page, and at the
// address /login.
func TestStartPageSignIn(t *testing.T) {
	r := newRig(t)
	p := r.person()
	if pg := p.get("/"); !strings.Contains(pg.body, `href="/login"`) {
		t.Fatalf("the start page has no way to sign in: %s", pg.body)
	}
	pg := p.get("/login")
	pg = p.post("/login",
		url.Values{"step": {pg.step(t)}, "username": {"alice"}, "password": {"correct horse battery"}})
	if pg.status != http.StatusSeeOther || pg.header.Get("Location") != "/account" {
		t.Fatalf("got %d to %q", pg.status, pg.header.Get("Location"))
	}
	if pg := p.get("/"); !strings.Contains(pg.body, "Signed in as") || strings.Contains(pg.body, `href="/login"`) {
		t.Errorf("after signing in: %s", pg.body)
	}
	if pg := p.get("/login"); pg.status != http.StatusSeeOther || pg.header.Get("Location") != "/account" {
		t.Errorf("GET /login of a person who is signed in: %d to %q", pg.status, pg.header.Get("Location"))
	}
	only, _ := delegated(t, func(c *Config) { c.NoLocalLogin = true })
	if pg := only.person().get("/"); strings.Contains(pg.body, `href="/login"`) {
		t.Error("the start page leads to passwords that are turned off")
	}
}

// TestErrorPages checks that a page names the responsible side and the subject, and has a
// reference.
func TestErrorPages(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		query url.Values
		says  []string
	}{
		{authorizeQuery("redirect_uri", "https://evil.example/cb"),
			[]string{"The answer would go to an unknown address", "https://evil.example/cb"}},
		{authorizeQuery("resource", "https://mcp.example.com/mpc"),
			[]string{"https://mcp.example.com/mpc", "operator"}},
		{authorizeQuery("client_id", "nobody"), []string{"This application is not known here"}},
	} {
		pg := r.person().get("/authorize?"+tt.query.Encode(), "Accept", "text/html")
		for _, want := range append(tt.says, "Reference for the operator", pg.header.Get("X-Request-Id")) {
			if !strings.Contains(pg.body, want) {
				t.Errorf("%v: %q is not on the page: %.900s", tt.query, want, pg.body)
			}
		}
		if strings.Contains(pg.body, "Something is not right") {
			t.Errorf("%v: a title without news", tt.query)
		}
	}
}

// TestPagesSayWhatHelps checks that the advice of a page is true, does not blame the application
// wrongly, and has a next step (issue 11, 4.7).
func TestPagesSayWhatHelps(t *testing.T) {
	r := newRig(t)
	r.putClient(storage.Client{
		ID: "self", Name: "An App", RedirectURIs: []string{testRedirect}, GrantTypes: []string{oauth.GrantCode},
		AuthMethod: "none",
		Source:     storage.SourceDynamic, CreatedAt: r.now()})
	p := r.person()
	for _, tt := range []struct {
		name, path string
		status     int
		says       []string
		not        string
	}{
		{"a resource that is not known can be corrected or added",
			"/authorize?" + authorizeQuery("resource", "https://other.example/mcp", "client_id", "self").Encode(), 400,
			[]string{"Check the address of the MCP server", "https://other.example/mcp"}, "must change before"},
		{"a request that only its makers can change",
			"/authorize?" + authorizeQuery("code_challenge_method", "plain", "client_id", "self").Encode(), 400,
			[]string{"must change before"}, "return to the application and try again"},
		{"an unknown application is told of in words for people",
			"/authorize?" + authorizeQuery("client_id", "nobody").Encode(), 400,
			[]string{"no registration of the application", "connect again"}, "Register again."},
	} {
		pg := p.get(tt.path)
		if pg.status != tt.status || strings.Contains(pg.body, tt.not) {
			t.Errorf("%s: got %d %s", tt.name, pg.status, pg.body)
		}
		for _, want := range tt.says {
			if !strings.Contains(pg.body, want) {
				t.Errorf("%s: no %q in %s", tt.name, want, pg.body)
			}
		}
	}
	if pg := p.post("/login", url.Values{"step": {"x"}}); pg.status != 400 || !strings.Contains(pg.body, `href="/"`) {
		t.Errorf("a form that is out of date leads nowhere: %d %s", pg.status, pg.body)
	}
}

// TestRefusedHostHasAStyle checks that the page about an unknown host loads its style from there,
// and names the server's address.
func TestRefusedHostHasAStyle(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Issuer = "https://auth.example.com" })
	ask := func(path string) page {
		req, _ := http.NewRequest(http.MethodGet, r.http.URL+path, nil)
		req.Host = "other.example"
		req.Header.Set("Accept", "text/html")
		return r.person().do(req)
	}
	pg := ask("/")
	_, after, _ := strings.Cut(pg.body, `rel="stylesheet" href="`)
	style, _, _ := strings.Cut(after, `"`)
	if pg.status != http.StatusForbidden || !strings.Contains(pg.body, "https://auth.example.com") {
		t.Errorf("got %d %s", pg.status, pg.body)
	}
	if got := ask(style); got.status != http.StatusOK || got.header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("%s: got %d %s", style, got.status, got.header.Get("Content-Type"))
	}
}

// A wrong password for an application that was removed in the meantime: the page explains that,
// because the form would not help.
func TestClientGoneDuringSignIn(t *testing.T) {
	r := newRig(t)
	p := r.person()
	step := p.get("/authorize?" + authorizeQuery().Encode()).step(t)
	if err := r.store.DeleteClient(t.Context(), "app", r.now()); err != nil {
		t.Fatal(err)
	}
	pg := p.post("/login", url.Values{"step": {step}, "username": {"alice"}, "password": {"wrong"}})
	if pg.status != http.StatusBadRequest || !strings.Contains(pg.body, "This application is not known here") {
		t.Errorf("got %d %.400s", pg.status, pg.body)
	}
}
