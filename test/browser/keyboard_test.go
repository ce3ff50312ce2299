package browser

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// keys types keys into the focused element, like a user without a mouse.
func (b *tab) keys(typed string) {
	b.TB.Helper()
	b.Do(chromedp.KeyEvent(typed))
}

// tabTo presses the tab key until an element has the focus. It checks that each element on the way
// is visible and shows its focus.
func (b *tab) tabTo(selector string) {
	b.TB.Helper()
	const state = `(() => { const e = document.activeElement, s = getComputedStyle(e), box = e.getBoundingClientRect();
		if (e.matches(SELECTOR)) return 'there';
		if (e === document.body) return '';
		if (s.outlineStyle === 'none' || box.bottom < 0 || box.top > innerHeight) return 'unseen: ' + e.outerHTML;
		return ''; })()`
	expression := strings.ReplaceAll(state, "SELECTOR", asJSON(b.TB, selector))
	for range 60 {
		switch at := eval[string](b, expression); at {
		case "there":
			return
		case "":
		default:
			b.TB.Errorf("PE-12: the focus is %s", at)
		}
		b.keys("\t")
	}
	b.TB.Fatalf("PE-12: the tab key does not reach %s at %s", selector, b.Location())
}

// TestByKeyboard checks the keyboard alone: a user signs in, reads the request, removes a
// permission and approves. Then the user pauses and disconnects the application on the account page
// (PE-12).
func TestByKeyboard(t *testing.T) {
	lane.Long(t, "TestSignIn types with keys")
	t.Parallel()
	s := newSite(t, func(c *authserver.Config) { c.Resources = longest[0].catalogue() })
	s.MCPURL = longServer
	s.user("alice")
	b := open(t, looks[2])
	a := s.registered("Notes for Teams", "")
	b.visit(a.link(s.Demo, "scope", fiveScopes))
	b.Do(chromedp.WaitVisible(chromedp.CSS("input[name=username]")))
	b.tabTo("input[name=username]")
	b.keys("alice")
	b.tabTo("input[name=password]")
	b.leave()
	b.keys(passphrase + "\r")
	b.arrive()
	b.tabTo("input[value='articles:write']")
	b.keys(" ")
	b.Until("typeof held === 'boolean' && !held")
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
	b.Until("!document.querySelector('[data-grant]')")
}

// TestMoreByKeyboard: PE-12: the urgent actions work without a mouse: finding recovery codes on the
// sign-in page, denying a device, and stopping everything.
func TestMoreByKeyboard(t *testing.T) {
	lane.Long(t, "TestSignIn types with keys")
	t.Parallel()
	s := newSite(t, nil)
	s.user("alice")
	if err := s.store.PutClient(t.Context(), storage.Client{
		ID: "tv", Name: "A television", GrantTypes: []string{oauth.GrantDeviceCode}, AuthMethod: "none",
		Source: storage.SourceStatic, CreatedAt: time.Now(),
	}); err != nil {
		t.Fatal(err)
	}
	out := s.post("/device_authorization", url.Values{"client_id": {"tv"}, "resource": {s.MCPURL}})
	link, _ := out["verification_uri"].(string)
	code, _ := out["user_code"].(string)
	if code == "" {
		t.Fatalf("got %v", out)
	}
	b := open(t, looks[2])
	b.visit(link)
	b.tabTo("input[name=user_code]")
	b.leave()
	b.keys(code + "\r")
	b.arrive()
	b.tabTo("details.more summary")
	b.keys(" ")
	b.tabTo("input[name=recovery]")
	b.login("alice", passphrase)
	b.Do(chromedp.WaitVisible(chromedp.CSS("button[value=deny]")))
	b.tabTo("button[value=deny]")
	b.leave()
	b.keys("\r")
	b.arrive()
	b.visit(s.Issuer + "/account")
	for range 2 { // it asks for confirmation
		b.tabTo("button[value=stop-all]")
		b.leave()
		b.keys("\r")
		b.arrive()
	}
	b.visit(s.Issuer + "/account")
	b.Until("!!document.querySelector('input[name=password]')")
}
