package browser

import (
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// These are redirect URIs of applications.
const (
	atClaude    = "https://claude.ai/api/mcp/auth_callback"
	atApp       = "https://app.example.com/cb"
	atAssistant = "https://assistant.example.com/cb"
	atCursor    = "cursor://anysphere.cursor-mcp/oauth/callback"
)

// TestEveryPage checks every page in every state that looks different with rules.js in six looks
// (issue 11, 4.7).
func TestEveryPage(t *testing.T) {
	lane.Long(t, "TestSignIn inspects the pages of a sign-in")
	t.Parallel()
	t.Run("setup", showSetup)
	t.Run("passwords", showPasswords)
	t.Run("throttled", showThrottled)
	t.Run("providers", showProviders)
	t.Run("one provider", showOneProvider)
}

func showSetup(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *authserver.Config) { c.Resources = nil })
	b := open(t, looks[0])
	b.visit(s.Issuer + "/")
	b.show("home-empty")
	b.visit(s.Issuer + "/setup")
	b.show("setup-typed")
	link, err := s.as.SetupLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.visit("about:blank")
	b.visit(link + "x")
	b.Do(chromedp.WaitVisible(chromedp.CSS("#gone")))
	b.show("setup-gone")
	b.visit("about:blank")
	b.visit(link)
	b.Do(chromedp.WaitVisible(chromedp.CSS("form")))
	b.show("setup")
	b.signIn("root", "password1")
	b.show("setup-problem")
	b.signIn("", passphrase)
	b.show("setup-done")
	b.visit(s.Issuer + "/setup")
	b.show("setup-closed")
}

func showPasswords(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.user("alice")
	b := open(t, looks[0])
	b.visit(s.Issuer + "/")
	b.show("home-stranger")
	b.visit(s.Issuer + "/login")
	b.show("login-own")
	desktop := s.registered("Notes for <b>Teams</b> & friends", "")
	b.visit(desktop.link(s.Demo))
	b.show("login")
	b.signIn("alice", "wrong password")
	b.show("login-wrong")
	b.forget()
	b.signIn("", passphrase)
	b.show("stale")
	b.visit(desktop.link(s.Demo))
	b.signIn("alice", passphrase)
	b.show("consent-registered-loopback")
	b.decide("approve")
	desktop.answer(t, b)
	b.visit(desktop.link(s.Demo, "scope", everyScope(notes)))
	b.show("consent-more")
	b.visit(s.registered("Claude", atClaude).link(s.Demo, "redirect_uri", atClaude))
	b.show("consent-registered")
	b.visit(s.registered("", atApp).link(s.Demo, "redirect_uri", atApp, "scope", "mcp"))
	b.show("consent-unnamed")
	b.visit(s.operated("Company assistant", atAssistant).link(s.Demo, "redirect_uri", atAssistant))
	b.show("consent-operated")
	b.visit(s.operated("Company assistant", "").link(s.Demo))
	b.show("consent-operated-loopback")
	document := s.documented("Documented application")
	b.visit(document.link(s.Demo))
	b.show("consent-document")
	long := "https://" + strings.Repeat("very-long-label.", 8) + "example.com/" + strings.Repeat("callback", 12)
	b.visit(s.registered(aLongName, long).link(s.Demo, "redirect_uri", long, "resource", everything, "scope",
		everyScope(everything)))
	b.show("consent-long")
	b.Do(chromedp.Click(chromedp.CSS("summary")))
	b.show("consent-long-open")
	cursor := s.registered("Cursor", atCursor)
	b.visit(cursor.link(s.Demo, "redirect_uri", atCursor))
	b.show("consent-scheme")
	b.decide("approve")
	b.show("handoff")
	b.visit(desktop.link(s.Demo, "client_id", "nobody"))
	b.show("error-client")
	b.visit(desktop.link(s.Demo, "redirect_uri", "http://127.0.0.1:9/other"))
	b.show("error-redirect")
	fresh := s.registered("An App", atApp)
	b.visit(fresh.link(s.Demo, "redirect_uri", atApp, "resource", "https://elsewhere.example.com/mcp"))
	b.show("stopped-resource")
	b.visit(fresh.link(s.Demo, "redirect_uri", atApp, "scope", "nothing:known"))
	b.show("consent-unknown-scope")
	b.visit(fresh.link(s.Demo, "redirect_uri", atApp, "code_challenge_method", "plain"))
	b.show("stopped-request")
	b.visit(cursor.link(s.Demo, "redirect_uri", atCursor, "code_challenge_method", "plain", "client_id",
		s.registered("Cursor", atCursor).id))
	b.show("stopped-scheme")
	b.visit(desktop.link(s.Demo, "client_id", "http://127.0.0.1:9/client.json", "redirect_uri",
		"http://127.0.0.1:9/cb"))
	b.show("error-document")
	b.visit(s.Issuer + "/nothing")
	b.show("not-found")
	b.visit(s.Issuer + "/consent")
	b.show("wrong-method")
	b.visit(elsewhere(t, formTo(s.Issuer+"/login")))
	b.click("button")
	b.show("cross-origin")
	b.visit(strings.Replace(s.Issuer, "127.0.0.1", "other.example", 1) + "/")
	b.show("error-host")
	b.visit(s.Issuer + "/authorize?x=" + strings.Repeat("x", 20000))
	b.show("error-long")
	s.store.Arm(0)
	b.visit(s.Issuer + "/")
	s.store.Disarm()
	b.show("error-store")
	b.visit(s.Issuer + "/")
	b.show("home-person")
	b.click("form[action$='/logout'] button")
	b.show("signed-out")
}

