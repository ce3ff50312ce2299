package assembly

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/config"
)

// browser is a user's browser at a listening server.
type browser struct {
	t    *testing.T
	c    *http.Client
	root string
}

const passphrase = "correct horse battery"

// consoled returns a server with accounts, after applying change to its configuration.
func consoled(t *testing.T, change func(*config.Loaded)) *Server {
	t.Helper()
	s := measured(t)
	if change != nil {
		change(s.parts.Config)
		parts := s.parts
		var err error
		if s, err = parts.Server(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
	}
	for name, admin := range map[string]bool{"alice": true, "root": true, "bob": false, "carol": false} {
		if _, err := s.Auth.Users().Create(t.Context(), name, passphrase, admin); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func browse(t *testing.T, h http.Handler) *browser {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, &http.Client{Jar: jar}, server.URL}
}

// page is the final page after redirects.
type page struct {
	status     int
	path, body string
	header     http.Header
}

func (b *browser) do(method, path string, form url.Values) page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.root+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,*/*;q=0.8")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := b.c.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return page{resp.StatusCode, resp.Request.URL.RequestURI(), string(body), resp.Header}
}

func (b *browser) get(path string) page { b.t.Helper(); return b.do(http.MethodGet, path, nil) }

var formOf = regexp.MustCompile(`(?s)<form method="post" action="([^"]*)"[^>]*>.*?name="step" value="([^"]+)"`)

// send posts the first form of a page whose action starts with a path.
func (b *browser) send(p page, to string, kv ...string) page {
	b.t.Helper()
	for _, m := range formOf.FindAllStringSubmatch(p.body, -1) {
		action := html.UnescapeString(m[1])
		if strings.HasPrefix(action, to) {
			form := url.Values{"step": {html.UnescapeString(m[2])}}
			for i := 0; i+1 < len(kv); i += 2 {
				form.Set(kv[i], kv[i+1])
			}
			return b.do(http.MethodPost, action, form)
		}
	}
	b.t.Fatalf("there is no form for %s at %s (%d): %.3000s", to, p.path, p.status, p.body)
	return page{}
}

// at opens a page of the console through the sign-in page.
func (b *browser) at(path, name string) page {
	b.t.Helper()
	return b.send(b.get(path), "/login", "username", name, "password", passphrase)
}

func wantPage(t *testing.T, p page, status int, path string, has ...string) {
	t.Helper()
	if p.status != status || !strings.HasPrefix(p.path, path) {
		t.Errorf("OB-10: got %d %s, want %d %s: %.2000s", p.status, p.path, status, path, p.body)
	}
	for _, words := range has {
		if !strings.Contains(p.body, words) {
			t.Errorf("OB-10: %s does not have %q: %.3000s", p.path, words, p.body)
		}
	}
}

// TestConsole checks that the console requires sign-in, returns to the requested page, and runs an
// operation after a confirmation page (OB-10).
func TestConsole(t *testing.T) {
	s := consoled(t, nil)
	b := browse(t, s.Handler())
	p := b.at("/admin/user/show?name=bob", "alice")
	wantPage(t, p, 200, "/admin/user/show?name=bob", "<bdi>bob</bdi>", "/admin/user/disable?name=bob")
	ask := b.get("/admin/user/disable?name=bob")
	wantPage(t, ask, 200, "/admin/user/disable", "Signs bob out everywhere")
	if u, _ := s.Auth.Users().Find(t.Context(), "bob"); u.Disabled {
		t.Fatal("OB-10: the question alone has disabled the account")
	}
	wantPage(t, b.send(ask, "/admin/user/disable"), 200, "/admin/user/show?name=bob", `role="status"`, ">disabled<")
	if u, _ := s.Auth.Users().Find(t.Context(), "bob"); !u.Disabled {
		t.Error("OB-10: the account is not disabled")
	}
	wantPage(t, b.get("/admin"), 200, "/admin", "Overview", "/admin/user/list")
	wantPage(t, b.get("/admin/user"), 200, "/admin/user", ">carol<")
	wantPage(t, b.get("/admin/user/show?name=nobody"), 404, "/admin", "there is no user")
	wantPage(t, b.get("/admin/no/such/page"), 404, "/admin", "no such page")
	wantPage(t, b.get("/admin/user/show?x="+strings.Repeat("x", 5000)), 400, "/admin", "too long")
}

// TestConsoleWithoutARole checks that an account without a role can see and do nothing (OB-10).
func TestConsoleWithoutARole(t *testing.T) {
	s := consoled(t, nil)
	alice, bob := browse(t, s.Handler()), browse(t, s.Handler())
	ask := alice.at("/admin/user/disable?name=carol", "alice")
	for _, path := range []string{"/admin", "/admin/user/list", "/admin/user/disable?name=carol",
		"/admin/no/such/page"} {
		p := bob.get(path)
		if strings.Contains(p.body, `action="/login"`) {
			p = bob.at(path, "bob")
		}
		wantPage(t, p, 403, path, "administers nothing")
		if strings.Contains(p.body, "carol") && !strings.Contains(path, "carol") {
			t.Errorf("OB-10: %s shows other people", path)
		}
	}
	p := bob.send(ask, "/admin/user/disable")
	if u, _ := s.Auth.Users().Find(t.Context(), "carol"); p.status == 200 || u.Disabled {
		t.Errorf("OB-10: the form of an administrator is good in another browser: %d", p.status)
	}
}

// TestConsoleDemandsASecondFactor checks that, by default, administrators must add a second factor
// before using the console.
func TestConsoleDemandsASecondFactor(t *testing.T) {
	byDefault := config.Default(func(string) string { return "" }).Login
	s := consoled(t, func(c *config.Loaded) { c.Login = byDefault })
	b := browse(t, s.Handler())
	b.at("/admin", "alice")
	for _, path := range []string{"/admin", "/admin/user/disable?name=bob"} {
		if p := b.get(path); p.status != 200 || !strings.Contains(p.body, "you need a second step") {
			t.Errorf("OB-10: %s with a password alone: got %d %.300s", path, p.status, p.body)
		}
	}
	if p := browse(t, s.Handler()).at("/account", "bob"); p.status != 200 || strings.Contains(p.body, "second step") {
		t.Errorf("a person without a role: got %d", p.status)
	}
}

// TestConsoleFromTheAccount checks that only the account page of a user with a role links to the
// console, and that the console links back (OB-10).
func TestConsoleFromTheAccount(t *testing.T) {
	s := consoled(t, nil)
	b := browse(t, s.Handler())
	wantPage(t, b.at("/account", "alice"), 200, "/account", `href="/admin"`)
	wantPage(t, b.get("/admin"), 200, "/admin", `href="/account"`)
	if p := browse(t, s.Handler()).at("/account", "bob"); p.status != 200 || strings.Contains(p.body, `"/admin"`) {
		t.Errorf("OB-10: the account page of a person without a role: %d", p.status)
	}
}

// TestConsoleFormsAreBound checks that a form is valid only for its user, operation and account
// (OB-10).
func TestConsoleFormsAreBound(t *testing.T) {
	s := consoled(t, nil)
	b := browse(t, s.Handler())
	ask := b.at("/admin/user/disable?name=carol", "alice")
	step := formOf.FindStringSubmatch(ask.body[strings.Index(ask.body, `action="/admin/user/disable`)-30:])[2]
	step = html.UnescapeString(step)
	p := b.do(http.MethodPost, "/admin/user/enable?name=carol", url.Values{"step": {step}})
	wantPage(t, p, 403, "/admin/user/enable", "Another person")
	b.do(http.MethodPost, "/admin/user/disable?name=bob", url.Values{"step": {step}, "name": {"bob"}})
	bob, _ := s.Auth.Users().Find(t.Context(), "bob")
	carol, _ := s.Auth.Users().Find(t.Context(), "carol")
	if bob.Disabled || !carol.Disabled {
		t.Errorf("OB-10: a form for carol: bob %v, carol %v", bob.Disabled, carol.Disabled)
	}
	wantPage(t, b.do(http.MethodPost, "/admin/user/enable?name=carol", nil), 400, "/admin/user/enable")
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, b.root+"/admin/user/disable?name=bob",
		strings.NewReader(url.Values{"step": {step}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://evil.example")
	resp, err := b.c.Do(r)
	if err != nil || resp.StatusCode != http.StatusForbidden {
		t.Fatalf("OB-10: a form from another site: %v, %v", resp, err)
	}
	resp.Body.Close()
}

// TestConsoleAsksForAFreshProof checks that a change that cannot be undone first requires
// authentication, and then continues on the same page (OB-10).
func TestConsoleAsksForAFreshProof(t *testing.T) {
	s := consoled(t, func(c *config.Loaded) { c.Console.Fresh = 0 })
	b := browse(t, s.Handler())
	b.at("/admin", "alice")
	p := b.get("/admin/user/disable?name=bob")
	wantPage(t, p, 200, "/prove?to=", "alice")
	if got := b.send(p, "/prove", "password", passphrase).path; !strings.HasPrefix(got, "/prove?to=") {
		t.Errorf("OB-10: no proof is fresh enough here, and the browser went to %s", got)
	}
	s = consoled(t, func(c *config.Loaded) { c.Console.Fresh = config.Duration(time.Hour) })
	b = browse(t, s.Handler())
	b.at("/admin", "alice")
	wantPage(t, b.get("/admin/user/disable?name=bob"), 200, "/admin/user/disable")
}

// TestWhereTheConsoleIs checks that console.listen moves the console to the management listener
// with sign-in, and that console.enabled turns it off (OB-10).
func TestWhereTheConsoleIs(t *testing.T) {
	s := consoled(t, func(c *config.Loaded) { c.Console.Listen = config.ConsoleManagement })
	wantPage(t, browse(t, s.Handler()).get("/admin"), 404, "/admin")
	b := browse(t, s.Management())
	wantPage(t, b.at("/admin/user/list", "alice"), 200, "/admin/user/list", ">bob<")
	wantPage(t, b.get("/metrics"), 200, "/metrics", "go_")
	if p := browse(t, s.Handler()).at("/account", "alice"); p.status != 200 || strings.Contains(p.body, `"/admin"`) {
		t.Errorf("OB-10: the account page of the public listener leads to a console that is not there: %d", p.status)
	}
	s = consoled(t, func(c *config.Loaded) { c.Console.Enabled = false })
	for _, h := range []http.Handler{s.Handler(), s.Management()} {
		wantPage(t, browse(t, h).get("/admin"), 404, "/admin")
	}
}

// TestConsoleSearch checks that users and clients are found by a part of their names, and that an
// unlisted client can be opened (OB-11). The page of the server's own resource exists, because
// grants link to it, but offers no changes.
func TestConsoleSearch(t *testing.T) {
	s := consoled(t, nil)
	b := browse(t, s.Handler())
	// The search includes IDs, so the text must be unlikely in a random ID.
	p := b.at("/admin/user/list?match=AROL", "alice")
	wantPage(t, p, 200, "/admin/user/list", `role="search"`, ">carol<", `value="AROL"`)
	if strings.Contains(p.body, ">bob<") {
		t.Error("OB-11: bob is found by AROL")
	}
	wantPage(t, b.get("/admin/user/list?match=%25"), 200, "/admin/user/list", "Nothing matches")
	p = b.get("/admin/client/list?match=mcp_unlisted")
	wantPage(t, p, 200, "/admin/client/list", `href="/admin/client/show?id=mcp_unlisted">Open mcp_unlisted`)
	own := url.Values{"uri": {s.Auth.Issuer() + apiPath}}
	p = b.get("/admin/resource/show?" + own.Encode())
	wantPage(t, p, 200, "/admin/resource/show", "Administration of this server", "admin:write")
	if strings.Contains(p.body, "/admin/resource/remove") || strings.Contains(p.body, "/admin/resource/set?") {
		t.Error("OB-11: the page of the API offers to remove or change it")
	}
	if p := b.get("/admin/resource/list"); strings.Contains(p.body, "Administration of this server") {
		t.Error("OB-11: the list of MCP servers has the API")
	}
}
