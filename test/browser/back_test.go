package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// TestBackAfterSignOut: the next person in front of a browser presses Back, and sees no page of the one
// who has signed out. Chromium brings this one back from memory (bfcache), although it is "no-store".
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
