package faults

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
)

// scenario is one request to one endpoint.
type scenario struct {
	name string
	// prepare sets up the request with a working store, and returns the request.
	prepare func(*rig) func() answer
	// done reports whether the response is a real success.
	done func(answer) bool
	// harmless maps the verbs whose failure may be ignored to the reasons.
	harmless map[string]string
	// again means that the request cannot be repeated unchanged, such as a one-time form.
	again bool
}

func status(want int) func(answer) bool { return func(a answer) bool { return a.status == want } }

func hasJSON(name string) func(answer) bool {
	return func(a answer) bool { return a.status == http.StatusOK && a.json(name) != "" }
}

func says(text string) func(answer) bool {
	return func(a answer) bool { return a.status == http.StatusOK && strings.Contains(a.body, text) }
}

func redirectsWith(parameter string) func(answer) bool {
	return func(a answer) bool { return a.status == http.StatusSeeOther && a.at().Query().Get(parameter) != "" }
}

// unavailable reports whether a response is a temporary failure: 503 with Retry-After (RFC 9110
// §10.2.3), or temporarily_unavailable at the redirect URI (RFC 6749 §4.1.2.1).
func unavailable(a answer) bool {
	if a.status == http.StatusSeeOther {
		return a.at().Query().Get("error") == "temporarily_unavailable"
	}
	return a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != ""
}

// remembered maps verbs that pages and requests can do without, because their data are cached. The
// data change rarely, decide about no user, and are public or our own.
var remembered = map[string]string{
	"ListResources": "the resources known before go on", "Keys": "the signing keys known before go on",
	"HasPasswords": "the password form is shown, and lets no person in by itself",
}

// passedOver reports whether a request may succeed although a verb fails.
func (s scenario) passedOver(verb string) bool {
	return s.harmless[verb] != "" || remembered[verb] != ""
}

const (
	notes     = "it notes when something was used, and holds nothing up"
	named     = "it gives the client of an event its name, and what needs the client asks for it again"
	told      = "the change has happened, and is in the log; an event says whose notice was lost"
	forgetful = "failures that stay counted make the next sign-in slower, and let no person in"
)

func endpoints() []scenario {
	return slices.Concat(authorizeScenarios, tokenScenarios, deviceScenarios, clientScenarios, providerScenarios,
		wayScenarios, linkScenarios, accountScenarios, remoteScenarios)
}

// TestEveryCallFails: Mutation 10. For each endpoint, it fails the first call of the store, then
// the second, and so on until the request makes fewer calls. Each failure must be reported, and the
// same request must succeed afterwards.
func TestEveryCallFails(t *testing.T) {
	for _, s := range endpoints() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for n := range 60 {
				request := s.prepare(r)
				r.Advance(11 * time.Second) // short caches expire, so the store is read again
				r.store.Arm(n)
				got := request()
				failed, verbs := r.store.Disarm()
				if failed == "" {
					if !s.done(got) {
						t.Fatalf("without a failure: got %d %s %.400s", got.status, got.at(), got.body)
					}
					if n == 0 {
						t.Fatal("the request does not touch the store, so this test shows nothing")
					}
					t.Logf("calls: %s", strings.Join(verbs, ", "))
					return
				}
				if s.passedOver(failed) && s.done(got) {
					continue
				}
				if !unavailable(got) {
					t.Errorf("%s fails (call %d of %v): got %d %s %.400s, want 503 with Retry-After", failed, n+1,
						verbs, got.status, got.at(), got.body)
				}
				if s.again {
					continue
				}
				if got := request(); !s.done(got) {
					t.Errorf("%s had failed, and the same request again: got %d %s %.400s, want success", failed,
						got.status, got.at(), got.body)
				}
			}
			t.Fatal("more than 60 calls for one request")
		})
	}
}

// TestAnswersLost: the store has executed a call but its response is lost. The client must be told
// neither success nor refusal.
func TestAnswersLost(t *testing.T) {
	lane.Long(t, "TestEveryCallFails fails the same calls")
	for _, s := range endpoints() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for n := range 60 {
				request := s.prepare(r)
				r.Advance(11 * time.Second)
				r.store.ArmLost(n)
				got := request()
				failed, _ := r.store.Disarm()
				if failed == "" {
					return
				}
				if s.passedOver(failed) && s.done(got) {
					continue
				}
				if !unavailable(got) {
					t.Errorf("the answer of %s is lost: got %d %s %.400s, want 503 with Retry-After", failed,
						got.status, got.at(), got.body)
				}
			}
		})
	}
}

