package authserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/authkit"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// town is a server with users of each kind, and a store that records the called verbs.
type town struct {
	*rig
	verbs *storagetest.Failing
	mail  *letters
	// passkeys holds the passkeys of the users who have one.
	passkeys map[string]*authkit.Authenticator
}

// The names have equal length and occur in no page text. The account "p-none" does not exist.
var everyKind = []string{
	"p-none", // unknown
	"p-pass", // only a password
	"p-keys", // only a passkey
	"p-both", // with a password and a passkey
	"p-apps", // with a password and an authenticator app
	"p-code", // with a password and recovery codes
	"p-mail", // with a password and a mail address
	"p-boss", // an administrator with recovery codes
	"p-gone", // disabled, with a password, a passkey and recovery codes
}

func newTown(t *testing.T) *town {
	t.Helper()
	c := &town{mail: &letters{}, passkeys: map[string]*authkit.Authenticator{}}
	c.rig = newRig(t, named, func(cfg *Config) {
		c.verbs = storagetest.NewFailing(cfg.Store.(storage.Store))
		cfg.Store, cfg.Mailer = c.verbs, c.mail
		cfg.TrustedProxies = TrustedProxies{netip.MustParsePrefix("127.0.0.0/8")}
	})
	for _, name := range everyKind[1:] {
		u, err := c.users.Create(t.Context(), name, alicesPassword, name == "p-boss")
		c.must(err)
		switch name {
		case "p-keys":
			c.enrol(name)
			by := storage.Admission{RPIDs: []string{"localhost"}}
			c.must(c.store.RemovePassword(t.Context(), u.ID, by, storage.Hash{}))
		case "p-both":
			c.enrol(name)
		case "p-apps":
			c.signedIn(name).addApp()
		case "p-mail":
			c.must(c.users.SetMail(t.Context(), name, "mail@example.com"))
		case "p-code", "p-boss":
			c.codes(u.ID)
		case "p-gone":
			c.enrol(name)
			c.codes(u.ID)
			c.must(c.users.Disable(t.Context(), name))
		}
	}
	return c
}

func (c *town) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// signedIn returns a browser where a user has signed in with the password.
func (c *town) signedIn(name string) *person {
	c.t.Helper()
	p := c.person()
	pg := p.post("/login",
		url.Values{"step": {p.get("/login").step(c.t)}, "username": {name}, "password": {alicesPassword}})
	if pg.status != http.StatusSeeOther {
		c.t.Fatalf("%s: got %d %.300s", name, pg.status, pg.body)
	}
	return p
}

func (c *town) enrol(name string) {
	c.t.Helper()
	c.passkeys[name] = c.authenticator()
	c.signedIn(name).addPasskey(c.passkeys[name]).has(c.t, http.StatusOK, "Phone")
}

func (c *town) codes(userID string) {
	c.t.Helper()
	_, err := c.ways.NewRecoveryCodes(c.t.Context(), userID)
	c.must(err)
}

// learned is everything that a stranger gets from a response, and the server's work for it.
type learned struct {
	Status  int
	Headers []string
	Body    string
	Verbs   []string
}

// Values that differ between any two responses: sealed values, challenges, and request ids.
var sealedValues = regexp.MustCompile(`(name="step" value|data-options|data-request)="[^"]*"`)

func learn(pg page, name string, verbs []string) learned {
	body := sealedValues.ReplaceAllString(pg.body, "$1")
	return learned{
		Status: pg.status, Headers: slices.Sorted(maps.Keys(pg.header)),
		Body: strings.ReplaceAll(body, name, "NAME"), Verbs: verbs,
	}
}

// alike fails the test unless each case tells a stranger the same as the first.
func (c *town) alike(t *testing.T, cases []string, ask func(t *testing.T, of string) (send func() page)) {
	t.Helper()
	const rounds = 2   // the second after a counted failure
	ask(t, cases[0])() // fills the short-lived caches
	for round := range rounds {
		var first learned
		for i, of := range cases {
			send := ask(t, of)
			c.verbs.Arm(1 << 30)
			pg := send()
			_, verbs := c.verbs.Disarm()
			got := learn(pg, of, verbs)
			switch {
			case i == 0:
				first = got
				t.Logf("%d, %v", got.Status, got.Verbs)
			case !reflect.DeepEqual(got, first):
				t.Errorf("round %d: %q differs from %q:\n%+v\n%+v", round, of, cases[0], got, first)
			}
		}
	}
}

// from returns a header with a separate network for each case, so that they are counted separately.
func from(of string) []string {
	h := secrets.Hash(of)
	return []string{"X-Forwarded-For", fmt.Sprintf("%d.%d.%d.1", 20+h[0]%100, h[1], h[2])}
}

