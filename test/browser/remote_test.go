package browser

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
)

// remote makes a browser request a sign-in from another device, and returns the displayed code and
// number.
func (b *tab) remote() (code, number string) {
	b.TB.Helper()
	b.click("form[action$='/login/device'] button")
	return b.shown()
}

func (b *tab) shown() (code, number string) {
	b.TB.Helper()
	shown := eval[[]string](b, "[...document.querySelectorAll('dd strong.host')].map(e => e.innerText)")
	if len(shown) != 2 {
		b.TB.Fatalf("the page shows %q at %s", shown, b.Location())
	}
	return shown[0], shown[1]
}

// scan opens the link of a code and continues. Nothing is looked up before that.
func (b *tab) scan(issuer, code string) {
	b.TB.Helper()
	b.visit(issuer + "/device?user_code=" + url.QueryEscape(code))
	b.inspect("devicecode_linked")
	b.click("form[action$='/device'] button")
}

// TestSignInOnAnotherDevice: PE-15: one browser is signed in from another one, on its way to an
// application.
func TestSignInOnAnotherDevice(t *testing.T) {
	lane.Long(t, "authserver tests the page")
	t.Parallel()
	issuer := serveFor(t, "localhost")
	asker, phone := open(t, looks[0]), open(t, looks[2])
	asker.visit(issuer + "/login")
	code, number := asker.remote()
	asker.inspect("remote")
	asker.leave()

	phone.visit(issuer + "/device?user_code=" + url.QueryEscape(strings.ToLower(code)))
	phone.signIn("alice", password)
	phone.inspect("remoteask")
	phone.Do(chromedp.SendKeys(chromedp.CSS("[name=number]"), number))
	phone.decide("approve")
	phone.Until("document.querySelector('h1').innerText === 'The browser is signed in'")
	phone.inspect("remotedone")

	asker.arrive() // without an action
	asker.visit(issuer + "/account")
	asker.Until("document.querySelectorAll('[data-session]').length === 2")

	// Enter in the number field approves
	second := open(t, looks[1])
	second.visit(issuer + "/login")
	code, number = second.remote()
	phone.scan(issuer, code)
	phone.Until("typeof held === 'boolean' && !held")
	phone.leave()
	phone.Do(chromedp.SendKeys(chromedp.CSS("[name=number]"), number+"\r"))
	phone.arrive()
	phone.Until("document.querySelector('h1').innerText === 'The browser is signed in'")

	// the page also works without script
	third := open(t, looks[0])
	third.WithoutScript()
	third.visit(issuer + "/login")
	third.Do(chromedp.Click(chromedp.CSS("form[action$='/login/device'] button")))
	third.Until("document.querySelectorAll('dd strong.host').length === 2")
	code, number = third.shown()
	phone.scan(issuer, code)
	phone.Do(chromedp.SendKeys(chromedp.CSS("[name=number]"), number))
	phone.decide("approve")
	third.Until("!location.pathname.includes('/login')")
}
