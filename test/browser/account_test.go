package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// unfold opens the collapsed parts of an element.
func (b *tab) unfold(selector string) {
	b.TB.Helper()
	b.Do(chromedp.WaitVisible(chromedp.CSS(selector+" summary")), chromedp.Click(chromedp.CSS(selector+" summary")))
}

// TestAccountWithoutScript checks that the account page, and the pages that it links to, work
// without script (PE-12).
func TestAccountWithoutScript(t *testing.T) {
	lane.Long(t, "authserver tests the forms of the account")
	t.Parallel()
	s := newSite(t, func(c *authserver.Config) { c.Resources = longest[0].catalogue() })
	s.MCPURL = longServer
	if _, err := s.as.Users().Create(t.Context(), "alice", passphrase, false); err != nil {
		t.Fatal(err)
	}
	a, b := s.registered("Notes for Teams", ""), open(t, looks[2])
	b.visit(a.link(s.Demo, "scope", fiveScopes))
	b.signIn("alice", passphrase)
	b.decide("approve") // connects the application as usual
	s.token(a, a.answer(t, b))
	other := open(t, looks[0])
	other.visit(s.Issuer + "/login")
	other.signIn("alice", passphrase)
	b.WithoutScript()
	b.visit(s.Issuer + "/account")

	t.Run("PE-09 fewer permissions, a pause and its end", func(t *testing.T) {
		b := b.in(t)
		b.unfold("[data-grant]")
		b.Do(chromedp.WaitVisible(chromedp.CSS("[data-grant] input[value='articles:write']")),
			chromedp.Click(chromedp.CSS("[data-grant] input[value='articles:write']")))
		b.click("[data-grant] button[value=narrow]")
		b.Until("!!document.querySelector('[role=status]') && !document.querySelector('input[value=\"articles:write\"]')")
		b.click("[data-grant] button[value=pause]")
		b.click("[data-grant] button[value=resume]")
		b.Until("!!document.querySelector('[data-grant] button[value=pause]')")
	})
	t.Run("PE-13 another language, and back", func(t *testing.T) {
		b := b.in(t)
		for _, tag := range []string{"de", "en"} {
			b.Do(chromedp.SetValue(chromedp.CSS("#language"), tag))
			b.click("form.language button")
			b.Until("document.documentElement.lang === '" + tag + "' && location.pathname === '/account'")
		}
	})
	t.Run("PE-04 an app is added, named and removed, and recovery codes are made", func(t *testing.T) {
		b := b.in(t)
		b.click("a[href$='/account/app']")
		code, err := totp.GenerateCode(b.secret(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		b.leave()
		b.Do(chromedp.SendKeys(chromedp.CSS("input[name=code]"), code+"\r"))
		b.arrive()
		b.visit(s.Issuer + "/account")
		const app = "[data-credential^=way_]"
		b.unfold(app)
		b.Do(chromedp.SetValue(chromedp.CSS(app+" input[name=name]"), "Old phone"))
		b.click(app + " button[value=rename]")
		b.Until("document.querySelector('" + app + "').innerText.includes('Old phone')")
		b.unfold(app)
		b.click(app + " button[value=remove]")
		b.Until("!document.querySelector('" + app + "')")
		b.click("a[href$='/account/recovery']")
		b.click("main form button")
		b.Until("document.querySelectorAll('.codes li').length > 5")
		b.click("a.primary")
		b.unfold("[data-credential=recovery]")
		b.click("[data-credential=recovery] button[value=remove]")
		b.Until("!document.querySelector('[data-credential=recovery]')")
	})
	t.Run("PE-17 a key for a program is made and ended", func(t *testing.T) {
		b := b.in(t)
		b.click("a[href$='/account/keys']")
		b.Do(chromedp.SendKeys(chromedp.CSS("#name"), "Nightly report"),
			chromedp.Click(chromedp.CSS("input[value='articles:read']")))
		b.click("main form button.primary")
		b.Until("document.querySelector('#client_secret').innerText.length > 20")
		b.click("a.primary")
		b.click("#keys [data-grant] button[value=disconnect]")
		b.Until("!document.querySelector('#keys [data-grant]')")
	})
	t.Run("PE-04 what has changed is read", func(t *testing.T) {
		b := b.in(t)
		b.click("button[value=seen]")
		b.visit(s.Issuer + "/account")
		b.Until("!document.querySelector('#notices')")
	})
	t.Run("PE-10 sign-ins end, an application is disconnected, and everything stops", func(t *testing.T) {
		b := b.in(t)
		b.Until("document.querySelectorAll('[data-session]').length === 2")
		b.click("button[value=end-others]")
		b.Until("document.querySelectorAll('[data-session]').length === 1")
		b.click("[data-grant] button[value=disconnect]")
		b.Until("!document.querySelector('[data-grant]')")
		for range 2 { // it asks for confirmation
			b.click("button[value=stop-all]")
		}
		b.visit(s.Issuer + "/account")
		b.Until("!!document.querySelector('input[name=password]')")
	})
}

// TestAccountUsedAtAProvider: PE-09: for an application with access through a provider, the account
// page names the account at the provider that the user has really signed in with.
func TestAccountUsedAtAProvider(t *testing.T) {
	lane.Long(t, "authserver tests the page")
	t.Parallel()
	s := newSite(t, nil, thirdparty.Connector{ID: "google", Name: "Google", Icon: "google"})
	a, b := s.registered("Notes for Teams", ""), open(t, looks[2])
	b.visit(a.link(s.Demo, "provider", "google"))
	b.press("approve")
	b.confirm("")
	s.token(a, a.answer(t, b))
	identities, err := s.store.Identities(t.Context(), s.only().ID)
	if err != nil || len(identities) != 1 || identities[0].Label == "" {
		t.Fatalf("got %v, %v", identities, err)
	}
	b.visit(s.Issuer + "/account")
	said := eval[string](b, "document.querySelector('[data-grant] dl').innerText")
	want := "Account used Google " + identities[0].Label
	if !strings.Contains(strings.Join(strings.Fields(said), " "), want) {
		t.Errorf("got %q, want %q", said, want)
	}
	b.show("account-used")
}

// only returns the user of a site that has exactly one.
func (s *site) only() storage.User {
	s.t.Helper()
	all, err := s.store.ListUsers(s.t.Context(), "", 2)
	if err != nil || len(all) != 1 {
		s.t.Fatalf("got %v, %v", all, err)
	}
	return all[0]
}