var authorizeScenarios = []scenario{
	{
		name: "GET /authorize of a stranger shows the login page",
		prepare: func(r *rig) func() answer {
			b := r.browser()
			return func() answer { return b.get(link()) }
		},
		done: says(`name="password"`),
	},
	{
		name: "GET /authorize of a person who has signed in shows the consent page",
		prepare: func(r *rig) func() answer {
			b := r.signIn()
			return func() answer { return b.get(link("scope", "mcp notes:write", "prompt", "consent")) }
		},
		done: says(`value="approve"`),
	},
	{
		name: "GET /authorize of what was approved before answers with a code",
		prepare: func(r *rig) func() answer {
			r.code()
			b := r.signIn()
			return func() answer { return b.get(link()) }
		},
		done: redirectsWith("code"),
	},
	{
		name: "GET /authorize with prompt=none and no person signed in",
		prepare: func(r *rig) func() answer {
			b := r.browser()
			return func() answer { return b.get(link("prompt", "none")) }
		},
		done: func(a answer) bool { return a.at().Query().Get("error") == "login_required" },
	},
	{
		name: "POST /login",
		prepare: func(r *rig) func() answer {
			b := r.browser()
			action, form := b.get(link()).form(r.t, "/login")
			form.Set("username", "alice")
			form.Set("password", password)
			return func() answer { return b.post(action, form) }
		},
		done: status(http.StatusSeeOther),
		harmless: map[string]string{
			"TouchLogin": notes, "ClearFailures": forgetful, "Client": named,
			"EndSession": "the session of before ends by itself",
		},
	},
	{
		name: "POST /login with a wrong password",
		prepare: func(r *rig) func() answer {
			r.Advance(24 * time.Hour) // earlier failures have expired and do not delay this one
			b := r.browser()
			action, form := b.get(link()).form(r.t, "/login")
			form.Set("username", "alice")
			form.Set("password", "not this one")
			return func() answer { return b.post(action, form) }
		},
		done: func(a answer) bool {
			return a.status == http.StatusUnauthorized || a.status == http.StatusTooManyRequests ||
				says(`name="password"`)(a)
		},
		harmless: map[string]string{"Client": named},
	},
	{
		name: "POST /consent, approve",
		prepare: func(r *rig) func() answer {
			b := r.signIn()
			action, form := b.get(link("prompt", "consent")).form(r.t, "/consent")
			form.Set("decision", "approve")
			return func() answer { return b.post(action, form) }
		},
		done: redirectsWith("code"),
	},
	{
		name: "POST /consent, deny",
		prepare: func(r *rig) func() answer {
			b := r.signIn()
			action, form := b.get(link("prompt", "consent")).form(r.t, "/consent")
			form.Set("decision", "deny")
			return func() answer { return b.post(action, form) }
		},
		done: func(a answer) bool { return a.at().Query().Get("error") == "access_denied" },
	},
	{
		name: "POST /logout",
		prepare: func(r *rig) func() answer {
			b := r.signIn()
			action, form := b.get("/").form(r.t, "/logout")
			return func() answer { return b.post(action, form) }
		},
		done:  func(a answer) bool { return a.status == http.StatusSeeOther || a.status == http.StatusOK },
		again: true,
	},
	{
		name: "GET / of a person who has signed in",
		prepare: func(r *rig) func() answer {
			b := r.signIn()
			return func() answer { return b.get("/") }
		},
		done: says("alice"),
	},
}

