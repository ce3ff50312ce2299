// Package browser tests the pages in a real Chromium: a user signs in and approves, at two sizes
// and in two color schemes. axe must find no faults.
package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/browsertest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var looks = []browsertest.Look{
	{Name: "desktop-light", Width: 1280, Height: 800, Scheme: "light"},
	{Name: "desktop-dark", Width: 1280, Height: 800, Scheme: "dark"},
	{Name: "phone-light", Width: 390, Height: 844, Scheme: "light"},
	{Name: "phone-dark", Width: 390, Height: 844, Scheme: "dark"},
}

// tab is a user's browser. It shares nothing with other tabs.
type tab struct {
	*browsertest.Tab
	axe string
}

func open(t *testing.T, l browsertest.Look) *tab {
	t.Helper()
	return &tab{browsertest.Open(t, l), axe(t)}
}

// openAlone opens a tab of another Chromium with additional flags.
func openAlone(t *testing.T, l browsertest.Look, flags ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	return &tab{browsertest.OpenAlone(t, l, flags...), axe(t)}
}

func axe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(npmtest.Dir(t), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

func (b *tab) in(t *testing.T) *tab { return &tab{b.In(t), b.axe} }

// inspect checks the page with rules.js and axe, and saves a picture.
func (b *tab) inspect(page string) {
	b.TB.Helper()
	b.Do(chromedp.WaitVisible(chromedp.CSS("main")))
	b.axeOn(page)
	b.hold(page)
	b.picture(page)
}

// axeOn runs axe on the current page.
func (b *tab) axeOn(page string) {
	b.TB.Helper()
	const run = `(async () => { const r = await axe.run(document, {resultTypes: ['violations']});
		return r.violations.map(v => v.id + ': ' + v.help + ' at ' + v.nodes.map(n => n.target.join(' ')).join(', ')) })()`
	for _, v := range eval[[]string](b, b.axe+";\n"+run) {
		b.TB.Errorf("%s %s: %s", page, b.Look.Name, v)
	}
}

// picture saves a screenshot if MCP_AUTHD_SCREENSHOTS is set.
func (b *tab) picture(page string) {
	dir := os.Getenv("MCP_AUTHD_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := browsertest.Run(b.Tab, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, page+"-"+b.Look.Name+".png"), png, 0o644)
	}
	if err != nil {
		b.TB.Error(err)
	}
}

// app is a client that has registered itself. It receives the parameters of its callback.
type app struct {
	*httptest.Server
	id   string
	back chan url.Values
}

// serveApp serves an application that is not registered yet.
func serveApp(t *testing.T) *app {
	a := &app{back: make(chan url.Values, 10)}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/callback" {
			a.back <- r.URL.Query()
		}
		fmt.Fprint(w, "<!doctype html><title>back</title><main>back at the application</main>")
	}))
	t.Cleanup(a.Close)
	return a
}

