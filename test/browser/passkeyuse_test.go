package browser

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/browsertest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
)

// enrol adds a passkey to alice's account. It signs her in if necessary.
func (b *tab) enrol(issuer string) {
	b.TB.Helper()
	b.Do(chromedp.Navigate(issuer + "/account/passkey"))
	if eval[bool](b, "!!document.querySelector('input[name=password]')") {
		b.login("alice", password)
	}
	b.Do(chromedp.WaitVisible(chromedp.CSS("form[data-passkey=create] button")),
		chromedp.Click(chromedp.CSS("form[data-passkey=create] button")))
	b.says("Devices get lost")
}

func (b *tab) signOut(issuer string) {
	b.TB.Helper()
	b.Do(chromedp.Navigate(issuer+"/"), chromedp.Click(chromedp.CSS("form[action$='/logout'] button")))
	b.says("no longer signed in")
}

// change presses a button of an authentication method.
func (b *tab) change(credential, act string) {
	b.TB.Helper()
	way := "[data-credential^=" + credential + "]"
	b.leave()
	b.Do(chromedp.Click(chromedp.CSS(way+" summary")),
		chromedp.WaitVisible(chromedp.CSS(way+" button[value="+act+"]")),
		chromedp.Click(chromedp.CSS(way+" button[value="+act+"]")))
	b.arrive()
}

// credentials returns the passkeys of an authenticator as credential ids in base64url.
func (b *tab) credentials(a webauthn.AuthenticatorID) (ids []string) {
	b.TB.Helper()
	out := browsertest.Call(b.Tab, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: a})
	for _, c := range out.Credentials {
		ids = append(ids, base64.RawURLEncoding.EncodeToString(c.CredentialID))
	}
	return ids
}

// TestPasskeyFromTheBrowsersList checks three ways to use a passkey: from the browser's list at the
// name field (conditional mediation) without a button press, after the name, and after the
// password.
func TestPasskeyFromTheBrowsersList(t *testing.T) {
	lane.Long(t, "TestPasskey makes and uses one")
	t.Parallel()
	issuer, b := serveFor(t, "localhost"), open(t, looks[0])
	a := b.authenticator()
	b.enrol(issuer)
	in := "!location.pathname.startsWith('/login')"
	t.Run("PE-07 from the browser's own list", func(t *testing.T) {
		b := b.in(t)
		b.present(a, false)
		b.signOut(issuer)
		b.present(a, true)
		b.Do(chromedp.Navigate(issuer + "/login"))
		b.Until(in)
		b.Do(chromedp.Navigate(issuer + "/account"))
		b.says("Last used")
	})
	t.Run("PE-08 after the name, which changes nothing", func(t *testing.T) {
		b := b.in(t)
		b.present(a, false)
		b.signOut(issuer)
		b.Do(chromedp.Navigate(issuer+"/login"), chromedp.SendKeys(chromedp.CSS("#username"), "alice"))
		b.present(a, true)
		b.Do(chromedp.Click(chromedp.CSS("form[data-passkey=list] button")))
		b.Until(in)
	})
	t.Run("PE-07 after the password, as the second proof", func(t *testing.T) {
		b := b.in(t)
		b.present(a, false)
		b.signOut(issuer)
		b.Do(chromedp.Navigate(issuer + "/login"))
		b.login("alice", password)
		b.Do(chromedp.WaitVisible(chromedp.CSS("form[data-passkey=get] button")))
		b.inspect("second-passkey")
		b.present(a, true)
		b.Do(chromedp.Click(chromedp.CSS("form[data-passkey=get] button")))
		b.Until(in)
	})
}

// heard makes later pages record their signals to authenticators.
const heard = `for (const name of ['signalUnknownCredential', 'signalAllAcceptedCredentials']) {
	const tell = PublicKeyCredential[name];
	PublicKeyCredential[name] = (what) => {
		sessionStorage[name] = JSON.stringify(what);
		return tell.call(PublicKeyCredential, what);
	};
}`

// told waits for a page's signal to authenticators and decodes it.
func (b *tab) told(signal string, into any) {
	b.TB.Helper()
	b.Until("!!sessionStorage." + signal)
	if err := json.Unmarshal([]byte(eval[string](b, "sessionStorage."+signal)), into); err != nil {
		b.TB.Fatal(err)
	}
}

