package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
)

// enter types into the field that the tab key reaches, and presses Enter.
func (b *tab) enter(field, typed string) {
	b.TB.Helper()
	b.tabTo(field)
	b.leave()
	b.keys(typed + "\r")
	b.arrive()
}

// push moves to a button or a link with the tab key, and presses Enter.
func (b *tab) push(selector string) { b.TB.Helper(); b.enter(selector, "") }

// byKeyboard signs in with a password, without a mouse.
func (b *tab) byKeyboard(name, password string) {
	b.TB.Helper()
	b.tabTo("input[name=username]")
	b.keys(name)
	b.enter("input[name=password]", password)
}

// TestWaysByKeyboard: PE-12: without a mouse, a user accepts an invitation, adds an app, signs in
// with its code as the second factor, and adds a passkey.
func TestWaysByKeyboard(t *testing.T) {
	lane.Long(t, "TestSignIn types with keys")
	t.Parallel()
	s := install(t)
	issuer := s.at("localhost")
	s.start(t, issuer)
	b := open(t, looks[2])
	b.authenticator()

	b.visit(issuer + s.invite(t, "bob"))
	b.enter("input[name=password]", password)
	b.says("Your account is ready")

	b.visit(issuer + "/account/app")
	b.byKeyboard("bob", password)
	b.Do(chromedp.WaitVisible(chromedp.CSS("svg.qr")))
	secret := b.secret()
	code := func(after time.Duration) string {
		out, err := totp.GenerateCode(secret, time.Now().Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	b.enter("input[name=code]", code(0))
	b.says("Devices get lost")

	b.visit(issuer + "/account")
	b.push("form[action$='/logout'] button")
	b.visit(issuer + "/login")
	b.byKeyboard("bob", password)
	b.says("second proof")
	b.enter("input[name=code]", code(30*time.Second)) // each code works once

	b.visit(issuer + "/account/passkey")
	b.tabTo("input[name=name]")
	b.tabTo("form[data-passkey=create] button")
	b.keys("\r")
	b.says("Not used yet")
}

// invite returns the path of an invitation link from the operator's command.
func (s *served) invite(t *testing.T, name string) string {
	t.Helper()
	for line := range strings.Lines(s.command(t, "", "user", "invite", name)) {
		if strings.Contains(line, "/link/") {
			return strings.Fields(line[strings.Index(line, "/link/"):])[0]
		}
	}
	t.Fatal("no link")
	return ""
}