func showThrottled(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.user("alice")
	b := open(t, looks[0])
	stop := make(chan struct{})
	var guessers sync.WaitGroup
	for range 8 {
		guessers.Go(func() { guess(s.Issuer, "alice", stop) })
	}
	t.Cleanup(func() { close(stop); guessers.Wait() })
	for range 40 {
		b.visit(s.Issuer + "/login")
		b.signIn("alice", "wrong password")
		if eval[bool](b, "document.body.innerText.includes('Too many')") {
			b.show("login-throttled")
			return
		}
	}
	t.Error("no sign-in was throttled")
}

func showProviders(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil,
		thirdparty.Connector{
			ID: "google", Name: "Google", Icon: "google",
			Scopes: oauth.Scopes{"openid", "profile", "email", "offline_access"},
			Broker: []thirdparty.BrokerRule{{Resource: notes, Scopes: oauth.Scopes{"openid", "calendar.readonly"}}},
			ScopeRules: []thirdparty.ScopeRule{
				{Resource: notes, Scopes: oauth.Scopes{"notes:write"}, Groups: []string{"editors"}},
			},
		},
		thirdparty.Connector{ID: "company", Name: "Example Company Directory", Icon: "keycloak",
			Allow: thirdparty.Rules{Emails: []string{"nobody@example.com"}}})
	s.user("alice")
	b := open(t, looks[0])
	claude := s.registered("Claude", atClaude)
	claudeAt := claude.link(s.Demo, "redirect_uri", atClaude)
	b.visit(s.Issuer + "/")
	b.show("home-choices")
	b.visit(claudeAt)
	b.show("login-both")
	b.visit(claudeAt + "&provider=google")
	b.show("providerconsent")
	a := s.registered("Notes for Teams", "")
	b.visit(a.link(s.Demo, "provider", "company"))
	b.show("providerconsent-loopback")
	document := s.documented("Documented application")
	b.visit(document.link(s.Demo))
	b.show("login-unread")
	b.visit(document.link(s.Demo, "provider", "google"))
	b.show("providerconsent-unread")
	b.decide("deny")
	b.show("providerconsent-cancelled")

	s.up.Fail(fakeidp.Token, fakeidp.Down)
	b.visit(a.link(s.Demo, "provider", "google"))
	b.decide("approve")
	b.landed()
	b.show("failed-provider")
	s.up.Fail(fakeidp.Token, fakeidp.OAuthError(401, "invalid_client"))
	b.visit(a.link(s.Demo, "provider", "google"))
	b.decide("approve")
	b.landed()
	b.show("failed-setup")
	s.up.Heal()
	b.visit(a.link(s.Demo, "provider", "company"))
	b.decide("approve")
	b.landed()
	b.show("failed-person")
	b.visit(a.link(s.Demo, "provider", "google", "scope", everyScope(notes)))
	b.press("approve")
	b.confirm("")
	q := a.answer(t, b)
	b.visit(a.link(s.Demo, "prompt", "consent", "scope", everyScope(notes)))
	b.show("consent-narrowed")
	b.visit(s.Issuer + "/")
	b.show("home-only")
	link := s.connectLink(s.token(a, q))
	b.visit(link)
	b.show("connect")
	b.decide("deny")
	b.show("connected-declined")
	b.visit(link)
	b.decide("approve")
	b.landed()
	b.show("connected")
	s.up.Behave(func(f *fakeidp.Behaviour) { f.Interactive = true })
	b.visit(link)
	b.decide("approve")
	b.pickAt(fakeidp.Bob)
	b.show("failed-other")
	b.visit(link[:len(link)-3])
	b.show("link-bad")
	b.visit(s.Issuer + "/callback/google?state=x&code=y")
	b.show("lost")
	b.visit(s.Issuer + "/callback/nothing")
	b.show("no-provider")

	other := open(t, looks[0])
	other.visit(s.Issuer + "/login")
	other.signIn("alice", passphrase)
	other.show("home-password-choices")
	other.visit(link)
	other.show("not-yours")
	other.visit(s.Issuer + "/account")
	other.click("form[action$='/depart'] button")
	other.pickAt(fakeidp.Bob)
	other.show("claim")
	other.decide("approve")
	other.show("account-providers")
}

func showOneProvider(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *authserver.Config) { c.NoLocalLogin = true },
		thirdparty.Connector{ID: "google", Name: "Google", Icon: "google"})
	b := open(t, looks[0])
	b.visit(s.Issuer + "/")
	b.show("home-provider")
	b.visit(s.Issuer + "/login")
	b.show("login-provider")
	b.visit(s.registered("Claude", atClaude).link(s.Demo, "redirect_uri", atClaude, "scope", "mcp"))
	b.show("providerconsent-only")
	b.visit(s.Issuer + "/setup")
	b.show("setup-off")
}
