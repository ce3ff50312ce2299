package faults

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/authkit"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// posts returns the request of a scenario: a page's form in a browser.
func posts(b *browser, action string, form url.Values) func() answer {
	return func() answer { return b.post(action, form) }
}

// PE-02 to PE-07: authentication methods.
var wayScenarios = []scenario{
	{
		name: "GET /account of a person with everything on it",
		prepare: func(r *rig) func() answer {
			b := r.fresh()
			r.tokens()
			action, form := b.creation(authkit.New(r.url), b.get("/account/passkey"))
			b.post(action, form)
			return func() answer { return b.get("/account") }
		},
		done: says("data-grant="),
	},
	{
		name: "POST /account/passkey",
		prepare: func(r *rig) func() answer {
			b := r.fresh()
			page := b.get("/account/passkey")
			action, form := b.creation(authkit.New(r.url), page)
			return posts(b, action, form)
		},
		done: added, harmless: additions,
		again: true, // a challenge is valid once
	},
	{
		name: "POST /account/app",
		prepare: func(r *rig) func() answer {
			b := r.fresh()
			action, form, _ := b.appForm()
			return posts(b, action, form)
		},
		done: added, harmless: additions,
		again: true, // the sealed secret is valid once
	},
	{
		name: "POST /account/recovery",
		prepare: func(r *rig) func() answer {
			b := r.fresh()
			action, form := b.get("/account/recovery").form(r.t, "/account/recovery")
			return posts(b, action, form)
		},
		done:     func(a answer) bool { return strings.Count(a.body, "<li><code>") == ways.RecoveryCodes },
		harmless: changes,
	},
	{
		name: "POST /account/password",
		prepare: func(r *rig) func() answer {
			b := r.fresh()
			action, form := b.get("/account/password").form(r.t, "/account/password")
			form.Set("password", password)
			return posts(b, action, form)
		},
		done: backTo("/account"), harmless: signsIn,
		again: true, // it ends its own session
	},
	{
		name: "POST /account/ways, another name",
		prepare: func(r *rig) func() answer {
			b, _ := r.keyed()
			action, form := b.get("/account").form(r.t, "/account/ways")
			form.Set("act", "rename")
			form.Set("name", "Another")
			return posts(b, action, form)
		},
		done: backTo("/account"), harmless: changes,
	},
	{
		name: "POST /account/ways, removed",
		prepare: func(r *rig) func() answer {
			b, _ := r.keyed()
			action, form := b.get("/account").form(r.t, "/account/ways")
			form.Set("act", "remove")
			return posts(b, action, form)
		},
		done: backTo("/account"), harmless: changes,
		again: true, // it was removed
	},
	{
		name: "POST /account/ways, the last one",
		prepare: func(r *rig) func() answer {
			b := r.fresh()
			action, form := b.get("/account").form(r.t, "/account/ways")
			form.Set("act", "remove")
			return posts(b, action, form)
		},
		done: status(http.StatusConflict),
	},
	{
		name: "POST /login/passkey",
		prepare: func(r *rig) func() answer {
			_, a := r.keyed()
			b := r.browser()
			action, form := b.assertion(a, b.get("/login"))
			return posts(b, action, form)
		},
		done: backTo("/account"), harmless: signsIn,
		again: true, // a challenge is valid once
	},
	{
		name: "POST /login of a person with a second factor",
		prepare: func(r *rig) func() answer {
			r.keyed()
			b := r.browser()
			action, form := b.get("/login").form(r.t, "/login")
			form.Set("username", "alice")
			form.Set("password", password)
			return posts(b, action, form)
		},
		done: says("data-passkey"), harmless: signsIn,
	},
	{
		name: "POST /login/second, a code of an app",
		prepare: func(r *rig) func() answer {
			_, secret := r.withApp()
			b, page := r.waits()
			action, form := page.form(r.t, "/login/second")
			form.Set("code", r.appCode(secret))
			return posts(b, action, form)
		},
		done: backTo("/account"), harmless: signsIn,
		again: true, // a code is valid once
	},
	{
		name: "POST /login/second, a passkey",
		prepare: func(r *rig) func() answer {
			_, a := r.keyed()
			b, page := r.waits()
			action, form := b.assertion(a, page)
			return posts(b, action, form)
		},
		done: backTo("/account"), harmless: signsIn,
		again: true, // a challenge is valid once
	},
	{
		name: "POST /login/recovery",
		prepare: func(r *rig) func() answer {
			carl, err := r.as.Users().Find(r.t.Context(), "carl")
			if err != nil {
				carl, err = r.as.Users().Create(r.t.Context(), "carl", password, false)
			}
			must(r.t, err)
			must(r.t, r.store.ReplaceRecoveryCodes(r.t.Context(), carl.ID, nil, [32]byte{}))
			b := r.browser()
			action, form := b.get("/login").form(r.t, "/login")
			form.Set("username", "carl")
			form.Set("password", password)
			b.post(action, form)
			action, form = b.get("/account/recovery").form(r.t, "/account/recovery")
			code := wroteDown.FindString(b.post(action, form).body)
			b = r.browser()
			_, form = b.get("/login").form(r.t, "/login")
			form.Set("username", "carl")
			form.Set("recovery", code)
			return posts(b, "/login/recovery", form)
		},
		done: backTo("/account"), harmless: signsIn,
		again: true, // a code is valid once
	},
	{
		name: "POST /prove, a password",
		prepare: func(r *rig) func() answer {
			b := r.fresh()
			action, form := b.get("/prove").form(r.t, "/prove")
			form.Set("password", password)
			return posts(b, action, form)
		},
		done: backTo("/account"), harmless: signsIn,
		again: true, // it ends its own session
	},
	{
		name: "POST /prove, a code of an app",
		prepare: func(r *rig) func() answer {
			b, secret := r.withApp()
			page := b.get("/prove")
			action, form := page.form(r.t, "/prove")
			form.Del("username")
			form.Set("code", r.appCode(secret))
			return posts(b, action, form)
		},
		done: backTo("/account"), harmless: signsIn,
		again: true, // a code is valid once
	},
}

