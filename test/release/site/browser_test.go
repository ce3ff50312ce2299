//go:build release

package site

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
)

// tab is a browser, and what it asked for and complained of.
type tab struct {
	t        *testing.T
	ctx      context.Context
	mu       sync.Mutex // guards the rest
	asked    []string
	problems []string
}

func open(t *testing.T) *tab {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
		}
	}
	if path == "" {
		t.Fatal("no Chromium: apt-get install chromium")
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true))...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	b.listen()
	b.dress(1280, 800, "light")
	return b
}

// listen writes down every request, and whatever the console of the browser has to say.
func (b *tab) listen() {
	b.t.Helper()
	say := func(list *[]string, text string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		*list = append(*list, text)
	}
	if err := chromedp.Listen(b.ctx, func(ev any) {
		switch e := ev.(type) {
		case *network.EventRequestWillBeSent:
			say(&b.asked, e.Request.URL)
		case *cdplog.EventEntryAdded:
			say(&b.problems, e.Entry.Text+" "+e.Entry.URL)
		case *runtime.EventExceptionThrown:
			say(&b.problems, e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			say(&b.problems, "the console was written to")
		}
	}); err != nil {
		b.t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{}); err != nil {
		b.t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, cdplog.Enable, cdp.Empty{}); err != nil {
		b.t.Fatal(err)
	}
}

// do carries out steps, all of which have to succeed.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// dress gives the tab a screen.
func (b *tab) dress(width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		b.t.Fatal(err)
	}
	focused := emulation.SetFocusEmulationEnabledParams{Enabled: true}
	if _, err := chromedp.Call(b.ctx, emulation.SetFocusEmulationEnabled, focused); err != nil {
		b.t.Fatal(err)
	}
}

// eval is what an expression comes to.
func eval[T any](b *tab, js string) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return out
}

// until waits for an expression to hold.
func (b *tab) until(js string) {
	b.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !eval[bool](b, "!!("+js+")"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("it never came to hold: %s", js)
		}
	}
}

func (b *tab) visit(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url))
	b.until("document.readyState === 'complete'")
}

// TestLooks: DL-05: pages of each kind fit each screen, in both colours, with nothing for axe to find, no request
// to another host and nothing in the console.
func TestLooks(t *testing.T) {
	root, b := served(t), open(t)
	axe, err := os.ReadFile(filepath.Join(npmtest.Dir(t), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	const run = `(async () => { const r = await axe.run(document, {resultTypes: ['violations']});
		return JSON.stringify(r.violations.map(v => v.id + ' at ' + v.nodes.map(n => n.target.join(' ')).join(', '))) })()`
	for _, path := range []string{
		"", "goals/", "operating/", "operating/accounts/", "reference/configuration/", "search/", "architecture/",
	} {
		b.visit(root + path)
		backgrounds := map[string]bool{}
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{320, 390, 768, 1280} {
				b.dress(width, 800, scheme)
				if over := eval[float64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
					t.Errorf("DL-05: %q scrolls sideways by %v at a width of %d", path, over, width)
				}
			}
			backgrounds[eval[string](b, "getComputedStyle(document.body).backgroundColor")] = true
			var bad []string
			if err := json.Unmarshal([]byte(eval[string](b, string(axe)+";\n"+run)), &bad); err != nil {
				t.Fatal(err)
			}
			for _, finding := range bad {
				t.Errorf("DL-05: %q %s: %s", path, scheme, finding)
			}
		}
		if len(backgrounds) != 2 {
			t.Errorf("DL-05: %q has one background in light and dark: %v", path, backgrounds)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, url := range b.asked {
		if !strings.HasPrefix(url, root) {
			t.Errorf("DL-05: it asked for %s", url)
		}
	}
	if len(b.asked) < 20 {
		t.Errorf("DL-05: it asked for %d files only", len(b.asked))
	}
	for _, problem := range b.problems {
		t.Errorf("DL-05: the console says: %s", problem)
	}
}

// TestSearch: DL-05: by keys alone a person finds a key of the configuration and opens it.
func TestSearch(t *testing.T) {
	root, b := served(t), open(t)
	b.visit(root + "operating/")
	b.do(chromedp.KeyEvent("/"))
	b.until("document.activeElement.matches('.bar input[type=search]')")
	// A person's browser types no "/" after that; this one sends keys and characters apart.
	b.do(chromedp.KeyEvent(kb.Backspace), chromedp.KeyEvent("tokens.access_ttl"))
	b.until("document.querySelectorAll('.bar .found a').length > 0")
	first := eval[string](b, "document.querySelector('.bar .found a').innerText")
	if !strings.Contains(first, "tokens.access_ttl") || !strings.Contains(first, "Configuration") {
		t.Errorf("DL-05: the first find is %q", first)
	}
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.until("document.activeElement.matches('.bar .found a')")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until("location.pathname.endsWith('/some/where/reference/configuration/')")
	b.visit(root + "search/?q=nothingisnamedthis")
	b.until("document.querySelector('.large .said')?.innerText === 'Nothing found.'")
}

// TestColours: DL-05: a reader's choice goes before that of the system, and lasts.
func TestColours(t *testing.T) {
	root, b := served(t), open(t)
	const background = "getComputedStyle(document.body).backgroundColor"
	b.visit(root)
	light := eval[string](b, background)
	b.do(chromedp.Click(chromedp.CSS("button.theme")), chromedp.Click(chromedp.CSS("button.theme")))
	b.until(background + " !== '" + light + "'")
	b.visit(root + "goals/")
	b.until(background + " !== '" + light + "'")
	b.do(chromedp.Click(chromedp.CSS("button.theme")))
	b.until(background + " === '" + light + "'")
}

// TestWithoutScript: DL-05: everything can be read, and the page of the search lists every heading.
func TestWithoutScript(t *testing.T) {
	root, b := served(t), open(t)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(root+"search/"),
		chromedp.WaitVisible(chromedp.CSS(`a[href="../operating/health/#replicas"]`)))
	b.do(chromedp.Navigate(root+"operating/health/"), chromedp.WaitVisible(chromedp.CSS("article h2#replicas")))
}

// TestNotFound: DL-05: the page for what there is not looks right at any depth.
func TestNotFound(t *testing.T) {
	root, b := served(t), open(t)
	b.visit(root + "no/such/page/")
	if got := eval[string](b, "getComputedStyle(document.querySelector('main')).borderRadius"); got != "16px" {
		t.Errorf("DL-05: its style is missing: %s", got)
	}
}
