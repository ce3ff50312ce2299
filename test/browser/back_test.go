package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// TestBackAfterSignOut checks that after a sign-out, the Back button shows no page of the previous
// user. Chromium restores this page from memory (bfcache) although it is "no-store".
func TestBackAfterSignOut(t *testing.T) {
	t.Parallel()
	d := demotest.Start(t, demotest.Options{})
	b := open(t, looks[0])
	b.visit(d.Issuer + "/login")
	b.leave()
	b.login(d.Username, d.Password)
	b.arrive()
	b.click("form[action$='/logout'] button")
	b.Do(chromedp.Evaluate[chromedp.Void]("void history.back()"))
	b.Until("document.readyState === 'complete' && !!document.querySelector('input[name=password]')")
	if text := eval[string](b, "document.documentElement.outerHTML"); strings.Contains(text, d.Username) {
		t.Errorf("Back shows a page of the person who has signed out, at %s", b.Location())
	}
}
