package faults

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// depart returns a browser that has approved on the departure page, and its redirect.
func (r *rig) depart() (*browser, answer) {
	r.t.Helper()
	b := r.browser()
	action, form := b.get(link("provider", "corp")).form(r.t, "/consent")
	form.Set("decision", "approve")
	return b, b.post(action, form)
}

// returning returns the URL for coming back from the provider.
func (r *rig) returning(sent answer) string {
	r.t.Helper()
	back, err := r.up.Visit(sent.header.Get("Location"))
	must(r.t, err)
	return back.String()
}

// borrowed returns the tokens of a user who has signed in at the provider.
func (r *rig) borrowed() (access, refresh string) {
	r.t.Helper()
	b, sent := r.depart()
	action, form := b.get(r.returning(sent)).form(r.t, "/consent")
	form.Set("decision", "approve")
	got := b.post(action, form)
	code := got.at().Query().Get("code")
	if code == "" {
		r.t.Fatalf("the provider's person: got %d %v %.300s", got.status, got.header, got.body)
	}
	out := b.post("/token", redeem(code))
	return out.json("access_token"), out.json("refresh_token")
}

// linking returns alice's browser after a sign-in at the provider with an unlinked account, at the
// page that asks whether the account is hers.
func (r *rig) linking() (*browser, answer) {
	r.t.Helper()
	// Undo the link of an earlier round.
	users, err := r.store.ListUsers(r.t.Context(), "", 10)
	must(r.t, err)
	for _, u := range users {
		all, err := r.store.Identities(r.t.Context(), u.ID)
		must(r.t, err)
		for _, i := range all {
			_, err := r.store.Unlink(r.t.Context(), storage.Untie{
				UserID: u.ID, Connector: i.Connector, Subject: i.Subject, Reason: "unlinked", Now: r.Now(),
				By: storage.Admission{Passwords: true, Providers: []string{i.Connector}},
			})
			must(r.t, err)
		}
	}
	b := r.signIn()
	action, form := b.get("/account").form(r.t, "/depart")
	return b, b.get(r.returning(b.post(action, form)))
}

const triedAgain = "it is tried again, because what a provider has answered exists nowhere else"

var providerScenarios = []scenario{
	{
		name: "POST /consent of the departure page",
		prepare: func(r *rig) func() answer {
			b := r.browser()
			action, form := b.get(link("provider", "corp")).form(r.t, "/consent")
			form.Set("decision", "approve")
			return func() answer { return b.post(action, form) }
		},
		done: func(a answer) bool {
			return a.status == http.StatusSeeOther && strings.Contains(a.at().Path, "/authorize")
		},
	},
	{
		// A user of the provider may not have notes:write. A scope that a rule removes stays
		// removed if the rule cannot be read.
		name: "POST /consent for scopes that a rule narrows",
		prepare: func(r *rig) func() answer {
			b, sent := r.depart()
			b.get(r.returning(sent))
			action, form := b.get(link("scope", "mcp notes:write", "prompt", "consent")).form(r.t, "/consent")
			form.Set("decision", "approve")
			return func() answer {
				got := b.post(action, form)
				if code := got.at().Query().Get("code"); code != "" {
					r.store.Pause(func() {
						if scope := b.post("/token", redeem(code)).json("scope"); strings.Contains(scope,
							"notes:write") {
							r.t.Errorf("granted %q", scope)
						}
					})
				}
				return got
			}
		},
		done:     redirectsWith("code"),
		harmless: map[string]string{"SaveUpstream": triedAgain},
	},
	{
		name: "GET /callback/corp",
		prepare: func(r *rig) func() answer {
			b, sent := r.depart()
			back := r.returning(sent)
			return func() answer { return b.get(back) }
		},
		done: func(a answer) bool {
			return a.status == http.StatusOK && strings.Contains(a.body, "Continue as ")
		},
		again: true, // the departure is valid once
	},
	{
		name: "POST /consent of the page that names the account",
		prepare: func(r *rig) func() answer {
			b, sent := r.depart()
			action, form := b.get(r.returning(sent)).form(r.t, "/consent")
			form.Set("decision", "approve")
			return func() answer { return b.post(action, form) }
		},
		done:     redirectsWith("code"),
		harmless: map[string]string{"SaveUpstream": triedAgain},
	},
	{
		name: "POST /token, refresh token that rests on a session at the provider",
		prepare: func(r *rig) func() answer {
			_, refresh := r.borrowed()
			b, form := r.browser(),
				url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "client_id": {"app"}}
			return func() answer { return b.post("/token", form) }
		},
		done:     hasJSON("refresh_token"),
		harmless: map[string]string{"SaveUpstream": triedAgain},
	},
	{
		name: "POST /token, token exchange",
		prepare: func(r *rig) func() answer {
			access, _ := r.borrowed()
			b, form := r.browser(), url.Values{
				"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {access},
				"subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"}, "scope": {"openid"},
				"audience": {"corp"},
			}
			return func() answer { return b.post("/token", form, "Authorization", basic("server")) }
		},
		done:     hasJSON("access_token"),
		harmless: map[string]string{"SaveUpstream": triedAgain},
	},
	{
		name: "POST /introspect of a token that rests on a session at the provider",
		prepare: func(r *rig) func() answer {
			access, _ := r.borrowed()
			b := r.browser()
			return func() answer {
				return b.post("/introspect", url.Values{"token": {access}}, "Authorization", basic("server"))
			}
		},
		done:     says(`"active":true`),
		harmless: map[string]string{"SaveUpstream": triedAgain},
	},
	{
		name: "POST /claim, approve",
		prepare: func(r *rig) func() answer {
			b, page := r.linking()
			action, form := page.form(r.t, "/claim")
			form.Set("decision", "approve")
			return func() answer { return b.post(action, form) }
		},
		done:     status(http.StatusSeeOther),
		again:    true, // the question is answered once
		harmless: map[string]string{"PutNotice": told},
	},
	{
		name: "POST /claim, deny",
		prepare: func(r *rig) func() answer {
			b, page := r.linking()
			action, form := page.form(r.t, "/claim")
			form.Set("decision", "deny")
			return func() answer { return b.post(action, form) }
		},
		done:  status(http.StatusSeeOther),
		again: true,
	},
	{
		name: "POST /disconnect",
		prepare: func(r *rig) func() answer {
			b, page := r.linking()
			action, form := page.form(r.t, "/claim")
			form.Set("decision", "approve")
			b.post(action, form)
			action, form = b.get("/account").form(r.t, "/disconnect")
			return func() answer { return b.post(action, form) }
		},
		done:     status(http.StatusSeeOther),
		again:    true,
		harmless: map[string]string{"PutNotice": told},
	},
}
