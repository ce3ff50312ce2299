package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/browsertest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// press presses a decision button once the page accepts it (web/assets/hold.js).
func (b *tab) press(decision string) {
	b.TB.Helper()
	button := chromedp.CSS("button[value=" + decision + "]")
	b.Do(chromedp.WaitVisible(button))
	b.Until("typeof held === 'boolean' && !held")
	b.Do(chromedp.Click(button))
}

// managed is an application that can change its registration (RFC 7592).
type managed struct {
	*app
	uri, token string
}

func newManaged(t *testing.T, d *demotest.Demo, name string, redirects ...string) *managed {
	t.Helper()
	a := &managed{app: serveApp(t)}
	body, _ := json.Marshal(map[string]any{"client_name": name, "redirect_uris": redirects})
	resp, err := http.Post(d.Issuer+"/register", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct {
		ID    string `json:"client_id"`
		URI   string `json:"registration_client_uri"`
		Token string `json:"registration_access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || out.Token == "" {
		t.Fatalf("register: %s %v", resp.Status, err)
	}
	a.id, a.uri, a.token = out.ID, out.URI, out.Token
	return a
}

func (a *managed) change(t *testing.T, name string, redirects ...string) {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"client_id": a.id, "client_name": name, "redirect_uris": redirects})
	req, _ := http.NewRequest(http.MethodPut, a.uri, strings.NewReader(string(body)))
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("PUT: %s", resp.Status)
	}
}

// wantQuestion checks that the browser shows a question that names a redirect host, and that no
// application has received a response.
func (b *tab) wantQuestion(place string, apps ...*app) {
	b.TB.Helper()
	b.Do(chromedp.WaitVisible(chromedp.CSS("button[value=approve]")))
	if text := eval[string](b, "document.querySelector('main').innerText"); !strings.Contains(text, place) {
		b.TB.Errorf("the page does not name %s: %s", place, text)
	}
	for _, a := range apps {
		select {
		case q := <-a.back:
			b.TB.Errorf("an application got %v", q)
		default:
		}
	}
}

// Security H1 and H2 in a browser: the code goes to the host that the page named.
func TestCodesGoWhereThePageSaid(t *testing.T) {
	t.Parallel()
	d := demotest.Start(t, demotest.Options{})
	t.Run("H1 SP-01 RFC 7592 the redirect URI changes between page and click", func(t *testing.T) {
		good, evil := serveApp(t), serveApp(t)
		a := newManaged(t, d, "Nice", good.URL+"/callback")
		b := open(t, looks[0])
		link := a.link(d)
		link = strings.Replace(link, "redirect_uri="+url.QueryEscape(a.URL+"/callback"), "redirect_uri=", 1)
		b.Do(chromedp.Navigate(link))
		b.login(d.Username, d.Password)
		b.wantQuestion(strings.TrimPrefix(good.URL, "http://"))
		a.change(t, "Nice", evil.URL+"/callback")
		b.decide("approve")
		b.wantQuestion(strings.TrimPrefix(evil.URL, "http://"), good, evil)
		b.press("deny")
		if q := evil.answer(t, b); q.Get("error") != "access_denied" || q.Has("code") {
			t.Errorf("got %v", q)
		}
	})
	t.Run("H2 AS-77 a changed client gets no code without a question", func(t *testing.T) {
		good, evil := serveApp(t), serveApp(t)
		a := newManaged(t, d, "Nice", good.URL+"/callback")
		a.app.Server.URL = good.URL
		b := open(t, looks[0])
		b.Do(chromedp.Navigate(a.link(d)))
		b.login(d.Username, d.Password)
		b.press("approve")
		if q := good.answer(t, b); !q.Has("code") {
			t.Fatalf("got %v", q)
		}
		a.change(t, "Nice", evil.URL+"/other", good.URL+"/callback")
		b.Do(chromedp.Navigate(a.link(d, "redirect_uri", evil.URL+"/other")))
		b.wantQuestion(strings.TrimPrefix(evil.URL, "http://"), good, evil)
		b.Do(chromedp.Navigate(a.link(d)))
		b.wantQuestion(strings.TrimPrefix(good.URL, "http://"), good, evil)
	})
	t.Run("H2 AS-74 one of two hosts was approved: the other is asked about", func(t *testing.T) {
		good := serveApp(t)
		a := newManaged(t, d, "Nice", good.URL+"/callback", "https://evil.example/cb")
		a.app.Server.URL = good.URL
		b := open(t, looks[0])
		b.Do(chromedp.Navigate(a.link(d)))
		b.login(d.Username, d.Password)
		b.press("approve")
		if q := good.answer(t, b); !q.Has("code") {
			t.Fatalf("got %v", q)
		}
		b.Do(chromedp.Navigate(a.link(d, "redirect_uri", "https://evil.example/cb")))
		b.wantQuestion("evil.example", good)
	})
}

// pageClock is a controllable clock for the timers of a page (web/assets/hold.js).
const pageClock = `{
	let now = 0, id = 0;
	const timers = new Map();
	window.setTimeout = (run, delay) => (timers.set(++id, { run, at: now + delay }), id);
	window.clearTimeout = (id) => timers.delete(id);
	window.pass = (time) => {
		now += time;
		for (const [id, timer] of [...timers]) if (timer.at <= now && timers.delete(id)) timer.run();
	};
}`

// stopTime gives later pages a pageClock.
func (b *tab) stopTime() {
	b.TB.Helper()
	browsertest.Call(b.Tab, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: pageClock})
}

// pass advances that clock by milliseconds.
func (b *tab) pass(milliseconds int) {
	b.TB.Helper()
	b.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("void pass(%d)", milliseconds)))
}

// Security L11: the second click of a double click that began in a window in front of the page
// approves nothing. A user who looks at the page can approve with mouse or keyboard.
func TestDoubleClickjacking(t *testing.T) {
	t.Parallel()
	d := demotest.Start(t, demotest.Options{})
	question := func(t *testing.T, prepare ...func(*tab)) (*tab, *app) {
		a := newApp(t, d, "An App")
		b := open(t, looks[0])
		for _, p := range prepare {
			p(b)
		}
		b.Do(chromedp.Navigate(a.link(d)))
		b.login(d.Username, d.Password)
		b.Do(chromedp.WaitVisible(chromedp.CSS("button[value=approve]")))
		return b, a
	}
	approve := "document.querySelector('button[value=approve]')"
	const moment = 600 // milliseconds, as in web/assets/hold.js
	// Chromium clicks as soon as the button exists, like the second click of a double click, and
	// again before a moment has passed.
	atOnce := func(t *testing.T, b *tab, a *app, again string) {
		t.Helper()
		at := eval[struct{ X, Y float64 }](b, fmt.Sprintf(`(() => { const r = %s.getBoundingClientRect();
			%s; return {X: r.x + r.width / 2, Y: r.y + r.height / 2} })()`, approve, again))
		for range 3 {
			b.pass(moment - 1)
			b.Do(chromedp.MouseClickXY(at.X, at.Y))
		}
		b.wantQuestion("An App", a)
	}
	for name, event := range map[string]string{
		"a window in front was closed": "dispatchEvent(new Event('focus'))",
		"the page was behind":          "document.dispatchEvent(new Event('visibilitychange'))",
	} {
		t.Run("L11 RFC 9700 4.16 "+name, func(t *testing.T) {
			b, a := question(t, (*tab).stopTime)
			b.pass(moment)
			b.Do(chromedp.WaitEnabled(chromedp.CSS("button[value=approve]")))
			atOnce(t, b, a, event)
			b.pass(moment)
			b.press("approve")
			if q := a.answer(t, b); !q.Has("code") {
				t.Errorf("a moment later: got %v", q)
			}
		})
	}
	t.Run("L11 the page has only just come", func(t *testing.T) {
		b, a := question(t, (*tab).stopTime)
		b.Do(chromedp.Navigate(a.link(d)))
		atOnce(t, b, a, "")
	})
	t.Run("L11 by keys alone", func(t *testing.T) {
		b, a := question(t)
		b.Do(chromedp.WaitEnabled(chromedp.CSS("button[value=approve]")))
		for range 20 {
			b.Do(chromedp.KeyEvent("\t"))
			if eval[bool](b, "document.activeElement === "+approve) {
				break
			}
		}
		b.Do(chromedp.Evaluate[chromedp.Void]("void dispatchEvent(new Event('focus'))")) // back from another window
		b.Do(chromedp.WaitEnabled(chromedp.CSS("button[value=approve]")), chromedp.KeyEvent("\r"))
		if q := a.answer(t, b); !q.Has("code") {
			t.Errorf("got %v", q)
		}
	})
	t.Run("L11 a screen reader presses without a pointer", func(t *testing.T) {
		b, a := question(t)
		b.Do(chromedp.WaitEnabled(chromedp.CSS("button[value=approve]")))
		b.Do(chromedp.Evaluate[chromedp.Void](approve + ".click()"))
		if q := a.answer(t, b); !q.Has("code") {
			t.Errorf("got %v", q)
		}
	})
}

// TestDrivenBrowser checks that the pause for users does not affect a program that drives a
// browser.
func TestDrivenBrowser(t *testing.T) {
	t.Parallel()
	d := demotest.Start(t, demotest.Options{})
	a := newApp(t, d, "An App")
	b := open(t, looks[0])
	b.Automate()
	b.Do(chromedp.Navigate(a.link(d)))
	b.login(d.Username, d.Password)
	b.Do(chromedp.WaitVisible(chromedp.CSS("button[value=approve]")),
		chromedp.Click(chromedp.CSS("button[value=approve]")))
	if q := a.answer(t, b); !q.Has("code") {
		t.Errorf("got %v, want a code", q)
	}
}
