package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var desktop = Look{Name: "desktop", Width: 1280, Height: 800, Scheme: "light"}

// serve serves pages by their paths.
func serve(t *testing.T, pages map[string]string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, "<!doctype html><title>page</title>"+body)
	}))
	t.Cleanup(s.Close)
	return s
}

// Tabs share a Chromium, but no cookies, storage or cache.
func TestTabsShareNothing(t *testing.T) {
	var fetched atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/kept.js" {
			fetched.Add(1)
			w.Header().Set("Cache-Control", "max-age=3600")
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, "var kept = true")
			return
		}
		fmt.Fprint(w, `<!doctype html><title>page</title><script src="/kept.js"></script>`)
	}))
	t.Cleanup(s.Close)
	const has = `(async () => {
		const databases = (await indexedDB.databases()).map((d) => d.name);
		return [document.cookie, localStorage.getItem('k') ?? '', sessionStorage.getItem('k') ?? '',
			(await caches.keys()).join(), databases.join()];
	})()`
	const put = `(async () => {
		document.cookie = 'k=v; max-age=3600';
		localStorage.setItem('k', 'v');
		sessionStorage.setItem('k', 'v');
		await caches.open('k');
		await new Promise((done) => { indexedDB.open('k').onsuccess = done; });
	})()`
	first, second := Open(t, desktop), Open(t, desktop)
	if chromedp.FromContext(first.Ctx).Browser != chromedp.FromContext(second.Ctx).Browser {
		t.Error("the tabs have two browsers")
	}
	first.Do(chromedp.Navigate(s.URL))
	first.Do(chromedp.Evaluate[chromedp.Void](put, chromedp.EvalAwaitPromise))
	first.Do(chromedp.Navigate(s.URL + "/again"))
	want := []string{"k=v", "v", "v", "k", "k"}
	if got := Eval[[]string](first, has); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the first tab has %q, want %q", got, want)
	}
	if n := fetched.Load(); n != 1 {
		t.Errorf("the first tab fetched the script %d times, want 1: it has no cache", n)
	}
	second.Do(chromedp.Navigate(s.URL))
	if got := Eval[[]string](second, has); strings.Join(got, "") != "" {
		t.Errorf("the second tab has %q of the first", got)
	}
	if n := fetched.Load(); n != 2 {
		t.Errorf("the script was fetched %d times by both tabs, want 2: they share a cache", n)
	}
}

// Each tab has the focus and its own screen.
func TestLooks(t *testing.T) {
	s := serve(t, map[string]string{"/": ""})
	const seen = `[innerWidth, innerHeight, +matchMedia('(prefers-color-scheme: dark)').matches,
		+document.hasFocus(), +(document.visibilityState === 'visible'), +navigator.webdriver]`
	light := Open(t, desktop)
	dark := Open(t, Look{Name: "phone", Width: 390, Height: 844, Scheme: "dark"})
	automated := Open(t, desktop)
	automated.Automate()
	for _, c := range []struct {
		tab  *Tab
		want string
	}{
		{light, "[1280 800 0 1 1 0]"}, {dark, "[390 844 1 1 1 0]"}, {automated, "[1280 800 0 1 1 1]"},
	} {
		c.tab.Do(chromedp.Navigate(s.URL))
		if got := fmt.Sprint(Eval[[]int](c.tab, seen)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.tab.Look.Name, got, c.want)
		}
	}
}

// Advance runs a page's timers, and the page follows its refresh.
func TestAdvance(t *testing.T) {
	s := serve(t, map[string]string{
		"/timer":   "<script>setTimeout(() => { document.title = 'later' }, 50_000)</script>",
		"/refresh": `<meta http-equiv="refresh" content="50; url=/there">`,
		"/there":   "<main>there</main>",
	})
	b := Open(t, desktop)
	b.Do(chromedp.Navigate(s.URL + "/timer"))
	b.Advance(time.Minute)
	if got := Eval[string](b, "document.title"); got != "later" {
		t.Errorf("the title is %q, want the timer's title", got)
	}
	b.Do(chromedp.Navigate(s.URL + "/refresh"))
	b.Advance(time.Minute)
	b.Until("location.pathname === '/there'")
}

// failing is a testing.TB that reports a failure without failing the real test.
type failing struct {
	testing.TB
	failed atomic.Bool
	ends   []func()
}

func (f *failing) Failed() bool     { return f.failed.Load() }
func (f *failing) Cleanup(e func()) { f.ends = append(f.ends, e) }

func (f *failing) end() {
	for i := range f.ends {
		f.ends[len(f.ends)-1-i]()
	}
}

func TestFailedTestLeavesThePage(t *testing.T) {
	s := serve(t, map[string]string{"/here": "<main>what there is</main>"})
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	kept := func() (files []string) {
		files, _ = filepath.Glob(filepath.Join(root, "test", "out", "*", "*"))
		return files
	}
	good := &failing{TB: t}
	Open(good, desktop).Do(chromedp.Navigate(s.URL + "/here"))
	if good.end(); len(kept()) > 0 {
		t.Errorf("a test that passed leaves %v", kept())
	}
	bad := &failing{TB: t}
	b := Open(bad, desktop)
	b.Do(chromedp.Navigate(s.URL + "/here"))
	part := &failing{TB: t}
	b.In(part)
	part.failed.Store(true)
	part.end()
	bad.failed.Store(true)
	bad.end()
	if len(kept()) != 2 { // once, for the part
		t.Fatalf("got %v", kept())
	}
	for _, file := range kept() {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var wants []string
		switch filepath.Ext(file) {
		case ".html":
			wants = []string{"<!-- " + s.URL + "/here -->", "<main>what there is</main>"}
		case ".png":
			wants = []string{"\x89PNG"}
		default:
			t.Errorf("a test leaves %s", file)
		}
		for _, want := range wants {
			if !strings.Contains(string(content), want) {
				t.Errorf("%s does not have %q", file, want)
			}
		}
	}
}

// If Chromium has exited, the next test starts another one.
func TestChromiumThatEnded(t *testing.T) {
	b := Open(t, desktop)
	p, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.FromContext(p.ctx).Browser.Process().Kill(); err != nil {
		t.Fatal(err)
	}
	<-b.Ctx.Done()
	again := Open(t, desktop)
	if got := Eval[int](again, "1 + 1"); got != 2 {
		t.Errorf("got %d", got)
	}
}