// PE-06, PE-16: links.
var linkScenarios = []scenario{
	{
		name: "GET /link of a recovery",
		prepare: func(r *rig) func() answer {
			path, b := r.recovery(), r.browser()
			return func() answer { return b.get(path) }
		},
		done: says("Create a passkey"),
	},
	{
		name: "POST /link of a recovery, a password",
		prepare: func(r *rig) func() answer {
			path, b := r.recovery(), r.browser()
			_, form := b.get(path).form(r.t, path)
			form.Del("credential")
			form.Set("password", password)
			return posts(b, path, form)
		},
		done: says("Your password is changed"), harmless: changes,
	},
	{
		name: "POST /link of a recovery, a passkey",
		prepare: func(r *rig) func() answer {
			path, b := r.recovery(), r.browser()
			_, form := b.creation(authkit.New(r.url), b.get(path))
			return posts(b, path, form)
		},
		done: says("Your passkey is set"), harmless: changes,
		again: true, // a challenge is valid once
	},
	{
		name: "POST /link of an invitation",
		prepare: func(r *rig) func() answer {
			path, b := r.invitation(), r.browser()
			_, form := b.get(path).form(r.t, path)
			form.Del("credential")
			form.Set("password", password)
			return posts(b, path, form)
		},
		done: says("Your account is ready"),
	},
	{
		name: "POST /account/notices, a recovery is stopped",
		prepare: func(r *rig) func() answer {
			u := r.bare()
			b := r.signIn()
			_, err := r.people().Recover(r.t.Context(), r.url, u.Name, users.RecoveryOptions{})
			must(r.t, err)
			action, form := b.get("/account").form(r.t, "/account/notices")
			form.Set("act", "stop")
			return posts(b, action, form)
		},
		done: back, harmless: changes,
	},
}

