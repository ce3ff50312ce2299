package browser

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// remote has a browser ask to be signed in from another device, and returns what it shows.
func (b *tab) remote() (code, number string) {
	b.t.Helper()
	b.click("form[action$='/login/device'] button")
	return b.shown()
}

func (b *tab) shown() (code, number string) {
	b.t.Helper()
	shown, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](
		"[...document.querySelectorAll('dd strong.host')].map(e => e.innerText)"))
	if err != nil || len(shown) != 2 {
		b.t.Fatalf("the page shows %q (%v) at %s", shown, err, b.location())
	}
	return shown[0], shown[1]
}

// scan opens the link of a code, and goes on: nothing is looked up before.
func (b *tab) scan(issuer, code string) {
	b.t.Helper()
	b.visit(issuer + "/device?user_code=" + url.QueryEscape(code))
	b.inspect("devicecode_linked")
	b.click("form[action$='/device'] button")
}

// PE-15: one browser is signed in from another one, on its way to an application.
func TestSignInOnAnotherDevice(t *testing.T) {
	issuer := serveFor(t, "localhost")
	asker, phone := open(t, looks[0]), open(t, looks[2])
	asker.visit(issuer + "/login")
	code, number := asker.remote()
	asker.inspect("remote")
	asker.leave()

	phone.visit(issuer + "/device?user_code=" + url.QueryEscape(strings.ToLower(code)))
	phone.signIn("alice", password)
	phone.inspect("remoteask")
	phone.do(chromedp.SendKeys(chromedp.CSS("#number"), number))
	phone.decide("approve")
	phone.until("document.querySelector('h1').innerText === 'The browser is signed in'")
	phone.inspect("remotedone")

	asker.arrive() // by itself
	asker.visit(issuer + "/account")
	asker.until("document.querySelectorAll('[data-session]').length === 2")

	// the Enter key in the number approves, and denies nothing
	second := open(t, looks[1])
	second.visit(issuer + "/login")
	code, number = second.remote()
	phone.scan(issuer, code)
	phone.until("typeof held === 'boolean' && !held")
	phone.leave()
	phone.do(chromedp.SendKeys(chromedp.CSS("#number"), number+"\r"))
	phone.arrive()
	phone.until("document.querySelector('h1').innerText === 'The browser is signed in'")

	// without script the page goes on, too
	third := open(t, looks[0])
	if _, err := chromedp.Call(third.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	third.visit(issuer + "/login")
	third.do(chromedp.Click(chromedp.CSS("form[action$='/login/device'] button")))
	third.until("document.querySelectorAll('dd strong.host').length === 2")
	code, number = third.shown()
	phone.scan(issuer, code)
	phone.do(chromedp.SendKeys(chromedp.CSS("#number"), number))
	phone.decide("approve")
	third.until("!location.pathname.includes('/login')")
}
