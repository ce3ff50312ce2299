package upstream

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/idptest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestDex and TestNode test an MCP client, mcp-authd and a real provider: sign-in, a tool call, and
// revocation at the provider. Each check is a refresh. Dex requires this because its user info
// accepts an access token until it expires, and node because its access tokens are short-lived.
func TestDex(t *testing.T) {
	i := plan(t)
	up := i.dex("dex", idptest.Options{TokenTTL: 10 * time.Minute}, map[string]any{"check_by": "refresh"})
	fullCircle(t, i, up)
}

func TestNode(t *testing.T) {
	i := plan(t)
	up := i.node("node", idptest.Options{TokenTTL: 30 * time.Second, Host: "127.0.0.2"}, nil)
	fullCircle(t, i, up)
}

func fullCircle(t *testing.T, i *installation, up *idptest.Provider) {
	t.Parallel()
	i.start()
	alice := newPerson(t, idptest.Alice)
	t.Run("AS-220 AS-221 AS-222 SP-01 before our approval nothing leaves, and the browser holds no state",
		func(t *testing.T) {
			a := newApp(t)
			shown := alice.glance(t, i.link(i.register(t, "A stranger", a.redirect()), a.redirect()))
			if !shown.Approve || !strings.Contains(shown.Text, "A stranger") ||
				!strings.Contains(shown.Text, up.Kind) ||
				!strings.Contains(shown.Text, hostOf(a.URL)) {
				t.Errorf("got %s", shown.Text)
			}
			if names := alice.cookies(t, i.issuer+"/"); slices.ContainsFunc(names,
				func(n string) bool { return strings.Contains(n, "trip") }) {
				t.Errorf("there are cookies %q", names)
			}
			for _, r := range up.Requests() {
				if r.Path == "/auth" {
					t.Errorf("the provider was asked for %v", r.Query)
				}
			}
		})
	var first *client
	var who caller
	t.Run("a tool call after three clicks: ours, the provider's, and ours that names the account", func(t *testing.T) {
		first = i.connectClient(t, alice)
		who = call[caller](t, first, "whoami", nil)
		if !strings.HasPrefix(who.Subject, "usr_") || !slices.Equal(who.Scopes, []string{"mcp"}) {
			t.Errorf("got %+v", who)
		}
		ours, theirs := hostOf(i.issuer), hostOf(up.Issuer)
		if hosts := hostsOf(alice.clicks); !slices.Equal(hosts, []string{ours, theirs, ours}) {
			t.Errorf("clicked %q", alice.clicks)
		}
	})
	if t.Failed() {
		return
	}
	t.Run("AS-224 AS-225 PKCE, nonce, our exact redirect URI, no resource", func(t *testing.T) { checkLeg(t, i, up) })
	t.Run("AS-217 SP-05 SP-06 RS-202 neither side sees the other's tokens",
		func(t *testing.T) { checkSeparation(t, i, up, first) })
	var second grant
	t.Run("SP-02 AS-74 a second application, with a live session: our consent, and the provider is not asked",
		func(t *testing.T) {
			a, before, calls := newApp(t), len(alice.clicks), up.TokenCalls("authorization_code")
			id := i.register(t, "Another", a.redirect())
			alice.visit(t, i.link(id, a.redirect()))
			second = i.redeem(t, id, a.redirect(), a.answer(t).Get("code"))
			if got := hostsOf(alice.clicks[before:]); !slices.Equal(got, []string{hostOf(i.issuer)}) ||
				up.TokenCalls("authorization_code") != calls {
				t.Errorf("clicked %q, and the provider redeemed %d codes, before %d", alice.clicks[before:],
					up.TokenCalls("authorization_code"), calls)
			}
			alice.visit(t, i.link(id, a.redirect()))
			if len(alice.clicks) != before+2 || a.answer(t).Get("code") == "" ||
				!strings.Contains(alice.pages[before+1].Title, "Continue as ") {
				t.Errorf("AS-74 RU-15: clicked %q", alice.clicks[before+1:])
			}
		})
	t.Run("AS-219 the provider's tokens are renewed ahead of their end", func(t *testing.T) {
		wait.Until(t, "they are renewed twice", func() bool { return up.TokenCalls("refresh_token") >= 2 })
		i.lives(t, second.access)
	})
	t.Run("AS-218 AS-219 revoked at the provider, every token that rests on it is refused",
		func(t *testing.T) {
			i.lives(t, second.access)
			i.lives(t, first.token(t))
			up.Revoke(t, idptest.Alice)
			i.dies(t, second.access)
			i.dies(t, first.token(t))
			if status, out := second.refreshed(t, i.issuer); status != http.StatusBadRequest ||
				out["error"] != "invalid_grant" {
				t.Errorf("refresh: got %d %v", status, out)
			}
			if i.events("provider.ended") != 1 {
				t.Errorf("the end is in the log %d times", i.events("provider.ended"))
			}
		})
	t.Run("the client signs in again; the person is told why, and is the same", func(t *testing.T) {
		before := len(alice.pages)
		again := call[caller](t, first, "whoami", nil)
		if first.logins != 2 || again.Subject != who.Subject {
			t.Errorf("after %d sign-ins the subject is %q, before %q", first.logins, again.Subject, who.Subject)
		}
		if len(alice.pages) == before {
			t.Fatal("no page was shown")
		}
		if !strings.Contains(alice.pages[before].Text, up.Kind+" has withdrawn your sign-in") {
			t.Errorf("the page did not say why: %s", alice.pages[before].Text)
		}
	})
}

