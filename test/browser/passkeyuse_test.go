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
)

// enrol adds a passkey to the account of alice, who is signed in or signs in.
func (b *tab) enrol(issuer string) {
	b.t.Helper()
	b.do(chromedp.Navigate(issuer + "/account/passkey"))
	if asked, err := chromedp.Run(b.ctx,
		chromedp.Evaluate[bool]("!!document.querySelector('input[name=password]')")); err == nil && asked {
		b.login("alice", password)
	}
	b.do(chromedp.WaitVisible(chromedp.CSS("form[data-passkey=create] button")),
		chromedp.Click(chromedp.CSS("form[data-passkey=create] button")))
	b.says("Devices get lost")
}

func (b *tab) signOut(issuer string) {
	b.t.Helper()
	b.do(chromedp.Navigate(issuer+"/"), chromedp.Click(chromedp.CSS("form[action$='/logout'] button")))
	b.says("no longer signed in")
}

// change presses a button of a way in.
func (b *tab) change(credential, act string) {
	b.t.Helper()
	way := "[data-credential^=" + credential + "]"
	b.leave()
	b.do(chromedp.Click(chromedp.CSS(way+" summary")),
		chromedp.WaitVisible(chromedp.CSS(way+" button[value="+act+"]")),
		chromedp.Click(chromedp.CSS(way+" button[value="+act+"]")))
	b.arrive()
}

// credentials are the passkeys that an authenticator keeps, in the form of scripts.
func (b *tab) credentials(a webauthn.AuthenticatorID) (ids []string) {
	b.t.Helper()
	out, err := chromedp.Call(b.ctx, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: a})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range out.Credentials {
		ids = append(ids, base64.RawURLEncoding.EncodeToString(c.CredentialID))
	}
	return ids
}

// A person picks a passkey from the list that the browser shows where the name is typed (conditional
// mediation), without a press of ours; the one after the name; and the one after the password.
func TestPasskeyFromTheBrowsersList(t *testing.T) {
	issuer, b := serveFor(t, "localhost"), open(t, looks[0])
	a := b.authenticator()
	b.enrol(issuer)
	in := "!location.pathname.startsWith('/login')"
	t.Run("PE-07 from the browser's own list", func(t *testing.T) {
		b.t = t
		b.present(a, false)
		b.signOut(issuer)
		b.present(a, true)
		b.do(chromedp.Navigate(issuer + "/login"))
		b.until(in)
		b.do(chromedp.Navigate(issuer + "/account"))
		b.says("Last used")
	})
	t.Run("PE-08 after the name, which changes nothing", func(t *testing.T) {
		b.t = t
		b.present(a, false)
		b.signOut(issuer)
		b.do(chromedp.Navigate(issuer+"/login"), chromedp.SendKeys(chromedp.CSS("#username"), "alice"))
		b.present(a, true)
		b.do(chromedp.Click(chromedp.CSS("form[data-passkey=list] button")))
		b.until(in)
	})
	t.Run("PE-07 after the password, as the second proof", func(t *testing.T) {
		b.t = t
		b.present(a, false)
		b.signOut(issuer)
		b.do(chromedp.Navigate(issuer + "/login"))
		b.login("alice", password)
		b.do(chromedp.WaitVisible(chromedp.CSS("form[data-passkey=get] button")))
		b.inspect("second-passkey")
		b.present(a, true)
		b.do(chromedp.Click(chromedp.CSS("form[data-passkey=get] button")))
		b.until(in)
	})
}

// heard has the pages to come note what they tell authenticators.
const heard = `for (const name of ['signalUnknownCredential', 'signalAllAcceptedCredentials']) {
	const tell = PublicKeyCredential[name];
	PublicKeyCredential[name] = (what) => {
		sessionStorage[name] = JSON.stringify(what);
		return tell.call(PublicKeyCredential, what);
	};
}`

