package browser

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
)

const password = "correct horse battery"

// served is an installation with one person, alice.
type served struct{ address, data string }

// install makes one.
func install(t *testing.T) *served {
	t.Helper()
	s := &served{nettest.For(t), t.TempDir()}
	s.command(t, password, "user", "add", "alice", "--password-stdin")
	return s
}

// command runs one of the operator's on it, and returns what it prints.
func (s *served) command(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(demotest.Binary(t), append(args, "--data", s.data)...)
	cmd.Stdin, cmd.Env = strings.NewReader(stdin), append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// start serves it as an issuer until the test ends, or until stop is called.
func (s *served) start(t *testing.T, issuer string, env ...string) (stop func()) {
	t.Helper()
	cmd := exec.Command(demotest.Binary(t), "serve", "--data", s.data)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "MCP_AUTHD_LISTEN="+s.address,
		"MCP_AUTHD_ISSUER="+issuer, "MCP_AUTHD_MANAGEMENT_LISTEN=")
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve did not exit with 0: %v", err)
		}
	})
	t.Cleanup(stop)
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get("http://" + s.address + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return stop
			}
		}
		if time.Now().After(end) {
			t.Fatalf("not ready: %v", err)
		}
	}
}

// serveFor starts a server with one person, alice, whose issuer has a host name of our choice.
func serveFor(t *testing.T, host string) (issuer string) {
	t.Helper()
	s := install(t)
	issuer = s.at(host)
	s.start(t, issuer)
	return issuer
}

// at is the issuer with a host name that leads to this machine.
func (s *served) at(host string) string {
	return "http://" + strings.Replace(s.address, "127.0.0.1", host, 1)
}

// authenticator gives the tab one that belongs to the device, keeps passkeys and verifies its person.
// It answers what the person presses, and not by itself.
func (b *tab) authenticator() webauthn.AuthenticatorID {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		b.t.Fatal(err)
	}
	out, err := chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
		Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol:                    webauthn.AuthenticatorProtocolCtap2,
			Transport:                   webauthn.AuthenticatorTransportInternal,
			HasResidentKey:              true,
			HasUserVerification:         true,
			IsUserVerified:              true,
			AutomaticPresenceSimulation: true,
		},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out.AuthenticatorID
}

func (b *tab) present(a webauthn.AuthenticatorID, is bool) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, webauthn.SetAutomaticPresenceSimulation,
		webauthn.SetAutomaticPresenceSimulationParams{AuthenticatorID: a, Enabled: is}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) says(words string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.querySelector('main')?.innerText.includes(%q)", words))
}

// A person enrols a passkey, and it is then all that they need.
func TestPasskey(t *testing.T) {
	issuer, b := serveFor(t, "localhost"), open(t, looks[0])
	a := b.authenticator()
	b.do(chromedp.Navigate(issuer + "/account"))
	b.login("alice", password)
	b.says("Keep at least two")
	b.inspect("ways")
	b.do(chromedp.Click(chromedp.CSS("a[href$='/account/passkey']")),
		chromedp.WaitVisible(chromedp.CSS("form[data-passkey=create] button")))
	b.inspect("addpasskey")
	b.do(chromedp.Click(chromedp.CSS("form[data-passkey=create] button")))
	b.says("Devices get lost")
	b.inspect("wayadded")

	b.present(a, false)
	b.do(chromedp.Navigate(issuer + "/"))
	b.do(chromedp.Click(chromedp.CSS("form[action$='/logout'] button")))
	b.says("no longer signed in")
	b.do(chromedp.Navigate(issuer + "/login"))
	b.inspect("login-passkey")
	b.present(a, true)
	b.do(chromedp.Click(chromedp.CSS("form[data-passkey=list] button")))
	b.until("!location.pathname.startsWith('/login')")
	b.do(chromedp.Navigate(issuer + "/account"))
	b.says("Last used")

	t.Run("PE-03 the last one is not removed", func(t *testing.T) {
		b.t = t
		remove := func(credential string) {
			form := fmt.Sprintf("[data-credential^=%q]", credential)
			b.do(chromedp.Click(chromedp.CSS(form+" summary")),
				chromedp.WaitVisible(chromedp.CSS(form+" button[value=remove]")),
				chromedp.Click(chromedp.CSS(form+" button[value=remove]")))
		}
		remove("password")
		b.until("!document.querySelector('[data-credential=password]')")
		remove("way_")
		b.says("your only way to sign in")
		b.inspect("ways-last")
	})
}

// A password needs the code of an app beside it once the person has one.
func TestAuthenticatorApp(t *testing.T) {
	issuer, b := serveFor(t, "localhost"), open(t, looks[2])
	b.do(chromedp.Navigate(issuer + "/account/app"))
	b.login("alice", password)
	b.do(chromedp.WaitVisible(chromedp.CSS("svg.qr")))
	b.inspect("addapp")
	secret, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](
		"document.querySelector('.secret code').innerText.replaceAll(' ', '')"))
	if err != nil {
		t.Fatal(err)
	}
	code := func(at time.Time) string {
		out, err := totp.GenerateCode(secret, at)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=code]"), code(time.Now().Add(-30*time.Second))+"\r"))
	b.says("Devices get lost")
	b.do(chromedp.Navigate(issuer + "/"))
	b.do(chromedp.Click(chromedp.CSS("form[action$='/logout'] button")))
	b.says("no longer signed in")
	b.do(chromedp.Navigate(issuer + "/login"))
	b.login("alice", password)
	b.do(chromedp.WaitVisible(chromedp.CSS("input[name=code]")))
	b.inspect("second")
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=code]"), "000000\r"))
	b.says("not right")
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=code]"), code(time.Now().Add(30*time.Second))+"\r"))
	b.until("!location.pathname.startsWith('/login')")
	b.do(chromedp.Navigate(issuer + "/account/recovery"))
	b.do(chromedp.Click(chromedp.CSS("main form button")))
	b.do(chromedp.WaitVisible(chromedp.CSS(".codes")))
	b.inspect("recoverycodes")
}

// PE-01: at an IP address the page says why there are no passkeys.
func TestNoPasskeysAtAnAddress(t *testing.T) {
	issuer, b := serveFor(t, "127.0.0.1"), open(t, looks[0])
	b.do(chromedp.Navigate(issuer + "/account"))
	b.login("alice", password)
	b.says("is an IP address")
	b.inspect("ways-refused")
}
