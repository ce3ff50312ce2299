package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// withoutScript has the pages that the tab opens from now on run no script.
func (b *tab) withoutScript() {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		b.t.Fatal(err)
	}
}

// unfold opens what folds in an element.
func (b *tab) unfold(selector string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS(selector+" summary")), chromedp.Click(chromedp.CSS(selector+" summary")))
}

// TestAccountWithoutScript: everything on the account page, and on those that it leads to, is done
// in a browser that runs no script (PE-12).
func TestAccountWithoutScript(t *testing.T) {
	s := newSite(t, func(c *authserver.Config) { c.Resources = longest[0].catalogue() })
	s.MCPURL = longServer
	if _, err := s.as.Users().Create(t.Context(), "alice", passphrase, false); err != nil {
		t.Fatal(err)
	}
	a, b := s.registered("Notes for Teams", ""), open(t, looks[2])
	b.visit(a.link(s.Demo, "scope", fiveScopes))
	b.signIn("alice", passphrase)
	b.decide("approve") // the application is connected as most are
	s.token(a, a.answer(t, b))
	other := open(t, looks[0])
	other.visit(s.Issuer + "/login")
	other.signIn("alice", passphrase)
	b.withoutScript()
	b.visit(s.Issuer + "/account")

	t.Run("PE-09 fewer permissions, a pause and its end", func(t *testing.T) {
		b := b.in(t)
		b.unfold("[data-grant]")
		b.do(chromedp.WaitVisible(chromedp.CSS("[data-grant] input[value='articles:write']")),
			chromedp.Click(chromedp.CSS("[data-grant] input[value='articles:write']")))
		b.click("[data-grant] button[value=narrow]")
		b.until("!!document.querySelector('[role=status]') && !document.querySelector('input[value=\"articles:write\"]')")
		b.click("[data-grant] button[value=pause]")
		b.click("[data-grant] button[value=resume]")
		b.until("!!document.querySelector('[data-grant] button[value=pause]')")
	})
	t.Run("PE-13 another language, and back", func(t *testing.T) {
		b := b.in(t)
		for _, tag := range []string{"de", "en"} {
			b.do(chromedp.SetValue(chromedp.CSS("#language"), tag))
			b.click("form.language button")
			b.until("document.documentElement.lang === '" + tag + "' && location.pathname === '/account'")
		}
	})
	t.Run("PE-04 an app is added, named and removed, and recovery codes are made", func(t *testing.T) {
		b := b.in(t)
		b.click("a[href$='/account/app']")
		secret, err := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS(".secret code")))
		if err != nil {
			t.Fatal(err)
		}
		code, err := totp.GenerateCode(strings.ReplaceAll(secret, " ", ""), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		b.leave()
		b.do(chromedp.SendKeys(chromedp.CSS("input[name=code]"), code+"\r"))
		b.arrive()
		b.visit(s.Issuer + "/account")
		const app = "[data-credential^=way_]"
		b.unfold(app)
		b.do(chromedp.SetValue(chromedp.CSS(app+" input[name=name]"), "Old phone"))
		b.click(app + " button[value=rename]")
		b.until("document.querySelector('" + app + "').innerText.includes('Old phone')")
		b.unfold(app)
		b.click(app + " button[value=remove]")
		b.until("!document.querySelector('" + app + "')")
		b.click("a[href$='/account/recovery']")
		b.click("main form button")
		b.until("document.querySelectorAll('.codes li').length > 5")
		b.click("a.primary")
		b.unfold("[data-credential=recovery]")
		b.click("[data-credential=recovery] button[value=remove]")
		b.until("!document.querySelector('[data-credential=recovery]')")
	})
	t.Run("PE-17 a key for a program is made and ended", func(t *testing.T) {
		b := b.in(t)
		b.click("a[href$='/account/keys']")
		b.do(chromedp.SendKeys(chromedp.CSS("#name"), "Nightly report"),
			chromedp.Click(chromedp.CSS("input[value='articles:read']")))
		b.click("main form button.primary")
		b.until("document.querySelector('#client_secret').innerText.length > 20")
		b.click("a.primary")
		b.click("#keys [data-grant] button[value=disconnect]")
		b.until("!document.querySelector('#keys [data-grant]')")
	})
	t.Run("PE-04 what has changed is read", func(t *testing.T) {
		b := b.in(t)
		b.click("button[value=seen]")
		b.visit(s.Issuer + "/account")
		b.until("!document.querySelector('#notices')")
	})
	t.Run("PE-10 sign-ins end, an application is disconnected, and everything stops", func(t *testing.T) {
		b := b.in(t)
		b.until("document.querySelectorAll('[data-session]').length === 2")
		b.click("button[value=end-others]")
		b.until("document.querySelectorAll('[data-session]').length === 1")
		b.click("[data-grant] button[value=disconnect]")
		b.until("!document.querySelector('[data-grant]')")
		for range 2 { // it asks once more
			b.click("button[value=stop-all]")
		}
		b.visit(s.Issuer + "/account")
		b.until("!!document.querySelector('input[name=password]')")
	})
}

// in is the tab for a part of a test.
func (b *tab) in(t *testing.T) *tab {
	with := *b
	with.t = t
	return &with
}

// PE-09: the account page says which account at a provider, where the person has really signed in, the
// access of an application rests on.
func TestAccountUsedAtAProvider(t *testing.T) {
	s := newSite(t, nil, thirdparty.Connector{ID: "google", Name: "Google", Icon: "google"})
	a, b := s.registered("Notes for Teams", ""), open(t, looks[2])
	b.visit(a.link(s.Demo, "provider", "google"))
	b.decide("approve")
	s.token(a, a.answer(t, b))
	identities, err := s.store.Identities(t.Context(), s.only().ID)
	if err != nil || len(identities) != 1 || identities[0].Label == "" {
		t.Fatalf("got %v, %v", identities, err)
	}
	b.visit(s.Issuer + "/account")
	said, err := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS("[data-grant] dl")))
	want := "Account used Google " + identities[0].Label
	if err != nil || !strings.Contains(strings.Join(strings.Fields(said), " "), want) {
		t.Errorf("got %q, %v, want %q", said, err, want)
	}
	b.show("account-used")
}

// only is the person of a site that has one.
func (s *site) only() storage.User {
	s.t.Helper()
	all, err := s.store.ListUsers(s.t.Context(), "", 2)
	if err != nil || len(all) != 1 {
		s.t.Fatalf("got %v, %v", all, err)
	}
	return all[0]
}