// checkLeg checks the requests to the provider.
func checkLeg(t *testing.T, i *installation, up *idptest.Provider) {
	var asked, redeemed []idptest.Request
	for _, r := range up.Requests() {
		switch {
		case r.Path == "/auth" && r.Method == http.MethodGet:
			asked = append(asked, r)
		case r.Path == "/token":
			redeemed = append(redeemed, r)
		}
		if r.Query.Has("resource") || r.Form.Has("resource") {
			t.Errorf("%s %s has a resource", r.Method, r.Path)
		}
	}
	if len(asked) != 1 || len(redeemed) == 0 {
		t.Fatalf("the provider was asked %d times, and for tokens %d times", len(asked), len(redeemed))
	}
	q, f := asked[0].Query, redeemed[0].Form
	if q.Get("code_challenge_method") != "S256" ||
		q.Get("code_challenge") != oauth.ChallengeS256(f.Get("code_verifier")) || len(q.Get("nonce")) < 20 ||
		len(q.Get("state")) < 20 {
		t.Errorf("asked with %v", q)
	}
	if !strings.HasPrefix(q.Get("redirect_uri"), i.issuer+"/callback/") ||
		f.Get("redirect_uri") != q.Get("redirect_uri") {
		t.Errorf("redirect URIs %q and %q", q.Get("redirect_uri"), f.Get("redirect_uri"))
	}
}

