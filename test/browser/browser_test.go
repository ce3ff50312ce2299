// Package browser drives the pages in a real Chromium: a person signs in and
// approves, at two sizes and in two colour schemes, and axe finds nothing wrong.
package browser

import (
	"bufio"
	"context"
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

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestMain(m *testing.M) {
	code := m.Run()
	demotest.Cleanup()
	os.Exit(code)
}

// chromium returns the path of a browser. Without one the test is skipped; with
// CI=true that is a failure.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no Chromium: apt-get install chromium")
	}
	t.Skip("no Chromium: apt-get install chromium")
	return ""
}

// look is how a person's screen is.
type look struct {
	name          string
	width, height int64
	scheme        string
}

var looks = []look{
	{"desktop-light", 1280, 800, "light"},
	{"desktop-dark", 1280, 800, "dark"},
	{"phone-light", 390, 844, "light"},
	{"phone-dark", 390, 844, "dark"},
}

// tab is a fresh browser.
type tab struct {
	t   *testing.T
	ctx context.Context
	axe string
	l   look
}

// open is a browser as a person has it, not as a program (web/assets/hold.js).
func open(t *testing.T, l look) *tab {
	t.Helper()
	return openWith(t, l, chromedp.Flag("enable-automation", false),
		chromedp.Flag("disable-blink-features", "AutomationControlled"))
}

func openWith(t *testing.T, l look, more ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	path := chromium(t)
	axe, err := os.ReadFile(filepath.Join(npmtest.Dir(t), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("host-resolver-rules", "MAP other.example 127.0.0.1"))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	t.Cleanup(cancel)
	b := &tab{t, ctx, string(axe), l}
	b.do(chromedp.EmulateViewport(l.width, l.height))
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}},
	}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatalf("%v (at %s)", err, b.location())
	}
}

func (b *tab) location() string {
	u, _ := chromedp.Run(b.ctx, chromedp.Location())
	return u
}

// inspect holds the page against the rules, runs axe on it, and takes a picture.
func (b *tab) inspect(page string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS("main")))
	b.axeOn(page)
	b.hold(page)
	b.picture(page)
}

// axeOn runs axe on the page as it is shown.
func (b *tab) axeOn(page string) {
	b.t.Helper()
	const run = `(async () => { const r = await axe.run(document, {resultTypes: ['violations']});
		return JSON.stringify(r.violations.map(v => v.id + ': ' + v.help + ' at ' + v.nodes.map(n => n.target.join(' ')).join(', '))) })()`
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](b.axe+";\n"+run, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: axe: %v", page, err)
	}
	var violations []string
	if err := json.Unmarshal([]byte(out), &violations); err != nil {
		b.t.Fatalf("%s: axe answered %q", page, out)
	}
	for _, v := range violations {
		b.t.Errorf("%s %s: %s", page, b.l.name, v)
	}
}

// picture saves a screenshot for people to look at, if they ask for one.
func (b *tab) picture(page string) {
	dir := os.Getenv("MCP_AUTHD_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, page+"-"+b.l.name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// app is a client that has registered itself: what it is called back with.
type app struct {
	*httptest.Server
	id   string
	back chan url.Values
}

// serveApp serves an application that is not registered anywhere yet.
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

// answer waits until the browser is back at the application and has shown its page.
func (a *app) answer(t *testing.T, b *tab) url.Values {
	t.Helper()
	select {
	case q := <-a.back:
		b.until("document.readyState == 'complete' && document.title == 'back'")
		return q
	case <-time.After(time.Minute):
		t.Fatal("the browser did not come back to the application")
		return nil
	}
}

// login types name and password; keys alone, as a person without a mouse would.
func (b *tab) login(name, password string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS("input[name=username]")),
		chromedp.SendKeys(chromedp.CSS("input[name=username]"), name),
		chromedp.SendKeys(chromedp.CSS("input[name=password]"), password+"\r"))
}

