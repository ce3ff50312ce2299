package upstream

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/idptest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestExtend: a tool requires more access at the provider than the user has granted so far.
func TestExtend(t *testing.T) {
	lane.Long(t, "thirdparty tests consent at a provider")
	t.Parallel()
	i := plan(t)
	up := i.node("node", idptest.Options{Scopes: []string{"calendar", "mail"}, Offline: true},
		map[string]any{"broker": []any{map[string]any{"resource": i.mcpURL, "scopes": []string{"openid", "calendar"}}}})
	i.start()
	alice, bob := newPerson(t, idptest.Alice), newPerson(t, idptest.Bob)
	want := theCalendar{Provider: "node", Scope: "calendar", API: up.Issuer + "/me"}
	first := i.connectClient(t, alice)

	var link string
	t.Run("RS-198 RS-201 the client is told to show a link that says nothing about the person", func(t *testing.T) {
		result, err := first.CallTool(t.Context(), toolCall("calendar", want))
		if len(first.asked) != 1 || first.asked[0].Mode != "url" {
			t.Fatalf("asked %+v, and got %+v, %v", first.asked, result, err)
		}
		link = first.asked[0].URL
		who := call[caller](t, first, "whoami", nil)
		for _, secret := range []string{
			who.Subject, idptest.Alice.Email, idptest.Alice.ID, "Alice", "calendar", first.token(t),
			up.Tokens()[0]["access_token"],
		} {
			if strings.Contains(link, secret) || strings.Contains(link, url.QueryEscape(secret)) {
				t.Errorf("the link has %q in it: %s", secret, link)
			}
		}
		if u, err := url.Parse(link); err != nil || u.RawQuery != "" || !strings.HasPrefix(link, i.issuer+"/connect/") {
			t.Errorf("got %s, %v", link, err)
		}
	})
	if t.Failed() {
		return
	}
	t.Run("RS-200 another person opens it: refused, signed in or not", func(t *testing.T) {
		if shown := bob.glance(t, link); shown.Approve && strings.Contains(shown.Text, "calendar") {
			t.Errorf("a person who is not signed in sees %s", shown.Text)
		}
		i.connectClient(t, bob)
		before := asked(up)
		if shown := bob.glance(t, link); shown.Approve || !strings.Contains(shown.Text, "another") {
			t.Errorf("the browser shows %s:\n%s", shown.URL, shown.Text)
		}
		if shown := bob.see(t, link); asked(up) != before {
			t.Errorf("the browser went to the provider, and shows %s:\n%s", shown.URL, shown.Text)
		}
		for _, changed := range []string{link[:len(link)-1], link + "A", i.issuer + "/connect/x"} {
			if shown := alice.glance(t, changed); shown.Approve {
				t.Errorf("%s: %s", changed, shown.Text)
			}
		}
	})
	t.Run("RS-200 RS-202 the person grants it there, and the tool goes on; the client sees no token",
		func(t *testing.T) {
			before := len(alice.clicks)
			first.follow = func(link string) error {
				shown, err := alice.open(link)
				if err == nil {
					_, err = alice.goOn(shown)
				}
				return err
			}
			got := call[borrowed](t, first, "calendar", want)
			if got.Status != http.StatusOK || !strings.Contains(got.Body, `"sub":"`+idptest.Alice.ID+`"`) {
				t.Errorf("got %+v", got)
			}
			if hosts := slices.Compact(hostsOf(alice.clicks[before:])); !slices.Equal(hosts,
				[]string{hostOf(i.issuer), hostOf(up.Issuer)}) {
				t.Errorf("clicked %q", alice.clicks[before:])
			}
			page := alice.pages[before].Text
			for _, fact := range []string{"Notes", up.Kind, "calendar"} {
				if !strings.Contains(page, fact) {
					t.Errorf("our page does not say %q: %s", fact, page)
				}
			}
			for _, given := range up.Tokens() {
				for _, theirs := range given {
					if strings.Contains(got.Body, theirs) {
						t.Error("the client has seen a token of the provider")
					}
				}
			}
		})
	if t.Failed() {
		return
	}
	t.Run("RS-203 a new session of the same person needs no further page", func(t *testing.T) {
		second := i.connectClient(t, alice)
		before := len(alice.clicks)
		if got := call[borrowed](t, second, "calendar", want); got.Status != http.StatusOK ||
			len(alice.clicks) != before {
			t.Errorf("got %+v after %q", got, alice.clicks[before:])
		}
	})
	t.Run("RS-203 another person does", func(t *testing.T) {
		a := newApp(t)
		id := i.register(t, "Bob's", a.redirect())
		bob.visit(t, i.link(id, a.redirect()))
		status, out := i.exchange(t, i.redeem(t, id, a.redirect(), a.answer(t).Get("code")).access, "node", "calendar")
		if status != http.StatusBadRequest || out["error"] != "interaction_required" || out["interaction_uri"] == nil {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("no more than the rule gives, and no token of ours is passed through", func(t *testing.T) {
		if status, out := i.exchange(t, first.token(t), "node", "mail"); status != http.StatusBadRequest ||
			out["error"] != "invalid_scope" {
			t.Errorf("got %d %v", status, out)
		}
		for _, r := range up.Requests() {
			if strings.Contains(r.Body+r.Query.Encode()+strings.Join(r.Header["Authorization"], " "), first.token(t)) {
				t.Error("SP-06: the provider was sent our token")
			}
		}
	})
	t.Run("RS-199 without a token there is no link but a 401", func(t *testing.T) {
		if status := i.whoami(t, "nothing"); status != http.StatusUnauthorized {
			t.Errorf("got %d", status)
		}
	})
	t.Run("AS-219 revoked at the provider, the tool gets nothing any more", func(t *testing.T) {
		up.Revoke(t, idptest.Alice)
		token := first.token(t)
		wait.Until(t, "the tool gets nothing", func() bool {
			status, out := i.exchange(t, token, "node", "calendar")
			return status == http.StatusBadRequest &&
				(out["error"] == "invalid_request" || out["error"] == "invalid_grant" ||
					out["error"] == "interaction_required")
		})
	})
}

// exchange requests a provider's token as the MCP server (RFC 8693).
func (i *installation) exchange(t *testing.T, subject, provider, scope string) (int, map[string]any) {
	t.Helper()
	return post(t, i.issuer+"/token", url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {subject},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"}, "audience": {provider},
		"scope":     {scope},
		"client_id": {resourceClient}, "client_secret": {resourceSecret},
	})
}

// TestLinking links accounts at two providers and one with a password to one user. This is possible
// only by signing in to each.
func TestLinking(t *testing.T) {
	lane.Long(t, "thirdparty tests linked accounts")
	t.Parallel()
	i := plan(t)
	i.config["login"] = map[string]any{"local": true}
	dex := i.dex("dex", idptest.Options{}, nil)
	node := i.node("node", idptest.Options{Host: "127.0.0.2"}, nil)
	i.user("root", "correct horse battery")
	i.start()
	root := newPerson(t, idptest.Alice)
	signIn := func(t *testing.T, p *idptest.Person, provider string) (subject string) {
		t.Helper()
		a := newApp(t)
		id := i.register(t, "An application", a.redirect())
		back, err := p.Visit(i.link(id, a.redirect(), "provider", provider), a.URL)
		if err != nil {
			t.Fatal(err)
		}
		return subjectOf(t, i.redeem(t, id, a.redirect(), back.Query().Get("code")).access)
	}
	var own string
	t.Run("the chooser offers both providers and a password", func(t *testing.T) {
		a := newApp(t)
		id := i.register(t, "An application", a.redirect())
		shown := root.glance(t, i.link(id, a.redirect()))
		for _, p := range []*idptest.Provider{dex, node} {
			if !slices.ContainsFunc(shown.Links,
				func(l string) bool { return strings.HasPrefix(l, "Continue with "+p.Kind) }) {
				t.Errorf("no link to %s: %q", p.Kind, shown.Links)
			}
		}
		if err := root.fill("username", "root", "correct horse battery"); err != nil {
			t.Fatal(err)
		}
		shown, err := root.press("form[action$='/login'] button")
		if err == nil {
			shown, err = root.goOn(shown)
		}
		if err != nil || !shown.Back {
			t.Fatalf("%+v, %v", shown, err)
		}
		own = subjectOf(t, i.redeem(t, id, a.redirect(), a.answer(t).Get("code")).access)
	})
	if t.Failed() {
		return
	}
	t.Run("an account is connected from the page of the person who is signed in", func(t *testing.T) {
		for _, p := range []*idptest.Provider{dex, node} {
			root.glance(t, i.issuer+"/account")
			shown, err := root.press("form[action$='/depart'] button")
			if err == nil {
				shown, err = root.goOn(shown)
			}
			if err != nil || !strings.Contains(shown.Text, "Signed in as root") ||
				!strings.Contains(shown.Text, "Unlink\n"+p.Kind+"\n") {
				t.Fatalf("%s: %v\n%s", p.Kind, err, shown.Text)
			}
		}
	})
	if t.Failed() {
		return
	}
	t.Run("from then on each of them signs in the same person", func(t *testing.T) {
		for _, provider := range []string{"dex", "node"} {
			if got := signIn(t, idptest.NewPerson(idptest.Alice), provider); got != own {
				t.Errorf("%s: got %s, want %s", provider, got, own)
			}
		}
	})
	var apart [2]string
	t.Run("an e-mail address ties nothing together", func(t *testing.T) {
		for n, provider := range []string{"dex", "node"} {
			apart[n] = signIn(t, idptest.NewPerson(idptest.Bob), provider)
		}
		if apart[0] == apart[1] {
			t.Error("Bob is one person although that was not proven")
		}
	})
	t.Run("AS-220 an account that has a user already is not taken", func(t *testing.T) {
		bob := newPerson(t, idptest.Bob)
		a := newApp(t)
		id := i.register(t, "An application", a.redirect())
		bob.visit(t, i.link(id, a.redirect(), "provider", "dex"))
		bob.glance(t, i.issuer+"/account")
		bob.User = idptest.Alice // Bob knows Alice's password at the provider
		shown, err := bob.press("form[action$='/depart'] button")
		if err == nil {
			shown, err = bob.goOn(shown)
		}
		if err != nil || !strings.Contains(shown.Text, "belongs to another person") {
			t.Errorf("%v\n%s", err, shown.Text)
		}
		if got := signIn(t, idptest.NewPerson(idptest.Alice), "node"); got != own {
			t.Errorf("got %s, want %s", got, own)
		}
	})
	t.Run("AS-219 disconnected, what was signed in with it ends", func(t *testing.T) {
		a, p := newApp(t), idptest.NewPerson(idptest.Alice)
		id := i.register(t, "An application", a.redirect())
		back, err := p.Visit(i.link(id, a.redirect(), "provider", "node"), a.URL)
		if err != nil {
			t.Fatal(err)
		}
		g := i.redeem(t, id, a.redirect(), back.Query().Get("code"))
		i.lives(t, g.access)
		root.glance(t, i.issuer+"/account")
		for range 2 { // in the order of the list
			if _, err := root.press("form[action$='/disconnect'] button"); err != nil {
				t.Fatal(err)
			}
		}
		i.dies(t, g.access)
		if again := signIn(t, idptest.NewPerson(idptest.Alice), "node"); again == own {
			t.Error("the account is still connected")
		}
	})
}

var subClaim = regexp.MustCompile(`"sub":"([^"]+)"`)

// subjectOf returns the subject of an access token.
func subjectOf(t *testing.T, token string) string {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("not a JWT: %q", token)
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	m := subClaim.FindSubmatch(claims)
	if err != nil || m == nil {
		t.Fatalf("no subject in %s", claims)
	}
	return string(m[1])
}