// PE-09, PE-10, PE-17: actions of the account page.
var accountScenarios = []scenario{
	{
		name:    "POST /account/connections, disconnect",
		prepare: connectionAct("disconnect"), done: backTo("/account"),
	},
	{
		name:    "POST /account/connections, pause",
		prepare: connectionAct("pause"), done: backTo("/account"),
	},
	{
		name:    "POST /account/connections, fewer permissions",
		prepare: connectionAct("narrow"), done: backTo("/account"),
	},
	{
		name: "POST /account/sign-ins, the others end",
		prepare: func(r *rig) func() answer {
			b := r.fresh()
			r.signIn()
			action, form := b.get("/account").form(r.t, "/account/sign-ins")
			form.Set("act", "end-others")
			return posts(b, action, form)
		},
		done: backTo("/account"),
	},
	{
		name: "POST /account/stop",
		prepare: func(r *rig) func() answer {
			r.Advance(time.Millisecond) // sign-ins older than the last stop begin no session
			b, _ := r.connected()
			action, form := b.get("/account").form(r.t, "/account/stop")
			form.Set("act", "stop-all")
			action, form = b.post(action, form).form(r.t, "/account/stop")
			form.Set("act", "stop-all")
			return posts(b, action, form)
		},
		done: says("You are signed out"), harmless: changes,
		again: true, // it ends its own session
	},
	{
		name: "POST /account/keys",
		prepare: func(r *rig) func() answer {
			b := r.fresh()
			action, form := b.keyForm()
			return posts(b, action, form)
		},
		done: says(`id="client_secret"`), harmless: changes,
		again: true, // if the response fails, the secret of the credential is lost
	},
	{
		name: "POST /token of a key for a program",
		prepare: func(r *rig) func() answer {
			b := r.fresh()
			action, form := b.keyForm()
			page := b.post(action, form).body
			id, secret := shownIn(page, "client_id"), shownIn(page, "client_secret")
			return func() answer {
				return r.browser().post("/token", url.Values{
					"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret},
				})
			}
		},
		done: hasJSON("access_token"),
	},
}

func connectionAct(act string) func(*rig) func() answer {
	return func(r *rig) func() answer {
		b, form := r.connected()
		form.Set("act", act)
		return posts(b, "/account/connections", form)
	}
}

func shownIn(body, id string) string {
	m := regexp.MustCompile(`id="` + id + `"[^>]*>([^<]*)<`).FindStringSubmatch(body)
	if m == nil {
		return ""
	}
	return m[1]
}

// PE-15: sign-in from another device.
var remoteScenarios = []scenario{
	{
		name: "POST /login/device",
		prepare: func(r *rig) func() answer {
			b := r.browser()
			action, form := b.get("/login").form(r.t, "/login/device")
			return posts(b, action, form)
		},
		done: func(a answer) bool { return back(a) && a.at().Query().Get("ask") != "" },
	},
	{
		name: "GET /login/device while it waits",
		prepare: func(r *rig) func() answer {
			b, at, _, _ := r.asking()
			return func() answer { return b.get(at) }
		},
		done: says(`class="qr"`),
	},
	{
		name: "GET /device with the code of a browser",
		prepare: func(r *rig) func() answer {
			b := r.fresh()
			_, _, code, _ := r.asking()
			return func() answer { return b.get("/device?user_code=" + code) }
		},
		done: says(`name="number"`),
	},
	{
		name: "POST /device/sign-in, approve",
		prepare: func(r *rig) func() answer {
			_, _, code, number := r.asking()
			b, action, form := r.decision(code, number)
			return posts(b, action, form)
		},
		done: says("The browser is signed in"), harmless: changes,
	},
	{
		name: "POST /device/sign-in, deny",
		prepare: func(r *rig) func() answer {
			_, _, code, number := r.asking()
			b, action, form := r.decision(code, number)
			form.Set("decision", "deny")
			return posts(b, action, form)
		},
		done: says("The browser was not signed in"),
	},
	{
		name: "GET /login/device once it is approved",
		prepare: func(r *rig) func() answer {
			b, at, code, number := r.asking()
			person, action, form := r.decision(code, number)
			if got := person.post(action, form); !strings.Contains(got.body, "The browser is signed in") {
				r.t.Fatalf("approve: got %d %.300s", got.status, got.body)
			}
			return func() answer { return b.get(at) }
		},
		done: backTo("/account"), harmless: signsIn,
	},
}