// told waits until a page has told authenticators something, and returns it.
func (b *tab) told(signal string, into any) {
	b.t.Helper()
	b.until("!!sessionStorage." + signal)
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("sessionStorage."+signal))
	if err == nil {
		err = json.Unmarshal([]byte(out), into)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// Field rule 8: authenticators are told which passkeys are gone, and forget them.
func TestAuthenticatorsAreTold(t *testing.T) {
	s, b := install(t), open(t, looks[0])
	issuer := s.at("localhost")
	s.start(t, issuer)
	a := b.authenticator()
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: heard}); err != nil {
		t.Fatal(err)
	}
	type accepted struct {
		RPID   string   `json:"rpId"`
		UserID string   `json:"userId"`
		IDs    []string `json:"allAcceptedCredentialIds"`
	}
	all := func(t *testing.T, want []string) {
		t.Helper()
		var got accepted
		b.told("signalAllAcceptedCredentials", &got)
		user, err := base64.RawURLEncoding.DecodeString(got.UserID)
		if err != nil || got.RPID != "localhost" || len(user) == 0 || !slices.Equal(got.IDs, want) {
			t.Errorf("got %+v, %v; want %v", got, err, want)
		}
	}
	gone := func(t *testing.T) {
		t.Helper()
		if left := b.credentials(a); len(left) != 0 {
			t.Errorf("the authenticator keeps %v", left)
		}
	}
	forget := func() { b.do(chromedp.Evaluate[chromedp.Void]("sessionStorage.clear()")) }
	b.enrol(issuer)
	mine := b.credentials(a)
	if len(mine) != 1 {
		t.Fatalf("got %v", mine)
	}
	t.Run("a passkey that gets another name is accepted as before", func(t *testing.T) {
		b.t = t
		b.do(chromedp.Navigate(issuer + "/account"))
		forget()
		b.do(chromedp.SetValue(chromedp.CSS("[data-credential^=way_] input[name=name]"), "Front door"))
		b.change("way_", "rename")
		b.says("Front door")
		all(t, mine)
		if left := b.credentials(a); !slices.Equal(left, mine) {
			t.Errorf("the authenticator keeps %v", left)
		}
	})
	t.Run("one that the operator removed is unknown when it is used", func(t *testing.T) {
		b.t = t
		id, err := chromedp.Run(b.ctx,
			chromedp.Evaluate[string]("document.querySelector('[data-credential^=way_]').dataset.credential"))
		if err != nil {
			t.Fatal(err)
		}
		b.present(a, false)
		b.signOut(issuer)
		s.command(t, "", "user", "ways", "remove", "alice", id)
		b.do(chromedp.Navigate(issuer + "/login"))
		b.present(a, true)
		b.do(chromedp.Click(chromedp.CSS("form[data-passkey=list] button")))
		b.says("not known here")
		var got struct {
			RPID string `json:"rpId"`
			ID   string `json:"credentialId"`
		}
		if b.told("signalUnknownCredential", &got); got.RPID != "localhost" || got.ID != mine[0] {
			t.Errorf("got %+v, want %s", got, mine[0])
		}
		gone(t)
	})
	t.Run("one that its person removed is accepted no more", func(t *testing.T) {
		b.t = t
		b.enrol(issuer)
		b.do(chromedp.Navigate(issuer + "/account"))
		forget()
		b.change("way_", "remove")
		b.until("!document.querySelector('[data-credential^=way_]')")
		all(t, nil)
		gone(t)
	})
}

// PE-02: the host changes. The passkey of the earlier one lets its person in at the new one, by a
// Related Origin Request (WebAuthn §5.11), also when it is all that they have.
func TestPasskeyOfTheEarlierHost(t *testing.T) {
	const before, after = "https://old.example", "https://new.example"
	s := install(t)
	front := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: s.address})
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(front.Close)
	to := front.Listener.Addr().String()
	b := openWith(t, looks[0], chromedp.Flag("ignore-certificate-errors", true),
		chromedp.Flag("host-resolver-rules", "MAP old.example "+to+", MAP new.example "+to))
	b.authenticator()
	stop := s.start(t, before)
	b.enrol(before)
	b.do(chromedp.Navigate(before + "/account"))
	b.change("password", "remove")
	b.until("!document.querySelector('[data-credential=password]')")
	stop()

	s.start(t, after, "MCP_AUTHD_LOGIN_PASSKEYS_PREVIOUS_HOSTS=old.example")
	resp, err := front.Client().Get(front.URL + "/.well-known/webauthn")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	b.do(chromedp.Navigate(after + "/login"))
	b.do(chromedp.Click(chromedp.CSS("details:has([data-passkey=get]) summary")),
		chromedp.WaitVisible(chromedp.CSS("form[data-passkey=get] button")))
	b.inspect("login-passkey-earlier")
	b.do(chromedp.Click(chromedp.CSS("form[data-passkey=get] button")))
	b.until("location.origin === '" + after + "' && !location.pathname.startsWith('/login')")
	b.do(chromedp.Navigate(after + "/account"))
	b.says("Last used")
}
