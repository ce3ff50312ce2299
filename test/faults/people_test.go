package faults

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/authkit"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// bare removes the authentication methods that alice got in earlier rounds, and returns her
// account.
func (r *rig) bare() storage.User {
	r.t.Helper()
	u, err := r.as.Users().Find(r.t.Context(), "alice")
	must(r.t, err)
	all, err := r.store.Ways(r.t.Context(), u.ID)
	must(r.t, err)
	for _, w := range all {
		must(r.t, r.store.TakeWay(r.t.Context(), u.ID, w.ID))
	}
	must(r.t, r.store.ReplaceRecoveryCodes(r.t.Context(), u.ID, nil, storage.Hash{}))
	must(r.t, r.as.Users().SetPassword(r.t.Context(), "alice", password, false))
	_, err = r.store.StopLinks(r.t.Context(), u.ID, r.Now())
	must(r.t, err)
	pauses, err := r.store.Pauses(r.t.Context(), u.ID)
	must(r.t, err)
	for _, p := range pauses {
		must(r.t, r.store.EndPause(r.t.Context(), u.ID, p.ID, r.Now()))
	}
	r.Advance(time.Second) // a new password ends sign-ins that began before it
	return u
}

// fresh returns the browser of alice, who has only a password and has just proved her identity.
func (r *rig) fresh() *browser {
	r.bare()
	return r.signIn()
}

var askedFor = regexp.MustCompile(`data-options="([^"]*)"`)

// creation returns the completed form of a page that requests a new passkey.
func (b *browser) creation(a *authkit.Authenticator, page answer) (action string, form url.Values) {
	b.t.Helper()
	return b.byPasskey(page, a.Create)
}

// assertion returns the completed form of a page that requests a passkey.
func (b *browser) assertion(a *authkit.Authenticator, page answer) (action string, form url.Values) {
	b.t.Helper()
	return b.byPasskey(page, a.Get)
}

func (b *browser) byPasskey(page answer, answered func([]byte) ([]byte, error)) (action string, form url.Values) {
	b.t.Helper()
	for _, m := range formTag.FindAllStringSubmatch(page.body, -1) {
		options := askedFor.FindStringSubmatch(m[0])
		if options == nil {
			continue
		}
		credential, err := answered([]byte(html.UnescapeString(options[1])))
		must(b.t, err)
		action, form = answer{body: m[0]}.form(b.t, "")
		form.Set("credential", string(credential))
		return action, form
	}
	b.t.Fatalf("no form for a passkey in the answer %d: %.600s", page.status, page.body)
	return "", nil
}

// keyed returns the browser of alice with a passkey.
func (r *rig) keyed() (*browser, *authkit.Authenticator) {
	r.t.Helper()
	b, a := r.fresh(), authkit.New(r.url)
	action, form := b.creation(a, b.get("/account/passkey"))
	if got := b.post(action, form); got.status != http.StatusOK {
		r.t.Fatalf("passkey: got %d %.300s", got.status, got.body)
	}
	return b, a
}

var appSecret = regexp.MustCompile(`<p class="copy secret"><code>([A-Z2-7 ]+)</code>`)

// appForm returns the completed form of the page that adds an app, and the app's secret.
func (b *browser) appForm() (action string, form url.Values, secret string) {
	b.t.Helper()
	page := b.get("/account/app")
	action, form = page.form(b.t, "/account/app")
	m := appSecret.FindStringSubmatch(page.body)
	if m == nil {
		b.t.Fatalf("no secret in %d %.300s", page.status, page.body)
	}
	secret = strings.ReplaceAll(m[1], " ", "")
	form.Set("code", b.appCode(secret))
	return action, form, secret
}

func (r *rig) appCode(secret string) string {
	r.t.Helper()
	code, err := totp.GenerateCode(secret, r.Now())
	must(r.t, err)
	return code
}

// withApp returns the browser of alice with an app, and the app's secret.
func (r *rig) withApp() (*browser, string) {
	r.t.Helper()
	b := r.fresh()
	action, form, secret := b.appForm()
	if got := b.post(action, form); got.status != http.StatusOK {
		r.t.Fatalf("app: got %d %.300s", got.status, got.body)
	}
	r.Advance(time.Minute) // a code works once
	return b, secret
}