var tokenScenarios = []scenario{
	{
		name: "POST /token, authorization code",
		prepare: func(r *rig) func() answer {
			b, form := r.browser(), redeem(r.code())
			return func() answer { return b.post("/token", form) }
		},
		done: hasJSON("access_token"),
	},
	{
		name: "POST /token, refresh token",
		prepare: func(r *rig) func() answer {
			_, refresh := r.tokens()
			b, form := r.browser(),
				url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "client_id": {"app"}}
			return func() answer { return b.post("/token", form) }
		},
		done: hasJSON("refresh_token"),
	},
	{
		name: "POST /token, client credentials",
		prepare: func(r *rig) func() answer {
			b, form := r.browser(), url.Values{"grant_type": {"client_credentials"}, "resource": {resource}}
			return func() answer { return b.post("/token", form, "Authorization", basic("robot")) }
		},
		done: hasJSON("access_token"),
	},
	{
		name: "POST /token, wrong client secret",
		prepare: func(r *rig) func() answer {
			b, form := r.browser(),
				url.Values{"grant_type": {"client_credentials"}, "client_id": {"robot"},
					"client_secret": {"not this one"}}
			return func() answer { return b.post("/token", form) }
		},
		done: func(a answer) bool { return a.json("error") == "invalid_client" },
	},
	{
		name: "POST /introspect, access token",
		prepare: func(r *rig) func() answer {
			access, _ := r.tokens()
			b := r.browser()
			return func() answer {
				return b.post("/introspect", url.Values{"token": {access}}, "Authorization", basic("server"))
			}
		},
		done: says(`"active":true`),
	},
	{
		name: "POST /introspect, revoked",
		prepare: func(r *rig) func() answer {
			access, refresh := r.tokens()
			b := r.browser()
			b.post("/revoke", url.Values{"token": {refresh}, "client_id": {"app"}})
			return func() answer {
				return b.post("/introspect", url.Values{"token": {access}}, "Authorization", basic("server"))
			}
		},
		done: says(`"active":false`),
	},
	{
		name: "POST /revoke, refresh token (RFC 7009 §2.2.1)",
		prepare: func(r *rig) func() answer {
			_, refresh := r.tokens()
			b := r.browser()
			return func() answer { return b.post("/revoke", url.Values{"token": {refresh}, "client_id": {"app"}}) }
		},
		done: status(http.StatusOK),
	},
	{
		name: "POST /revoke, access token of a grant",
		prepare: func(r *rig) func() answer {
			access, _ := r.tokens()
			b := r.browser()
			return func() answer { return b.post("/revoke", url.Values{"token": {access}, "client_id": {"app"}}) }
		},
		done: status(http.StatusOK),
	},
	{
		name: "POST /revoke, access token without a grant",
		prepare: func(r *rig) func() answer {
			b := r.browser()
			access := b.post("/token", url.Values{"grant_type": {"client_credentials"}}, "Authorization",
				basic("robot")).json("access_token")
			return func() answer {
				return b.post("/revoke", url.Values{"token": {access}}, "Authorization", basic("robot"))
			}
		},
		done: status(http.StatusOK),
	},
	{
		name: "GET /status/0",
		prepare: func(r *rig) func() answer {
			r.tokens()
			r.Advance(time.Hour)
			b := r.browser()
			return func() answer { return b.send(http.MethodGet, "/status/0", "") }
		},
		done: status(http.StatusOK),
	},
}

var clientScenarios = []scenario{
	{
		name: "POST /register, and a tombstone that cannot be read at the first use",
		prepare: func(r *rig) func() answer {
			b := r.browser()
			id := r.register(b).json("client_id")
			return func() answer { return b.get(link("client_id", id)) }
		},
		done: says(`name="password"`),
	},
	{
		name: "GET of a registration",
		prepare: func(r *rig) func() answer {
			b := r.browser()
			made := r.register(b)
			return func() answer {
				return b.send(http.MethodGet, made.json("registration_client_uri"), "", "Authorization",
					"Bearer "+made.json("registration_access_token"))
			}
		},
		done: hasJSON("client_id"),
	},
	{
		name: "PUT of a registration",
		prepare: func(r *rig) func() answer {
			b := r.browser()
			made := r.register(b)
			body := `{"client_id":"` + made.json("client_id") + `","client_name":"Another","redirect_uris":["` +
				redirect + `"],"token_endpoint_auth_method":"none"}`
			return func() answer {
				return b.postJSON(http.MethodPut, made.json("registration_client_uri"), body, "Authorization",
					"Bearer "+made.json("registration_access_token"))
			}
		},
		done: hasJSON("client_id"),
	},
	{
		name: "DELETE of a registration",
		prepare: func(r *rig) func() answer {
			b := r.browser()
			made := r.register(b)
			return func() answer {
				return b.send(http.MethodDelete, made.json("registration_client_uri"), "", "Authorization",
					"Bearer "+made.json("registration_access_token"))
			}
		},
		done:  status(http.StatusNoContent),
		again: false,
	},
}

func (r *rig) register(b *browser) answer {
	r.t.Helper()
	got := b.postJSON(http.MethodPost, "/register",
		`{"client_name":"Registered","redirect_uris":["`+redirect+`"],"token_endpoint_auth_method":"none"}`)
	if got.status != http.StatusCreated {
		r.t.Fatalf("register: got %d %s", got.status, got.body)
	}
	return got
}

// TestSetup tests the creation of the first administrator.
func TestSetup(t *testing.T) {
	r := newRig(t)
	users, err := r.store.ListUsers(t.Context(), "", 10)
	must(t, err)
	for _, u := range users {
		must(t, r.store.DeleteUser(t.Context(), u.ID, r.Now()))
	}
	made, err := r.as.SetupLink(t.Context())
	must(t, err)
	at, err := url.Parse(made)
	must(t, err)
	b := r.browser()
	for n := range 20 {
		action, form := b.get("/setup").form(t, "/setup")
		form.Set("token", strings.TrimPrefix(at.Fragment, "token="))
		form.Set("username", "root")
		form.Set("password", password)
		r.store.Arm(n)
		got := b.post(action, form)
		failed, verbs := r.store.Disarm()
		if failed == "" {
			if got.status >= 400 || n == 0 {
				t.Errorf("got %d after %v: %.300s", got.status, verbs, got.body)
			}
			return
		}
		if !unavailable(got) {
			t.Errorf("%s fails: got %d %.300s, want 503", failed, got.status, got.body)
		}
	}
}