// TestPE08Enumeration checks that responses do not tell a stranger who has an account or which
// authentication methods it has. The work for a response, in verbs of the store, does not tell it
// either.
func TestPE08Enumeration(t *testing.T) {
	c := newTown(t)
	form := func(t *testing.T, at, to, field, value string) func(*testing.T, string) func() page {
		return func(t *testing.T, name string) func() page {
			p := c.person()
			f := url.Values{"step": {p.get(at).step(t)}, "username": {name}}
			if field != "" {
				f.Set(field, value)
			}
			return func() page { return p.post(to, f, from(name)...) }
		}
	}
	t.Run("sign-in with a wrong password", func(t *testing.T) {
		c.alike(t, everyKind, form(t, "/login", "/login", "password", "not the right one"))
	})
	t.Run("sign-in with no password", func(t *testing.T) {
		c.alike(t, everyKind, form(t, "/login", "/login", "", ""))
	})
	t.Run("sign-in with a wrong recovery code", func(t *testing.T) {
		c.alike(t, everyKind, form(t, "/login", "/login/recovery", "recovery", "AAAAA-AAAAA-AAAAA-AAAAA"))
	})
	t.Run("sign-in with what is no recovery code", func(t *testing.T) {
		c.alike(t, everyKind, form(t, "/login", "/login/recovery", "recovery", "x"))
	})
	t.Run("a request with the name as a hint", func(t *testing.T) {
		c.alike(t, everyKind, func(_ *testing.T, name string) func() page {
			query := authorizeQuery("login_hint", name)
			return func() page { return c.person().get("/authorize?"+query.Encode(), from(name)...) }
		})
	})
	t.Run("forgotten password, whose answer waits for no verb", func(t *testing.T) {
		ask := form(t, "/login/forgotten", "/login/forgotten", "", "")
		c.alike(t, everyKind, func(t *testing.T, name string) func() page {
			send, answered := ask(t, name), make(chan struct{})
			return func() page {
				before := c.resets()
				c.verbs.Surround(func(_ string, do func() error) error {
					select {
					case <-answered:
					case <-time.After(time.Minute):
						t.Errorf("%s: the answer waits for the store", name)
					}
					return do()
				})
				pg := send()
				close(answered)
				wait.Until(t, "the reset for "+name+" has ended", func() bool { return c.resets() > before })
				c.verbs.Surround(nil)
				return pg
			}
		})
	})
	t.Run("passkeys", func(t *testing.T) { passkeysAlike(t, c) })
	t.Run("links", func(t *testing.T) { linksAlike(t, c) })
	t.Run("codes of devices", func(t *testing.T) { deviceCodesAlike(t, c) })
}

// resets counts the finished password resets: each sends a mail or records an audit event with the
// reason.
func (c *town) resets() int {
	return c.mail.count("Choose a new password") + strings.Count(c.log.String(), `"event":"`+audit.LinkRefused+`"`)
}

// passkeysAlike checks that the owner of a passkey, and whether the account is disabled, cannot be
// found out without the passkey.
//
// The page does reveal that a passkey is unknown, so that its authenticator stops offering it
// (WebAuthn §5.1.10.2). Its random id of 128 bits and more is known only from that authenticator,
// or from a page after a first factor. The work is the same.
func passkeysAlike(t *testing.T, c *town) {
	unknown := c.authenticator()
	_, options := c.signedIn("p-pass").get("/account/passkey").asked(t)
	if _, err := unknown.Create(options); err != nil {
		t.Fatal(err)
	}
	answer := func(a *authkit.Authenticator) func(*testing.T, string) func() page {
		return func(t *testing.T, name string) func() page {
			p, by := c.person(), a
			if by == nil {
				by = c.passkeys[name]
			}
			f := p.answered(p.get("/login"), by)
			f.Set("credential", unsigned(t, f.Get("credential")))
			return func() page { return p.post("/login/passkey", f, from(name)...) }
		}
	}
	c.alike(t, []string{"p-keys", "p-both", "p-gone"}, answer(nil))
	learnt := func(name string, by *authkit.Authenticator) learned {
		send := answer(by)(t, name)
		c.verbs.Arm(1 << 30)
		pg := send()
		_, verbs := c.verbs.Disarm()
		return learn(pg, name, verbs)
	}
	known, stranger := learnt("p-keys", nil), learnt("p-none", unknown)
	if !strings.Contains(stranger.Body, "data-unknown=") || strings.Contains(known.Body, "data-unknown=") {
		t.Error("the authenticator of a passkey that is not known is not told, or that of a known one is")
	}
	known.Body, stranger.Body = "", ""
	if !reflect.DeepEqual(known, stranger) {
		t.Errorf("an unknown passkey is other work: %+v, %+v", stranger, known)
	}
}

