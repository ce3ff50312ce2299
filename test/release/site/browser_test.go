//go:build release

package site

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mcp-authd/mcp-authd/internal/testkit/browsertest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
)

// tab is a browser tab with its requests and console messages.
type tab struct {
	*browsertest.Tab
	mu       sync.Mutex // guards the rest
	asked    []string
	problems []string
}

func open(t *testing.T) *tab {
	t.Helper()
	if browsertest.Path() == "" {
		t.Fatal("no Chromium: apt-get install chromium")
	}
	b := &tab{Tab: browsertest.Open(t, screen(1280, "light"))}
	b.listen()
	return b
}

func screen(width int64, scheme string) browsertest.Look {
	return browsertest.Look{Width: width, Height: 800, Scheme: scheme}
}

// listen records every request and every message in the browser's console.
func (b *tab) listen() {
	b.TB.Helper()
	say := func(list *[]string, text string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		*list = append(*list, text)
	}
	if err := chromedp.Listen(b.Ctx, func(ev any) {
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
		b.TB.Fatal(err)
	}
	browsertest.Call(b.Tab, network.Enable, network.EnableParams{})
	browsertest.Call(b.Tab, cdplog.Enable, cdp.Empty{})
}

// eval returns the value of a JavaScript expression.
func eval[T any](b *tab, expression string) T {
	b.TB.Helper()
	return browsertest.Eval[T](b.Tab, expression)
}

func (b *tab) visit(url string) {
	b.TB.Helper()
	b.Do(chromedp.Navigate(url))
	b.Until("document.readyState === 'complete'")
}

// TestLooks: DL-05: pages of each kind fit each screen in both color schemes. axe finds no faults.
// The page sends no request to another host and writes no console message.
func TestLooks(t *testing.T) {
	root, b := served(t), open(t)
	axe, err := os.ReadFile(filepath.Join(npmtest.Dir(t), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	const run = `(async () => { const r = await axe.run(document, {resultTypes: ['violations']});
		return r.violations.map(v => v.id + ' at ' + v.nodes.map(n => n.target.join(' ')).join(', ')) })()`
	for _, path := range []string{
		"", "goals/", "operating/", "operating/accounts/", "reference/configuration/", "search/", "architecture/",
	} {
		b.visit(root + path)
		backgrounds := map[string]bool{}
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{320, 390, 768, 1280} {
				b.Dress(screen(width, scheme))
				if over := eval[float64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
					t.Errorf("DL-05: %q scrolls sideways by %v at a width of %d", path, over, width)
				}
			}
			backgrounds[eval[string](b, "getComputedStyle(document.body).backgroundColor")] = true
			for _, finding := range eval[[]string](b, string(axe)+";\n"+run) {
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

// TestSearch: DL-05: a user finds and opens a key of the configuration with the keyboard alone.
func TestSearch(t *testing.T) {
	root, b := served(t), open(t)
	b.visit(root + "operating/")
	b.Do(chromedp.KeyEvent("/"))
	b.Until("document.activeElement.matches('.bar input[type=search]')")
	// A user's browser types no "/" here. This one sends keys and characters separately.
	b.Do(chromedp.KeyEvent(kb.Backspace), chromedp.KeyEvent("tokens.access_ttl"))
	b.Until("document.querySelectorAll('.bar .found a').length > 0")
	first := eval[string](b, "document.querySelector('.bar .found a').innerText")
	if !strings.Contains(first, "tokens.access_ttl") || !strings.Contains(first, "Configuration") {
		t.Errorf("DL-05: the first find is %q", first)
	}
	b.Do(chromedp.KeyEvent(kb.ArrowDown))
	b.Until("document.activeElement.matches('.bar .found a')")
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Until("location.pathname.endsWith('/some/where/reference/configuration/')")
	b.visit(root + "search/?q=nothingisnamedthis")
	b.Until("document.querySelector('.large .said')?.innerText === 'Nothing found.'")
}

// TestColours: DL-05: a reader's choice overrides that of the system, and is permanent.
func TestColours(t *testing.T) {
	root, b := served(t), open(t)
	const background = "getComputedStyle(document.body).backgroundColor"
	b.visit(root)
	light := eval[string](b, background)
	b.Do(chromedp.Click(chromedp.CSS("button.theme")), chromedp.Click(chromedp.CSS("button.theme")))
	b.Until(background + " !== '" + light + "'")
	b.visit(root + "goals/")
	b.Until(background + " !== '" + light + "'")
	b.Do(chromedp.Click(chromedp.CSS("button.theme")))
	b.Until(background + " === '" + light + "'")
}

// TestWithoutScript: DL-05: all content is readable, and the search page lists every heading.
func TestWithoutScript(t *testing.T) {
	root, b := served(t), open(t)
	b.WithoutScript()
	b.Do(chromedp.Navigate(root+"search/"),
		chromedp.WaitVisible(chromedp.CSS(`a[href="../operating/health/#replicas"]`)))
	b.Do(chromedp.Navigate(root+"operating/health/"), chromedp.WaitVisible(chromedp.CSS("article h2#replicas")))
}

// TestNotFound: DL-05: the page for missing pages looks right at any depth.
func TestNotFound(t *testing.T) {
	root, b := served(t), open(t)
	b.visit(root + "no/such/page/")
	if got := eval[string](b, "getComputedStyle(document.querySelector('main')).borderRadius"); got != "16px" {
		t.Errorf("DL-05: its style is missing: %s", got)
	}
}