// waits returns alice's browser after the password, at the page that requests the second factor.
func (r *rig) waits() (*browser, answer) {
	r.t.Helper()
	b := r.browser()
	action, form := b.get("/login").form(r.t, "/login")
	form.Set("username", "alice")
	form.Set("password", password)
	return b, b.post(action, form)
}

var wroteDown = regexp.MustCompile(`[0-9A-HJKMNP-TV-Z]{5}(-[0-9A-HJKMNP-TV-Z]{5}){3}`)

// connected returns alice's browser at the account page, with an application connected.
func (r *rig) connected() (*browser, url.Values) {
	r.t.Helper()
	r.bare()
	r.tokens()
	b := r.signIn()
	_, form := b.get("/account").form(r.t, "/account/connections")
	return b, form
}

// people returns Users for creating links like an operator.
func (r *rig) people() *users.Users {
	r.t.Helper()
	u, err := users.New(users.Config{Store: r.store, Now: r.Now})
	must(r.t, err)
	return u
}

func (r *rig) recovery() string {
	r.t.Helper()
	r.bare()
	made, err := r.people().Recover(r.t.Context(), r.url, "alice", users.RecoveryOptions{})
	must(r.t, err)
	return strings.TrimPrefix(made.URL, r.url)
}

func (r *rig) invitation() string {
	r.t.Helper()
	if u, err := r.as.Users().Find(r.t.Context(), "berta"); err == nil {
		must(r.t, r.store.DeleteUser(r.t.Context(), u.ID, r.Now()))
	}
	made, err := r.people().Invite(r.t.Context(), r.url, users.Invitation{Name: "berta"})
	must(r.t, err)
	return strings.TrimPrefix(made.URL, r.url)
}

var shownCode = regexp.MustCompile(`<strong class="host"><bdi>([^<]+)</bdi></strong>`)

// asking returns a browser that waits for a sign-in from another device, with its address, code and
// number.
func (r *rig) asking() (b *browser, at, code, number string) {
	r.t.Helper()
	b = r.browser()
	action, form := b.get("/login").form(r.t, "/login/device")
	at = b.post(action, form).header.Get("Location")
	m := shownCode.FindAllStringSubmatch(b.get(at).body, -1)
	if len(m) != 2 {
		r.t.Fatalf("%q shows no code and number", at)
	}
	return b, at, m[0][1], m[1][1]
}

var deciding = regexp.MustCompile(`(?s)<form [^>]*class="decide.*?</form>`)

// decision returns alice's form for deciding about a browser.
func (r *rig) decision(code, number string) (b *browser, action string, form url.Values) {
	r.t.Helper()
	r.bare()
	b = r.signIn()
	page := b.get("/device?user_code=" + code)
	action, form = answer{status: page.status, body: deciding.FindString(page.body)}.form(r.t, "/device/sign-in")
	form.Set("decision", "approve")
	form.Set("number", number)
	return b, action, form
}

// keyForm returns alice's form for creating a service credential.
func (b *browser) keyForm() (action string, form url.Values) {
	b.t.Helper()
	action, form = b.get("/account/keys").form(b.t, "/account/keys")
	form.Set("name", "Nightly report")
	form.Set("days", "7")
	form.Set("scope", "mcp")
	return action, form
}

func back(a answer) bool { return a.status == http.StatusSeeOther }

// backTo matches a redirect to one of our pages that is not an error.
func backTo(path string) func(answer) bool {
	return func(a answer) bool { return back(a) && strings.HasSuffix(a.at().Path, path) }
}

// signsIn maps the verbs of a sign-in whose failure does not prevent it to the reasons.
var signsIn = map[string]string{
	"TouchLogin": notes, "ClearFailures": forgetful, "ReturnTry": forgetful, "Client": named,
	"EndSession": "the session of before ends by itself", "PutNotice": told,
}

// added reports whether the method was added. The page may suggest adding a second one.
func added(a answer) bool {
	return strings.Contains(a.body, "From now on you can use") || back(a) && a.at().Fragment == "ways"
}

var additions = map[string]string{
	"PutNotice": told, "Factors": "it decides whether a second way is proposed",
}

var changes = map[string]string{"PutNotice": told}