// unsigned returns the response of a passkey with another signature.
func unsigned(t *testing.T, credential string) string {
	t.Helper()
	var answer map[string]any
	if err := json.Unmarshal([]byte(credential), &answer); err != nil {
		t.Fatal(err)
	}
	response := answer["response"].(map[string]any)
	signature, err := base64.RawURLEncoding.DecodeString(response["signature"].(string))
	if err != nil {
		t.Fatal(err)
	}
	signature[len(signature)-1] ^= 1
	response["signature"] = base64.RawURLEncoding.EncodeToString(signature)
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// linksAlike checks that an invalid link does not reveal its former purpose.
func linksAlike(t *testing.T, c *town) {
	of := map[string]string{"l-none": "/link/mcplk_none"}
	link := func(name string, made users.Link, err error) {
		c.must(err)
		of[name] = pathOf(t, made.URL)
	}
	invite := func(name string) (users.Link, error) {
		return c.users.Invite(t.Context(), c.rig.as.Issuer, users.Invitation{Name: name, TTL: time.Hour})
	}
	made, err := invite("l-used")
	link("l-used", made, err)
	p := c.person()
	if pg := p.post(of["l-used"], passwordForm(p.get(of["l-used"]).step(t), newPassword)); pg.status != 200 {
		t.Fatalf("got %d", pg.status)
	}
	made, err = invite("l-once")
	link("l-once", made, err) // replaced
	_, err = invite("l-once")
	c.must(err)
	made, err = c.users.Recover(t.Context(), c.rig.as.Issuer, "p-pass", users.RecoveryOptions{})
	link("l-stop", made, err)
	word, err := c.users.Find(t.Context(), "p-pass")
	c.must(err)
	c.must(c.users.StopRecovery(t.Context(), word.ID))
	made, err = c.users.Recover(t.Context(), c.rig.as.Issuer, "p-mail", users.RecoveryOptions{})
	link("l-shut", made, err)
	c.mail.await(t, "A recovery link was made") // the reads for mails are over
	c.must(c.users.Disable(t.Context(), "p-mail"))
	made, err = invite("l-late")
	link("l-late", made, err)
	c.advance(time.Hour)

	spare := c.person()
	fresh, err := invite("sure")
	c.must(err)
	step := spare.get(pathOf(t, fresh.URL)).step(t)
	// For a link of a disabled account, the account is also read: only its user, or someone who got
	// it from them, has a token of 256 bits.
	cases := slices.DeleteFunc(slices.Sorted(maps.Keys(of)), func(name string) bool { return name == "l-shut" })
	none, shut := learn(spare.get(of["l-none"]), "l-none", nil), learn(spare.get(of["l-shut"]), "l-shut", nil)
	if !reflect.DeepEqual(none, shut) {
		t.Errorf("the link of a disabled account differs from an unknown link:\n%+v\n%+v", shut, none)
	}
	c.alike(t, cases, func(_ *testing.T, name string) func() page {
		return func() page { return spare.get(of[name]) }
	})
	c.alike(t, cases, func(_ *testing.T, name string) func() page {
		return func() page { return spare.post(of[name], passwordForm(step, newPassword)) }
	})
}

// deviceCodesAlike checks that a code that no longer waits for a decision is like an unknown one.
// Codes are not looked up before a sign-in.
func deviceCodesAlike(t *testing.T, c *town) {
	c.must(c.store.PutClient(t.Context(), storage.Client{
		ID: "tv", Name: "A TV", GrantTypes: []string{"urn:ietf:params:oauth:grant-type:device_code"},
		AuthMethod: "none", Source: storage.SourceDynamic, CreatedAt: c.now(),
	}))
	tv, decider := c.person(), c.signedIn("p-pass")
	code := func() string {
		status, a := tv.ask("scope", "mcp")
		if status != http.StatusOK {
			t.Fatalf("got %d %+v", status, a)
		}
		return a.UserCode
	}
	late := code()
	c.advance(11 * time.Minute)
	approved, denied, waits := code(), code(), code()
	for of, verdict := range map[string]string{approved: "approve", denied: "deny"} {
		if pg := decider.decideDevice(decider.get(devicePath(of)), verdict); pg.status != http.StatusOK {
			t.Fatalf("%s: got %d %.300s", verdict, pg.status, pg.body)
		}
	}
	// Three wrong codes of one user cost the same; more of them would tell a stranger about others'
	// codes.
	var strangers []*person
	for _, name := range []string{"d-one", "d-two", "d-three"} {
		_, err := c.users.Create(t.Context(), name, alicesPassword, false)
		c.must(err)
		strangers = append(strangers, c.signedIn(name))
	}
	typed := 0
	c.alike(t, []string{"BBBB-BBBB", late, approved, denied}, func(_ *testing.T, of string) func() page {
		stranger := strangers[typed/3]
		typed++
		return func() page { return stranger.get(devicePath(of), from(of)...) }
	})
	c.alike(t, []string{"BBBB-BBBB", late, approved, denied, waits}, func(_ *testing.T, of string) func() page {
		return func() page { return c.person().get(devicePath(of), from(of)...) }
	})
}