// checkSeparation searches for tokens in places where they must not be.
func checkSeparation(t *testing.T, i *installation, up *idptest.Provider, c *client) {
	mine := c.token(t)
	for _, r := range up.Requests() {
		sent := r.Body + r.Query.Encode()
		for name, values := range r.Header {
			sent += name + strings.Join(values, " ")
		}
		if strings.Contains(sent, mine) || strings.Contains(sent, "mcprt_") {
			t.Errorf("%s %s carries our token", r.Method, r.Path)
		}
	}
	var stored strings.Builder
	files, _ := filepath.Glob(filepath.Join(i.data, "mcp-authd.db*"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		stored.Write(b)
	}
	if stored.Len() == 0 || len(up.Tokens()) == 0 {
		t.Fatal("there is nothing to look at")
	}
	for _, given := range up.Tokens() {
		for name, theirs := range given {
			if strings.Contains(stored.String(), theirs) || strings.Contains(i.log.String(), theirs) ||
				strings.Contains(mine, theirs) {
				t.Errorf("the provider's %s is stored in clear, logged, or in our token", name)
			}
			if status := i.whoami(t, theirs); status != http.StatusUnauthorized {
				t.Errorf("the MCP server accepts the provider's %s: %d", name, status)
			}
		}
	}
}

// TestBackChannelLogout: the provider reports the end of a session without being asked.
func TestBackChannelLogout(t *testing.T) {
	t.Parallel()
	i := plan(t)
	up := i.node("node", idptest.Options{}, map[string]any{"check_every": "1h"})
	i.start()
	a, alice := newApp(t), newPerson(t, idptest.Alice)
	id := i.register(t, "An application", a.redirect())
	alice.visit(t, i.link(id, a.redirect()))
	g := i.redeem(t, id, a.redirect(), a.answer(t).Get("code"))
	i.lives(t, g.access)
	alice.glance(t, up.SessionEnd)
	if _, err := alice.press("button[name=logout]"); err != nil {
		t.Fatal(err)
	}
	t.Run("AS-219 signed out at the provider, tokens are refused at once, but for the status lists",
		func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("the provider's log:\n%s", up.Log())
				}
			}()
			i.dies(t, g.access)
			if status, out := g.refreshed(t, i.issuer); status != http.StatusBadRequest ||
				out["error"] != "invalid_grant" {
				t.Errorf("refresh: got %d %v", status, out)
			}
		})
	if t.Failed() {
		return
	}
	t.Run("the person is told, and has to sign in at both", func(t *testing.T) {
		before := len(alice.clicks)
		alice.visit(t, i.link(id, a.redirect()))
		ours, theirs := hostOf(i.issuer), hostOf(up.Issuer)
		if a.answer(t).Get("code") == "" ||
			!slices.Equal(hostsOf(alice.clicks[before:]), []string{ours, theirs, ours}) {
			t.Errorf("clicked %q", alice.clicks[before:])
		}
		if text := alice.pages[before].Text; !strings.Contains(text, "signed out") && !strings.Contains(text, "ended") {
			t.Errorf("the page does not say why: %s", text)
		}
	})
}

// TestFormPost: the provider responds with a form that its page posts from another site, so that
// the browser does not send our Lax cookies.
func TestFormPost(t *testing.T) {
	lane.Long(t, "thirdparty tests the callback as a form")
	t.Parallel()
	i := plan(t)
	up := i.node("node", idptest.Options{},
		map[string]any{"parameters": map[string]string{"response_mode": "form_post"}})
	i.config["audit"] = map[string]any{"detail": "full"} // the log has each request
	i.start()
	a, alice := newApp(t), newPerson(t, idptest.Alice)
	id := i.register(t, "An application", a.redirect())
	t.Run("AS-220 the state is found all the same", func(t *testing.T) {
		alice.visit(t, i.link(id, a.redirect()))
		if q := a.answer(t); q.Get("code") == "" || up.TokenCalls("authorization_code") != 1 {
			t.Errorf("got %v", q)
		}
		if !strings.Contains(i.log.String(), `"method":"POST","path":"/callback/node"`) {
			t.Error("no form was posted")
		}
	})
}

// TestClosedAccount: deprovisioning at the provider removes access here.
func TestClosedAccount(t *testing.T) {
	t.Parallel()
	i := plan(t)
	up := i.node("node", idptest.Options{TokenTTL: 30 * time.Second}, nil)
	i.start()
	a := newApp(t)
	bob := idptest.NewPerson(idptest.Bob)
	id := i.register(t, "An application", a.redirect())
	back, err := bob.Visit(i.link(id, a.redirect()), a.URL)
	if err != nil {
		t.Fatal(err)
	}
	g := i.redeem(t, id, a.redirect(), back.Query().Get("code"))
	i.lives(t, g.access)
	up.Disable(t, idptest.Bob)
	t.Run("AS-218 a closed account ends its tokens", func(t *testing.T) { i.dies(t, g.access) })
}

func hostOf(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	return u.Host
}

func hostsOf(clicks []string) (hosts []string) {
	for _, c := range clicks {
		host, _, _ := strings.Cut(c, ": ")
		hosts = append(hosts, host)
	}
	return hosts
}
