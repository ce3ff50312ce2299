package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/authserver"
)

// keys types keys into what has the focus, as a person without a mouse does.
func (b *tab) keys(typed string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(typed))
}

// tabTo presses the tab key until an element has the focus, and demands that each one on the way is
// on the screen and shows it.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	const state = `(() => { const e = document.activeElement, s = getComputedStyle(e), box = e.getBoundingClientRect();
		if (e.matches(SELECTOR)) return 'there';
		if (e === document.body) return '';
		if (s.outlineStyle === 'none' || box.bottom < 0 || box.top > innerHeight) return 'unseen: ' + e.outerHTML;
		return ''; })()`
	expression := strings.ReplaceAll(state, "SELECTOR", asJSON(b.t, selector))
	for range 60 {
		at, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression))
		if err != nil {
			b.t.Fatal(err)
		}
		if at == "there" {
			return
		}
		if at != "" {
			b.t.Errorf("PE-12: the focus is %s", at)
		}
		b.keys("\t")
	}
	b.t.Fatalf("PE-12: the tab key does not reach %s at %s", selector, b.location())
}

// TestByKeyboard: a person without a mouse signs in, looks at what is asked, leaves a permission
// out and approves; then pauses the application on the account page, and disconnects it (PE-12).
func TestByKeyboard(t *testing.T) {
	s := newSite(t, func(c *authserver.Config) { c.Resources = longest[0].catalogue() })
	s.MCPURL = longServer
	s.user("alice")
	b := open(t, looks[2])
	b.focus()
	a := s.registered("Notes for Teams", "")
	b.visit(a.link(s.Demo, "scope", fiveScopes))
	b.do(chromedp.WaitVisible(chromedp.CSS("input[name=username]")))
	b.tabTo("input[name=username]")
	b.keys("alice")
	b.tabTo("input[name=password]")
	b.leave()
	b.keys(passphrase + "\r")
	b.arrive()
	b.tabTo("input[value='articles:write']")
	b.keys(" ")
	b.until("typeof held === 'boolean' && !held")
	b.tabTo("button[value=approve]")
	b.keys("\r")
	if got := s.redeemed(a, a.answer(t, b))["scope"]; got != "mcp articles:read talks:read" {
		t.Errorf("AS-237: got %q", got)
	}
	b.visit(s.Issuer + "/account")
	b.tabTo("button[value=pause]")
	b.leave()
	b.keys("\r")
	b.arrive()
	b.tabTo("button[value=resume]")
	b.tabTo("button[value=disconnect]")
	b.leave()
	b.keys(" ")
	b.arrive()
	b.until("!document.querySelector('[data-grant]')")
}
