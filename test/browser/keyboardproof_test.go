package browser

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
)

// TestProofByKeyboard: PE-04, PE-12: without a mouse, a user whose sign-in is older than five
// minutes must prove their identity. They mistype the password, then use the password and later an
// app code, go back from a question, and reach the page that they wanted.
func TestProofByKeyboard(t *testing.T) {
	lane.Long(t, "TestSignIn types with keys")
	t.Parallel()
	var later atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	s := newSite(t, func(c *authserver.Config) { c.Now = now })
	s.user("alice")
	b := open(t, looks[2])
	b.visit(s.Issuer + "/account")
	b.byKeyboard("alice", passphrase)
	b.says("Your account")

	later.Add(int64(6 * time.Minute))
	b.visit(s.Issuer + "/account/app")
	b.says("Confirm that it is you")
	b.tabTo("input[name=password]")
	b.enter("input[name=password]", "not it")
	b.says("not right")
	b.enter("input[name=password]", passphrase)
	b.Do(chromedp.WaitVisible(chromedp.CSS("svg.qr")))
	secret := b.secret()
	code := func() string {
		out, err := totp.GenerateCode(secret, now())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	b.enter("input[name=code]", code())
	b.says("Devices get lost")

	later.Add(int64(6 * time.Minute))
	b.visit(s.Issuer + "/account/recovery")
	b.says("Confirm that it is you")
	b.push("p.actions a")
	b.says("Your account")
	b.visit(s.Issuer + "/account/recovery")
	b.enter("input[name=code]", code())
	b.says("Make ten codes")
}

// TestSetupByKeyboard: PE-12: without a mouse, a user creates the first administrator through the
// setup link. After a refused password they choose another one and continue to the start page.
func TestSetupByKeyboard(t *testing.T) {
	lane.Long(t, "TestSignIn types with keys")
	t.Parallel()
	s := newSite(t, nil)
	link, err := s.as.SetupLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, looks[2])
	b.visit(link)
	b.Do(chromedp.WaitVisible(chromedp.CSS("form")))
	b.tabTo("input[name=username]")
	b.keys("root")
	b.enter("input[name=password]", "password1")
	b.says("password")
	b.Do(chromedp.WaitVisible(chromedp.CSS("[role=alert]:not([hidden])")))
	b.tabTo("input[name=password]")
	b.keys(passphrase)
	b.push("form button")
	b.says("Setup is complete")
	b.push("p.actions a")
	b.says("This server signs you in")
}