func TestSignIn(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	for _, l := range looks {
		t.Run("AS-46 AS-71 AS-72 sign in, approve, sign out: "+l.name, func(t *testing.T) {
			a := newApp(t, d, "Notes for <b>Teams</b> & friends")
			b := open(t, l)
			b.do(chromedp.Navigate(a.link(d)))
			b.inspect("login")
			b.login(d.Username, "wrong password")
			b.do(chromedp.WaitVisible(chromedp.CSS("[role=alert]")))
			b.inspect("login-wrong")
			b.do(chromedp.SendKeys(chromedp.CSS("input[name=password]"), d.Password+"\r"),
				chromedp.WaitVisible(chromedp.CSS("button[value=approve]")))
			b.inspect("consent")
			b.do(press("approve"))
			if q := a.answer(t, b); q.Get("code") == "" || q.Get("state") != "s" || q.Get("iss") != d.Issuer {
				t.Errorf("got %v", q)
			}
			b.do(chromedp.Navigate(a.link(d))) // the second time there is nothing to click
			if q := a.answer(t, b); q.Get("code") == "" {
				t.Errorf("AS-74: got %v", q)
			}
			b.do(chromedp.Navigate(d.Issuer + "/"))
			b.inspect("home")
			b.do(chromedp.Click(chromedp.CSS("form[action$='/logout'] button")),
				chromedp.WaitNotPresent(chromedp.CSS("form[action$='/logout']")))
			b.inspect("signed-out")
		})
	}
}

func TestOtherPages(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	a := newApp(t, d, "An App")
	for _, l := range looks {
		t.Run("AS-40 AS-60 error pages: "+l.name, func(t *testing.T) {
			b := open(t, l)
			b.do(chromedp.Navigate(a.link(d, "client_id", "nobody")))
			b.inspect("error")
			b.do(chromedp.Navigate(a.link(d, "code_challenge_method", "plain")))
			b.inspect("stopped")
		})
	}
}

func TestWithoutScript(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	a := newApp(t, d, "An App")
	b := open(t, looks[0])
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(a.link(d)))
	b.login(d.Username, d.Password)
	b.do(chromedp.WaitVisible(chromedp.CSS("button[value=deny]")), chromedp.Click(chromedp.CSS("button[value=deny]")))
	if q := a.answer(t, b); q.Get("error") != "access_denied" || q.Get("iss") != d.Issuer {
		t.Errorf("AS-41: got %v", q)
	}
}

// serve starts a server that is not set up and returns its one-time link.
func serve(t *testing.T) (link string) {
	t.Helper()
	address := nettest.For(t)
	cmd := exec.Command(demotest.Binary(t), "serve", "--data", t.TempDir())
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
	for _, l := range looks {
		t.Run("the first administrator: "+l.name, func(t *testing.T) {
			link := serve(t)
			b := open(t, l)
			// Issue 11, 4.7: a link that is no longer good is said before a password is thought of.
			b.do(chromedp.Navigate(link+"x"), chromedp.WaitVisible(chromedp.CSS("#gone")),
				chromedp.WaitNotVisible(chromedp.CSS("form")))
			b.inspect("setup-gone")
			b.do(chromedp.Navigate(link), chromedp.WaitVisible(chromedp.CSS("form")),
				chromedp.WaitNotVisible(chromedp.CSS("#gone")))
			b.inspect("setup")
			if at := b.location(); strings.Contains(at, "token") {
				t.Errorf("the token stays in the address: %s", at)
			}
			b.do(chromedp.SendKeys(chromedp.CSS("input[name=username]"), "root"),
				chromedp.SendKeys(chromedp.CSS("input[name=password]"), "correct horse battery\r"),
				chromedp.WaitNotPresent(chromedp.CSS("input[name=password]")))
			b.inspect("setup-done")
			b.do(chromedp.Navigate(link))
			if title, err := chromedp.Run(b.ctx,
				chromedp.Evaluate[bool]("document.querySelector('input[name=password]') === null")); err != nil ||
				!title {
				t.Errorf("setup is open a second time (%v)", err)
			}
		})
	}
}