// TestAuthenticatorsAreTold: field rule 8: authenticators learn which passkeys were removed, and
// forget them.
func TestAuthenticatorsAreTold(t *testing.T) {
	lane.Long(t, "TestPasskey makes and uses one")
	t.Parallel()
	s, b := install(t), open(t, looks[0])
	issuer := s.at("localhost")
	s.start(t, issuer)
	a := b.authenticator()
	browsertest.Call(b.Tab, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: heard})
	type accepted struct {
		RPID   string   `json:"rpId"`
		UserID string   `json:"userId"`
		IDs    []string `json:"allAcceptedCredentialIds"`
	}
	all := func(t *testing.T, b *tab, want []string) {
		t.Helper()
		var got accepted
		b.told("signalAllAcceptedCredentials", &got)
		user, err := base64.RawURLEncoding.DecodeString(got.UserID)
		if err != nil || got.RPID != "localhost" || len(user) == 0 || !slices.Equal(got.IDs, want) {
			t.Errorf("got %+v, %v; want %v", got, err, want)
		}
	}
	gone := func(t *testing.T, b *tab) {
		t.Helper()
		if left := b.credentials(a); len(left) != 0 {
			t.Errorf("the authenticator keeps %v", left)
		}
	}
	forget := func(b *tab) { b.Do(chromedp.Evaluate[chromedp.Void]("sessionStorage.clear()")) }
	b.enrol(issuer)
	mine := b.credentials(a)
	if len(mine) != 1 {
		t.Fatalf("got %v", mine)
	}
	t.Run("a passkey that gets another name is accepted as before", func(t *testing.T) {
		b := b.in(t)
		b.Do(chromedp.Navigate(issuer + "/account"))
		forget(b)
		b.Do(chromedp.SetValue(chromedp.CSS("[data-credential^=way_] input[name=name]"), "Front door"))
		b.change("way_", "rename")
		b.says("Front door")
		all(t, b, mine)
		if left := b.credentials(a); !slices.Equal(left, mine) {
			t.Errorf("the authenticator keeps %v", left)
		}
	})
	t.Run("one that the operator removed is unknown when it is used", func(t *testing.T) {
		b := b.in(t)
		id := eval[string](b, "document.querySelector('[data-credential^=way_]').dataset.credential")
		b.present(a, false)
		b.signOut(issuer)
		s.command(t, "", "user", "ways", "remove", "alice", id)
		b.Do(chromedp.Navigate(issuer + "/login"))
		b.present(a, true)
		b.Do(chromedp.Click(chromedp.CSS("form[data-passkey=list] button")))
		b.says("not known here")
		var got struct {
			RPID string `json:"rpId"`
			ID   string `json:"credentialId"`
		}
		if b.told("signalUnknownCredential", &got); got.RPID != "localhost" || got.ID != mine[0] {
			t.Errorf("got %+v, want %s", got, mine[0])
		}
		gone(t, b)
	})
	t.Run("one that its person removed is accepted no more", func(t *testing.T) {
		b := b.in(t)
		b.enrol(issuer)
		b.Do(chromedp.Navigate(issuer + "/account"))
		forget(b)
		b.change("way_", "remove")
		b.Until("!document.querySelector('[data-credential^=way_]')")
		all(t, b, nil)
		gone(t, b)
	})
}

// TestPasskeyOfTheEarlierHost: PE-02: after a change of the host, a passkey for the old host works
// at the new one. This uses a Related Origin Request (WebAuthn §5.11), and also works if it is the
// user's only method.
func TestPasskeyOfTheEarlierHost(t *testing.T) {
	lane.Long(t, "TestPasskey makes and uses one")
	t.Parallel()
	const before, after = "https://old.example", "https://new.example"
	s := install(t)
	front := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: s.address})
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(front.Close)
	to := front.Listener.Addr().String()
	b := openAlone(t, looks[0], chromedp.Flag("ignore-certificate-errors", true),
		chromedp.Flag("host-resolver-rules", "MAP old.example "+to+", MAP new.example "+to))
	b.authenticator()
	stop := s.start(t, before)
	b.enrol(before)
	b.Do(chromedp.Navigate(before + "/account"))
	b.change("password", "remove")
	b.Until("!document.querySelector('[data-credential=password]')")
	stop()

	s.start(t, after, "MCP_AUTHD_LOGIN_PASSKEYS_PREVIOUS_HOSTS=old.example")
	resp, err := front.Client().Get(front.URL + "/.well-known/webauthn")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	b.Do(chromedp.Navigate(after + "/login"))
	b.Do(chromedp.Click(chromedp.CSS("details:has([data-passkey=get]) summary")),
		chromedp.WaitVisible(chromedp.CSS("form[data-passkey=get] button")))
	b.inspect("login-passkey-earlier")
	b.Do(chromedp.Click(chromedp.CSS("form[data-passkey=get] button")))
	b.Until("location.origin === '" + after + "' && !location.pathname.startsWith('/login')")
	b.Do(chromedp.Navigate(after + "/account"))
	b.says("Last used")
}