func newApp(t *testing.T, d *demotest.Demo, name string) *app {
	t.Helper()
	a := serveApp(t)
	body, _ := json.Marshal(map[string]any{"client_name": name, "redirect_uris": []string{a.URL + "/callback"}})
	resp, err := http.Post(d.Issuer+"/register", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct {
		ClientID string `json:"client_id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || out.ClientID == "" {
		t.Fatalf("register: %s %v", resp.Status, err)
	}
	a.id = out.ClientID
	return a
}

func (a *app) link(d *demotest.Demo, change ...string) string {
	q := url.Values{
		"response_type": {"code"}, "client_id": {a.id}, "redirect_uri": {a.URL + "/callback"}, "state": {"s"},
		"resource":       {d.MCPURL},
		"code_challenge": {oauth.ChallengeS256(strings.Repeat("v", 43))}, "code_challenge_method": {"S256"},
		"scope": {"mcp notes:write"},
	}
	for i := 0; i+1 < len(change); i += 2 {
		q.Set(change[i], change[i+1])
	}
	return d.Issuer + "/authorize?" + q.Encode()
}

// answer waits until the browser has returned to the application and shows its page.
func (a *app) answer(t *testing.T, b *tab) url.Values {
	t.Helper()
	select {
	case q := <-a.back:
		b.Until("document.readyState == 'complete' && document.title == 'back'")
		return q
	case <-time.After(wait.Bound):
		t.Fatal("the browser did not come back to the application")
		return nil
	}
}

// login types name and password with the keyboard only.
func (b *tab) login(name, password string) {
	b.TB.Helper()
	b.Do(chromedp.WaitVisible(chromedp.CSS("input[name=username]")),
		chromedp.SendKeys(chromedp.CSS("input[name=username]"), name),
		chromedp.SendKeys(chromedp.CSS("input[name=password]"), password+"\r"))
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	d := demotest.Start(t, demotest.Options{})
	for _, l := range looks {
		t.Run("AS-46 AS-71 AS-72 sign in, approve, sign out: "+l.Name, func(t *testing.T) {
			if l.Name != "phone-dark" {
				lane.Long(t, "phone-dark has the same pages")
			}
			a := newApp(t, d, "Notes for <b>Teams</b> & friends")
			b := open(t, l)
			b.Do(chromedp.Navigate(a.link(d)))
			b.inspect("login")
			b.login(d.Username, "wrong password")
			b.Do(chromedp.WaitVisible(chromedp.CSS("[role=alert]")))
			b.inspect("login-wrong")
			b.Do(chromedp.SendKeys(chromedp.CSS("input[name=password]"), d.Password+"\r"),
				chromedp.WaitVisible(chromedp.CSS("button[value=approve]")))
			b.inspect("consent")
			b.press("approve")
			if q := a.answer(t, b); q.Get("code") == "" || q.Get("state") != "s" || q.Get("iss") != d.Issuer {
				t.Errorf("got %v", q)
			}
			b.Do(chromedp.Navigate(a.link(d))) // the second time no consent is required
			if q := a.answer(t, b); q.Get("code") == "" {
				t.Errorf("AS-74: got %v", q)
			}
			b.Do(chromedp.Navigate(d.Issuer + "/"))
			b.inspect("home")
			b.Do(chromedp.Click(chromedp.CSS("form[action$='/logout'] button")),
				chromedp.WaitNotPresent(chromedp.CSS("form[action$='/logout']")))
			b.inspect("signed-out")
		})
	}
}

func TestOtherPages(t *testing.T) {
	lane.Long(t, "TestSignIn inspects the pages of a sign-in")
	t.Parallel()
	d := demotest.Start(t, demotest.Options{})
	a := newApp(t, d, "An App")
	for _, l := range looks {
		t.Run("AS-40 AS-60 error pages: "+l.Name, func(t *testing.T) {
			b := open(t, l)
			b.Do(chromedp.Navigate(a.link(d, "client_id", "nobody")))
			b.inspect("error")
			b.Do(chromedp.Navigate(a.link(d, "code_challenge_method", "plain")))
			b.inspect("stopped")
		})
	}
}

func TestWithoutScript(t *testing.T) {
	t.Parallel()
	d := demotest.Start(t, demotest.Options{})
	a := newApp(t, d, "An App")
	b := open(t, looks[0])
	b.WithoutScript()
	b.Do(chromedp.Navigate(a.link(d)))
	b.login(d.Username, d.Password)
	b.Do(chromedp.WaitVisible(chromedp.CSS("button[value=deny]")), chromedp.Click(chromedp.CSS("button[value=deny]")))
	if q := a.answer(t, b); q.Get("error") != "access_denied" || q.Get("iss") != d.Issuer {
		t.Errorf("AS-41: got %v", q)
	}
}

// serve starts a server without an administrator and returns its setup link.
func serve(t *testing.T) (link string) {
	t.Helper()
	address := nettest.For(t)
	cmd := exec.Command(program.Authd(t), "serve", "--data", t.TempDir())
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "MCP_AUTHD_LISTEN="+address,
		"MCP_AUTHD_ISSUER=http://"+address, "MCP_AUTHD_MANAGEMENT_LISTEN=")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve did not exit with 0: %v", err)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, after, ok := strings.Cut(lines.Text(), "http://"+address+"/setup#token="); ok {
			return "http://" + address + "/setup#token=" + strings.Fields(after)[0]
		}
	}
	t.Fatal("serve printed no setup link")
	return ""
}

func TestSetup(t *testing.T) {
	lane.Long(t, "authserver tests the setup")
	t.Parallel()
	for _, l := range looks {
		t.Run("the first administrator: "+l.Name, func(t *testing.T) {
			link := serve(t)
			b := open(t, l)
			// Issue 11, 4.7: an invalid link is reported before the user chooses a password.
			b.Do(chromedp.Navigate(link+"x"), chromedp.WaitVisible(chromedp.CSS("#gone")),
				chromedp.WaitNotVisible(chromedp.CSS("form")))
			b.inspect("setup-gone")
			b.Do(chromedp.Navigate(link), chromedp.WaitVisible(chromedp.CSS("form")),
				chromedp.WaitNotVisible(chromedp.CSS("#gone")))
			b.inspect("setup")
			if at := b.Location(); strings.Contains(at, "token") {
				t.Errorf("the token stays in the address: %s", at)
			}
			b.Do(chromedp.SendKeys(chromedp.CSS("input[name=username]"), "root"),
				chromedp.SendKeys(chromedp.CSS("input[name=password]"), "correct horse battery\r"),
				chromedp.WaitNotPresent(chromedp.CSS("input[name=password]")))
			b.inspect("setup-done")
			b.Do(chromedp.Navigate(link))
			if eval[bool](b, "document.querySelector('input[name=password]') !== null") {
				t.Error("setup is open a second time")
			}
		})
	}
}
