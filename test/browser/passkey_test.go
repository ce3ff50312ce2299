package browser

import (
	"errors"
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

	"github.com/mcp-authd/mcp-authd/internal/testkit/browsertest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

const password = "correct horse battery"

// served is an installation with one user, alice.
type served struct{ address, data string }

// install creates an installation.
func install(t *testing.T) *served {
	t.Helper()
	s := &served{nettest.For(t), t.TempDir()}
	s.command(t, password, "user", "add", "alice", "--password-stdin")
	return s
}

// command runs an operator command on it and returns the output.
func (s *served) command(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program.Authd(t), append(args, "--data", s.data)...)
	cmd.Stdin, cmd.Env = strings.NewReader(stdin), append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// start serves it as an issuer until the end of the test, or until stop is called.
func (s *served) start(t *testing.T, issuer string, env ...string) (stop func()) {
	t.Helper()
	cmd := exec.Command(program.Authd(t), "serve", "--data", s.data)
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
	wait.Success(t, "the server is ready", func() error {
		resp, err := http.Get("http://" + s.address + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
	return stop
}

// serveFor starts a server with one user, alice, and an issuer with the given host name.
func serveFor(t *testing.T, host string) (issuer string) {
	t.Helper()
	s := install(t)
	issuer = s.at(host)
	s.start(t, issuer)
	return issuer
}

// at returns the issuer with a host name that resolves to this machine.
func (s *served) at(host string) string {
	return "http://" + strings.Replace(s.address, "127.0.0.1", host, 1)
}

// authenticator adds a platform authenticator to the tab. It stores passkeys, verifies its user,
// and answers each request until present disables this.
func (b *tab) authenticator() webauthn.AuthenticatorID {
	b.TB.Helper()
	browsertest.Call(b.Tab, webauthn.Enable, webauthn.EnableParams{})
	out := browsertest.Call(b.Tab, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
		Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol:                    webauthn.AuthenticatorProtocolCtap2,
			Transport:                   webauthn.AuthenticatorTransportInternal,
			HasResidentKey:              true,
			HasUserVerification:         true,
			IsUserVerified:              true,
			AutomaticPresenceSimulation: true,
		},
	})
	return out.AuthenticatorID
}

func (b *tab) present(a webauthn.AuthenticatorID, is bool) {
	b.TB.Helper()
	browsertest.Call(b.Tab, webauthn.SetAutomaticPresenceSimulation,
		webauthn.SetAutomaticPresenceSimulationParams{AuthenticatorID: a, Enabled: is})
}

func (b *tab) says(words string) {
	b.TB.Helper()
	b.Until(fmt.Sprintf("document.querySelector('main')?.innerText.includes(%q)", words))
}

// TestPasskey checks that a user can enroll a passkey and then needs nothing else.
func TestPasskey(t *testing.T) {
	t.Parallel()
	issuer, b := serveFor(t, "localhost"), open(t, looks[0])
	a := b.authenticator()
	b.Do(chromedp.Navigate(issuer + "/account"))
	b.login("alice", password)
	b.says("Keep at least two")
	b.inspect("ways")
	b.Do(chromedp.Click(chromedp.CSS("a[href$='/account/passkey']")),
		chromedp.WaitVisible(chromedp.CSS("form[data-passkey=create] button")))
	b.inspect("addpasskey")
	b.Do(chromedp.Click(chromedp.CSS("form[data-passkey=create] button")))
	b.says("Devices get lost")
	b.inspect("wayadded")

	b.present(a, false)
	b.Do(chromedp.Navigate(issuer + "/"))
	b.Do(chromedp.Click(chromedp.CSS("form[action$='/logout'] button")))
	b.says("no longer signed in")
	b.Do(chromedp.Navigate(issuer + "/login"))
	b.inspect("login-passkey")
	b.present(a, true)
	b.Do(chromedp.Click(chromedp.CSS("form[data-passkey=list] button")))
	b.Until("!location.pathname.startsWith('/login')")
	b.Do(chromedp.Navigate(issuer + "/account"))
	b.says("Last used")

	t.Run("PE-03 the last one is not removed", func(t *testing.T) {
		b := b.in(t)
		remove := func(credential string) {
			form := fmt.Sprintf("[data-credential^=%q]", credential)
			b.Do(chromedp.Click(chromedp.CSS(form+" summary")),
				chromedp.WaitVisible(chromedp.CSS(form+" button[value=remove]")),
				chromedp.Click(chromedp.CSS(form+" button[value=remove]")))
		}
		remove("password")
		b.Until("!document.querySelector('[data-credential=password]')")
		remove("way_")
		b.says("your only way to sign in")
		b.inspect("ways-last")
	})
}

// TestAuthenticatorApp checks that a password also requires an app code once the user has an app.
func TestAuthenticatorApp(t *testing.T) {
	lane.Long(t, "authserver tests codes of an app")
	t.Parallel()
	issuer, b := serveFor(t, "localhost"), open(t, looks[2])
	b.Do(chromedp.Navigate(issuer + "/account/app"))
	b.login("alice", password)
	b.Do(chromedp.WaitVisible(chromedp.CSS("svg.qr")))
	b.inspect("addapp")
	secret := b.secret()
	code := func(at time.Time) string {
		out, err := totp.GenerateCode(secret, at)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	b.Do(chromedp.SendKeys(chromedp.CSS("input[name=code]"), code(time.Now())+"\r"))
	b.says("Devices get lost")
	b.Do(chromedp.Navigate(issuer + "/"))
	b.Do(chromedp.Click(chromedp.CSS("form[action$='/logout'] button")))
	b.says("no longer signed in")
	b.Do(chromedp.Navigate(issuer + "/login"))
	b.login("alice", password)
	b.Do(chromedp.WaitVisible(chromedp.CSS("input[name=code]")))
	b.inspect("second")
	b.Do(chromedp.SendKeys(chromedp.CSS("input[name=code]"), "000000\r"))
	b.says("not right")
	b.Do(chromedp.SendKeys(chromedp.CSS("input[name=code]"), code(time.Now().Add(30*time.Second))+"\r"))
	b.Until("!location.pathname.startsWith('/login')")
	b.Do(chromedp.Navigate(issuer + "/account/recovery"))
	b.Do(chromedp.Click(chromedp.CSS("main form button")))
	b.Do(chromedp.WaitVisible(chromedp.CSS(".codes")))
	b.inspect("recoverycodes")
}

// TestNoPasskeysAtAnAddress: PE-01: for an IP address, the page explains why passkeys are not
// available.
func TestNoPasskeysAtAnAddress(t *testing.T) {
	lane.Long(t, "TestPasskey makes and uses one")
	t.Parallel()
	issuer, b := serveFor(t, "127.0.0.1"), open(t, looks[0])
	b.Do(chromedp.Navigate(issuer + "/account"))
	b.login("alice", password)
	b.says("is an IP address")
	b.inspect("ways-refused")
}
