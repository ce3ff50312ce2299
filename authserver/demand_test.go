package authserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// guardedScopes adds a scope that requires a passkey of the last minutes.
func guardedScopes(c *Config) {
	c.Resources[0].Scopes = []storage.ScopeText{
		{Name: "mcp", Description: "use the server", Default: true},
		{
			Name: "notes:delete", Description: "delete notes", Dangerous: true,
			ACR: oauth.ACRPhishingResistant, MaxAge: storage.Age(5 * time.Minute),
		},
	}
}

// moreBy completes the second factor page that a page redirects to, and returns the page after it.
func (p *person) moreBy(led page, fields func(page) url.Values) page {
	p.t.Helper()
	led.leads(p.t, "/login/second")
	shown := p.get(led.header.Get("Location"))
	back := p.post("/login/second", fields(shown))
	back.leads(p.t, "/authorize")
	return p.get(back.header.Get("Location"))
}

// AS-238, RFC 9470 §4: a client requires a strength of the user's authentication.
func TestACRValues(t *testing.T) {
	const mfa, phr = oauth.ACRMultiFactor, oauth.ACRPhishingResistant
	asking := func(acr string, more ...string) string {
		return "/authorize?" + authorizeQuery(append(more, "acr_values", acr)...).Encode()
	}
	r := newRig(t, named)
	p := r.alice()
	p.signIn()           // the client is known
	secret := p.addApp() // the session has only the password
	t.Run("the person cannot prove it without a page", func(t *testing.T) {
		if got := responseOf(t, p.get(asking(mfa, "prompt", "none"))).Get("error"); got != "login_required" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("classes that this server does not have", func(t *testing.T) {
		if got := responseOf(t, p.get(asking("gold silver"))).Get("error"); got != "unmet_authentication_requirements" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a second factor, and the token says so", func(t *testing.T) {
		shown := p.moreBy(p.get(asking("gold "+mfa+" "+phr)), func(pg page) url.Values {
			return url.Values{"step": {pg.step(t)}, "code": {p.code(secret)}}
		})
		_, out := p.token(codeForm(responseOf(t, shown).Get("code")))
		claims := r.verified(t, out["access_token"].(string))
		if claims.ACR != mfa || !slices.Equal(claims.AMR, []string{"mfa", "otp", "pwd"}) {
			t.Errorf("got %q %v", claims.ACR, claims.AMR)
		}
		pg := p.post("/introspect", url.Values{"token": {out["access_token"].(string)}}, "Authorization",
			basic("machine", testSecret))
		if !strings.Contains(pg.body, `"acr":"`+mfa+`"`) || !strings.Contains(pg.body, `"auth_time":`) {
			t.Errorf("introspection says %s", pg.body)
		}
		again := responseOf(t, p.get(asking(mfa, "prompt", "none")))
		if again.Get("code") == "" {
			t.Errorf("asked again: %v", again)
		}
	})
	t.Run("who has no passkey adds one first, and an app will not do", func(t *testing.T) {
		led := p.get(asking(phr))
		led.leads(t, "/login/second")
		shown := p.get(led.header.Get("Location"))
		if !strings.Contains(shown.body, "/account/passkey?to=") || strings.Contains(shown.body, "/account/app?to=") {
			t.Errorf("got %d %s", shown.status, shown.body)
		}
	})
	t.Run("a passkey", func(t *testing.T) {
		a := r.authenticator()
		p.addPasskey(a)
		led := p.get(asking(phr, "prompt", "consent"))
		shown := p.moreBy(led, func(pg page) url.Values { return p.answered(pg, a) })
		back := p.post("/consent", url.Values{"step": {consentStep(t, shown)}, "decision": {"approve"}})
		status, out := p.token(codeForm(responseOf(t, back).Get("code")))
		if status != 200 {
			t.Fatalf("got %v %v", out, back.header)
		}
		if claims := r.verified(t, out["access_token"].(string)); claims.ACR != phr {
			t.Errorf("got %q", claims.ACR)
		}
	})
	t.Run("metadata say which there are", func(t *testing.T) {
		const path = "/.well-known/oauth-authorization-server"
		if pg := r.person().get(path); !strings.Contains(pg.body, `"acr_values_supported":["`+mfa+`","`+phr+`"]`) {
			t.Errorf("got %s", pg.body)
		}
		if pg := newRig(t).person().get(path); !strings.Contains(pg.body, `"acr_values_supported":["`+mfa+`"]`) {
			t.Errorf("where passkeys do not work: %s", pg.body)
		}
	})
	t.Run("where passkeys do not work, nobody reaches it", func(t *testing.T) {
		p := newRig(t).alice()
		p.signIn()
		if got := responseOf(t, p.get(asking(phr))).Get("error"); got != "unmet_authentication_requirements" {
			t.Errorf("got %q", got)
		}
	})
}

// AS-238: a scope requires authentication when it is granted, and while it is used.
func TestScopesThatDemandAProof(t *testing.T) {
	r := newRig(t, named, guardedScopes)
	p, a := r.alice(), r.authenticator()
	p.addPasskey(a)
	request := "/authorize?" + authorizeQuery("scope", "mcp notes:delete offline_access").Encode()
	tick := url.Values{"scope": {"notes:delete"}}

	t.Run("who does not pick it proves nothing", func(t *testing.T) {
		back := p.decided(p.get(request), url.Values{"preset": {"choose"}, "scope": {"mcp"}})
		if _, out := p.token(codeForm(responseOf(t, back).Get("code"))); out["scope"] != "mcp offline_access" {
			t.Errorf("got %v", out)
		}
	})
	var refresh any
	t.Run("who picks it proves it, and decides again", func(t *testing.T) {
		tick.Add("scope", "mcp")
		shown := p.moreBy(p.decided(p.get(request), tick), func(pg page) url.Values { return p.answered(pg, a) })
		_, out := p.token(codeForm(responseOf(t, p.decided(shown, tick)).Get("code")))
		if got, _ := out["scope"].(string); got != "mcp notes:delete offline_access" {
			t.Fatalf("got %v", out)
		}
		refresh = out["refresh_token"]
	})
	t.Run("a refresh leaves it out when the proof is too old", func(t *testing.T) {
		_, out := p.token(refreshForm(refresh))
		if out["scope"] != "mcp notes:delete offline_access" {
			t.Fatalf("got %v", out)
		}
		r.advance(5*time.Minute + time.Second)
		_, out = p.token(refreshForm(out["refresh_token"]))
		if out["scope"] != "mcp offline_access" {
			t.Errorf("got %v", out)
		}
	})
	t.Run("asked for again, the person proves again, and decides once", func(t *testing.T) {
		if got := responseOf(t, p.get(request+"&prompt=none")).Get("error"); got != "login_required" {
			t.Errorf("without a page: got %q", got)
		}
		led := p.get(request)
		led.leads(t, "/prove")
		back := p.post("/prove", p.answered(p.get(led.header.Get("Location")), a))
		back.leads(t, "/authorize")
		shown := p.get(back.header.Get("Location"))
		_, out := p.token(codeForm(responseOf(t, p.decided(shown, tick)).Get("code")))
		if got, _ := out["scope"].(string); got != "mcp notes:delete offline_access" {
			t.Errorf("got %q", got)
		}
		if in, _ := out["expires_in"].(float64); in <= 0 || in > 300 {
			t.Errorf("the token outlives the proof: %v seconds", in)
		}
		if got := responseOf(t, p.get(request+"&prompt=none")).Get("error"); got != "consent_required" {
			t.Errorf("it is remembered: got %q", got)
		}
	})
}

// AS-238: a device does not get it any sooner.
func TestDevicesAndDemands(t *testing.T) {
	_, tv := withDevice(t, named, guardedScopes)
	_, asked := tv.ask("scope", "mcp notes:delete")
	r := tv.rig
	p, a := r.person(), r.authenticator()
	shown := p.signInFor(devicePath(asked.UserCode))
	p.addPasskey(a)
	step := page{body: deviceForm.FindString(shown.body), status: shown.status}.step(t)
	pick := url.Values{"step": {step}, "decision": {"approve"}, "preset": {"all"}, "scope": {"notes:delete"}}
	led := p.post("/device", pick)
	led.leads(t, "/login/second")
	tv.wantPoll(asked, 400, "authorization_pending")
	back := p.post("/login/second", p.answered(p.get(led.header.Get("Location")), a))
	shown = p.get(p.there(back))
	pick.Set("step", page{body: deviceForm.FindString(shown.body), status: shown.status}.step(t))
	if pg := p.post("/device", pick); !strings.Contains(pg.body, "Your device is connected") {
		t.Fatalf("got %d %s", pg.status, pg.body)
	}
	r.advance(10 * time.Second)
	status, out := tv.poll(asked)
	claims := r.verified(t, out["access_token"].(string))
	if status != 200 || out["scope"] != "mcp notes:delete" || claims.ACR != oauth.ACRPhishingResistant {
		t.Errorf("got %d %v %+v", status, out, claims)
	}
}

// AS-238 RFC 9470 §4: a device requests recent authentication like a browser: the answering user
// authenticates first, unless they have within that time.
func TestDeviceMaxAge(t *testing.T) {
	r, tv := withDevice(t)
	p := r.alice()
	p.signIn()
	r.advance(20 * time.Minute)
	now := func(a asked) time.Time {
		t.Helper()
		r.advance(10 * time.Second)
		status, out := tv.poll(a)
		if status != 200 {
			t.Fatalf("got %d %v", status, out)
		}
		return time.Unix(r.verified(t, out["access_token"].(string)).AuthTime, 0)
	}
	approve := func(pg page) {
		t.Helper()
		if pg := p.decideDevice(pg, "approve"); !strings.Contains(pg.body, "Your device is connected") {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
	}
	t.Run("not asked for: the sign-in of before will do", func(t *testing.T) {
		_, a := tv.ask()
		approve(p.get(devicePath(a.UserCode)))
		if at := now(a); r.now().Sub(at) < 20*time.Minute {
			t.Errorf("got %v", at)
		}
	})
	t.Run("the person proves it again, and then sees what it is for", func(t *testing.T) {
		_, a := tv.ask("max_age", "600")
		led := p.get(devicePath(a.UserCode))
		led.leads(t, "/prove")
		back := p.post("/prove", url.Values{
			"step": {p.get(led.header.Get("Location")).step(t)}, "password": {alicesPassword},
		})
		r.advance(time.Second)
		approve(p.get(p.there(back)))
		if at := now(a); r.now().Sub(at) > time.Minute {
			t.Errorf("got %v", at)
		}
	})
	t.Run("a proof within that time will do", func(t *testing.T) {
		_, a := tv.ask("max_age", "600")
		approve(p.get(devicePath(a.UserCode)))
	})
	t.Run("one of before the request will not do for none at all, and one after it will", func(t *testing.T) {
		r.advance(time.Second)
		_, a := tv.ask("max_age", "0")
		led := p.get(devicePath(a.UserCode))
		led.leads(t, "/prove")
		back := p.post("/prove", url.Values{
			"step": {p.get(led.header.Get("Location")).step(t)}, "password": {alicesPassword},
		})
		r.advance(time.Minute)
		approve(p.get(p.there(back)))
	})
	t.Run("classes that this server does not have", func(t *testing.T) {
		if status, a := tv.ask("acr_values", "gold"); status != 400 || a.Error != "unmet_authentication_requirements" {
			t.Errorf("got %d %+v", status, a)
		}
	})
	t.Run("a class that the person has not reached", func(t *testing.T) {
		p.addApp()
		_, a := tv.ask("acr_values", oauth.ACRMultiFactor)
		p.get(devicePath(a.UserCode)).leads(t, "/login/second")
	})
}

// AS-238: if a passkey is required, a thief of a session cookie cannot renew the session with
// anything that a phishing page can ask for.
func TestStepUpTakesWhatItAsksFor(t *testing.T) {
	r := newRig(t, named, guardedScopes)
	p, a := r.alice(), r.authenticator()
	p.signIn()
	secret := p.addApp()
	p.addPasskey(a)
	request := "/authorize?" + authorizeQuery("acr_values", oauth.ACRPhishingResistant).Encode()
	for name, posted := range map[string]url.Values{
		"a password":        {"password": {alicesPassword}},
		"a code of the app": {"code": {p.code(secret)}},
		"a recovery code":   {"recovery": {"ABCDE-FGHJK-LMNPQ-RSTVW"}},
	} {
		t.Run(name, func(t *testing.T) {
			posted.Set("step", p.get(p.get(request).header.Get("Location")).step(t))
			p.post("/login/second", posted).has(t, http.StatusUnauthorized, "not right")
		})
	}
	t.Run("a passkey that has not verified the person", func(t *testing.T) {
		shown := p.get(p.get(request).header.Get("Location"))
		if _, options := shown.asked(t); !strings.Contains(string(options), `"userVerification":"required"`) {
			t.Errorf("the page does not demand it: %s", options)
		}
	})
	shown := p.get(p.get(request).header.Get("Location"))
	p.post("/login/second", p.answered(shown, a)).leads(t, "/authorize")
	t.Run("a code of the app does not renew a session by a passkey", func(t *testing.T) {
		r.advance(time.Hour)
		led := p.get("/account/passkey")
		led.leads(t, "/prove")
		shown := p.get(led.header.Get("Location"))
		if strings.Contains(shown.body, `name="code"`) {
			t.Error("the page asks for one")
		}
		p.post("/prove", url.Values{"step": {shown.step(t)}, "code": {p.code(secret)}}).has(
			t, http.StatusUnauthorized, "not right")
		p.get("/account/passkey").leads(t, "/prove")
	})
}

// AS-238: where passkeys do not work, a scope that requires one is refused, and the client gets the
// error.
func TestADemandThatNobodyMeets(t *testing.T) {
	r := newRig(t, guardedScopes)
	p := r.person()
	shown := p.login(authorizeQuery("scope", "mcp notes:delete"))
	back := p.decided(shown, url.Values{"scope": {"mcp", "notes:delete"}})
	if got := responseOf(t, back).Get("error"); got != "unmet_authentication_requirements" {
		t.Errorf("got %q", got)
	}
}

// AS-238: an authorization of a device that is fetched late has the scopes that the authentication
// still allows.
func TestALateDeviceHasLess(t *testing.T) {
	_, tv := withDevice(t, func(c *Config) {
		guardedScopes(c)
		c.Resources[0].Scopes[1].ACR, c.Resources[0].Scopes[1].Dangerous = "", false
	})
	_, asked := tv.ask("scope", "mcp notes:delete")
	p := tv.rig.person()
	p.decideDevice(p.signInFor(devicePath(asked.UserCode)), "approve").has(t, 200, "Your device is connected")
	tv.rig.advance(5*time.Minute + time.Second)
	if status, out := tv.poll(asked); status != 200 || out["scope"] != "mcp" {
		t.Errorf("got %d %v", status, out)
	}
}
