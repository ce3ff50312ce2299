package browser

import (
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

// visit types an address.
func (b *tab) visit(link string) {
	b.t.Helper()
	b.do(chromedp.Navigate(link))
}

// leave marks the page that is there, so that arrive can tell it from the next one.
func (b *tab) leave() {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void]("void (window.stale = true)"))
}

// forget takes all cookies out of the browser.
func (b *tab) forget() {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		b.t.Fatal(err)
	}
}

// click presses what is there, and waits until the page has gone.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.leave()
	b.do(chromedp.WaitVisible(chromedp.CSS(selector)), chromedp.WaitEnabled(chromedp.CSS(selector)),
		chromedp.Click(chromedp.CSS(selector)))
	b.arrive()
}

// arrive waits for another page than the one that is marked as stale.
func (b *tab) arrive() {
	b.t.Helper()
	b.until("!window.stale && document.readyState === 'complete'")
}

// decide presses a button of a question.
func (b *tab) decide(decision string) {
	b.t.Helper()
	b.leave()
	b.do(press(decision))
	b.arrive()
}

// signIn tries a password.
func (b *tab) signIn(name, password string) {
	b.t.Helper()
	b.leave()
	b.login(name, password)
	b.arrive()
}

// landed waits until the browser is back from a provider.
func (b *tab) landed() {
	b.t.Helper()
	b.until("document.readyState === 'complete' && !!document.querySelector('main h1') && !document.title.startsWith('Continue at ')")
}

// pickAt signs in at a provider that asks, as one of its people.
func (b *tab) pickAt(p fakeidp.Person) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS("select[name=person]")),
		chromedp.SetValue(chromedp.CSS("select[name=person]"), p.Subject),
		chromedp.Click(chromedp.CSS("button[value=approve]")))
	b.landed()
}

// until waits for an expression to be true, on whatever page is there by then.
func (b *tab) until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		if ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression)); err == nil && ok {
			return
		}
	}
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	b.t.Fatalf("%s: never %s: %s", b.location(), expression, text)
}
