package browser

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// console is a demo in which something has happened, and its administrator at the console.
func console(t *testing.T, l look) (*demotest.Demo, *tab) {
	t.Helper()
	data := t.TempDir()
	d := demotest.Start(t, demotest.Options{Args: []string{"--data", data}})
	for _, name := range []string{"bob", "carol@example.com"} {
		add := exec.Command(demotest.Binary(t), "user", "add", name, "--password-stdin", "--data", data)
		add.Stdin = strings.NewReader(passphrase)
		if out, err := add.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	b := open(t, l)
	a := newApp(t, d, "Notes for Teams")
	b.visit(a.link(d))
	b.signIn(d.Username, d.Password)
	b.decide("approve")
	a.answer(t, b)
	return d, b
}

// TestConsole: every screen on a telephone and at a desk, in light and dark (OB-10). Axe finds nothing.
func TestConsole(t *testing.T) {
	d, b := console(t, looks[0])
	for page, path := range map[string]string{
		"console-overview":    "/admin",
		"console-people":      "/admin/user/list",
		"console-person":      "/admin/user/show?name=bob",
		"console-disable":     "/admin/user/disable?name=bob",
		"console-missing":     "/admin/user/show?name=nobody",
		"console-unknownpage": "/admin/nothing/here",
	} {
		t.Run("OB-10: "+page, func(t *testing.T) {
			b := b.in(t)
			b.visit(d.Issuer + path)
			b.show(page)
		})
	}
}

// TestConsoleWithoutScript: an act is asked first and done then, in a browser that runs no script (OB-10).
func TestConsoleWithoutScript(t *testing.T) {
	d, b := console(t, looks[2])
	b.withoutScript()
	b.visit(d.Issuer + "/admin/user/show?name=bob")
	b.click(".acts a[href*='/disable']")
	b.click("main form button")
	b.until("document.querySelector('[role=status]')?.innerText.includes('bob')")
	b.until("[...document.querySelectorAll('.badge')].some((e) => e.innerText === 'disabled')")
	b.click(".acts a[href*='/enable']")
	b.click("main form button")
	b.until("![...document.querySelectorAll('.badge')].some((e) => e.innerText === 'disabled')")
	b.do(chromedp.WaitVisible(chromedp.CSS("[role=status]")))
}
