package browser

import (
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/browsertest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

// visit opens an address.
func (b *tab) visit(link string) {
	b.TB.Helper()
	b.Do(chromedp.Navigate(link))
}

// leave marks the current page, so that arrive can recognize the next one.
func (b *tab) leave() {
	b.TB.Helper()
	b.Do(chromedp.Evaluate[chromedp.Void]("void (window.stale = true)"))
}

// forget deletes all cookies.
func (b *tab) forget() {
	b.TB.Helper()
	browsertest.Call(b.Tab, network.ClearBrowserCookies, cdp.Empty{})
}

// click presses an element and waits until the page is gone.
func (b *tab) click(selector string) {
	b.TB.Helper()
	b.leave()
	b.Do(chromedp.WaitVisible(chromedp.CSS(selector)), chromedp.WaitEnabled(chromedp.CSS(selector)),
		chromedp.Click(chromedp.CSS(selector)))
	b.arrive()
}

// arrive waits for a page without the mark of leave.
func (b *tab) arrive() {
	b.TB.Helper()
	b.Until("!window.stale && document.readyState === 'complete'")
}

// decide presses a decision button.
func (b *tab) decide(decision string) {
	b.TB.Helper()
	b.leave()
	b.press(decision)
	b.arrive()
}

// signIn submits a name and password.
func (b *tab) signIn(name, password string) {
	b.TB.Helper()
	b.leave()
	b.login(name, password)
	b.arrive()
}

// landed waits until the browser is back from a provider.
func (b *tab) landed() {
	b.TB.Helper()
	b.Until("document.readyState === 'complete' && !!document.querySelector('main h1')")
}

// pickAt signs in as a user of a provider that asks.
func (b *tab) pickAt(p fakeidp.Person) {
	b.TB.Helper()
	b.Do(chromedp.WaitVisible(chromedp.CSS("select[name=person]")),
		chromedp.SetValue(chromedp.CSS("select[name=person]"), p.Subject),
		chromedp.Click(chromedp.CSS("button[value=approve]")))
	b.landed()
}

// eval returns the value of a JavaScript expression on the page.
func eval[T any](b *tab, expression string) T {
	b.TB.Helper()
	return browsertest.Eval[T](b.Tab, expression)
}

// secret returns the secret that the page shows for an authenticator app.
func (b *tab) secret() string {
	b.TB.Helper()
	b.Do(chromedp.WaitVisible(chromedp.CSS(".secret code")))
	return eval[string](b, "document.querySelector('.secret code').innerText.replaceAll(' ', '')")
}
