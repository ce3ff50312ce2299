package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/idptest"
)

// asked counts the authorization requests to a provider.
func asked(up *idptest.Provider) (n int) {
	for _, r := range up.Requests() {
		if r.Path == "/auth" {
			n++
		}
	}
	return n
}

// trips counts the cookies of trips.
func (p *person) trips(t *testing.T, i *installation) (n int) {
	t.Helper()
	for _, name := range p.cookies(t, i.issuer+"/callback/node") {
		if strings.Contains(name, "trip") {
			n++
		}
	}
	return n
}

// TestConfusedDeputy replays the attack of the MCP security best practices, step by step ("Confused
// Deputy Problem", "Attack Description").
func TestConfusedDeputy(t *testing.T) {
	t.Parallel()
	i := plan(t)
	up := i.node("node", idptest.Options{}, nil)
	i.start()
	victim := newPerson(t, idptest.Alice)

	// "A user authenticates normally through the MCP proxy server to access the
	// third-party API. During this flow, the third-party authorization server sets a cookie
	// on the user agent indicating consent for the static client ID."
	honest := newApp(t)
	honestID := i.register(t, "An honest application", honest.redirect())
	victim.visit(t, i.link(honestID, honest.redirect()))
	i.redeem(t, honestID, honest.redirect(), honest.answer(t).Get("code"))
	if len(victim.cookies(t, up.Issuer+"/")) == 0 {
		t.Fatal("the provider set no cookie, so this is not the attack")
	}

	// "An attacker later sends the user a malicious link containing a crafted authorization
	// request which contains a malicious redirect URI along with a new dynamically
	// registered client ID."
	evil := newApp(t)
	evilID := i.register(t, "An honest application", evil.redirect())
	attack := func(t *testing.T) {
		t.Helper()
		for name, change := range map[string][]string{
			"as it is": nil, "past the chooser": {"provider", "node"},
			"with a hint":                  {"login_hint", idptest.Alice.Email},
			"the provider spelt otherwise": {"provider", "NODE"}, "for another resource": {"resource", i.mcpURL + "/"},
			"no less fresh": {"max_age", "100000"},
		} {
			before := asked(up)
			shown := victim.glance(t, i.link(evilID, evil.redirect(), change...))
			if asked(up) != before || victim.trips(t, i) != 0 {
				t.Errorf("%s: the browser went to the provider, or got a state", name)
			}
			if shown.Back || !shown.Approve && !strings.Contains(strings.ToLower(shown.Text), "error") {
				t.Errorf("%s: the browser shows %s:\n%s", name, shown.URL, shown.Text)
			}
			if shown.Approve && !strings.Contains(shown.Text, hostOf(evil.URL)) {
				t.Errorf("%s: the page hides where the answer goes:\n%s", name, shown.Text)
			}
			evil.quiet(t)
		}
	}
	// "When the user clicks the link, their browser still has the consent cookie from the
	// previous legitimate request. The third-party authorization server detects the cookie
	// and skips the consent screen."
	t.Run("SP-01 AS-222 the victim is signed in here: our page, and nothing silent", attack)
	t.Run("SP-01 without a page there is no code", func(t *testing.T) {
		if shown := victim.glance(t,
			i.link(evilID, evil.redirect(), "prompt", "none")); hostOf(shown.URL) != hostOf(i.issuer) {
			t.Errorf("the browser shows %s:\n%s", shown.URL, shown.Text)
		}
		evil.quiet(t) // no user has agreed to inform it
	})
	t.Run("SP-01 SP-04 the attacker's page approves in the victim's name", func(t *testing.T) {
		forgery(t, i, up, victim, evil, evilID)
	})
	t.Run("SP-01 AS-222 the victim is signed in at the provider only", func(t *testing.T) {
		victim.glance(t, i.issuer+"/")
		if _, err := victim.press("form[action$='/logout'] button"); err != nil {
			t.Fatal(err)
		}
		attack(t)
		forgery(t, i, up, victim, evil, evilID)
	})
	t.Run("SP-03 AS-224 the honest client's id with another redirect URI is refused here", func(t *testing.T) {
		for _, redirect := range []string{
			evil.URL + "/steal", honest.redirect() + "/..", honest.redirect() + "?x=1",
			strings.Replace(honest.redirect(), "/callback", "/Callback", 1),
			// only the port may differ (RFC 8252 §7.3)
			i.callback("node"), strings.Replace(honest.redirect(), "127.0.0.1", "127.0.0.2", 1),
			honest.redirect() + "@" + hostOf(evil.URL),
		} {
			before := asked(up)
			if shown := victim.glance(t, i.link(honestID, redirect, "provider", "node")); shown.Approve ||
				shown.Back || hostOf(shown.URL) != hostOf(i.issuer) || asked(up) != before {
				t.Errorf("%s: the browser shows %s:\n%s", redirect, shown.URL, shown.Text)
			}
		}
		evil.quiet(t)
		honest.quiet(t)
	})
	t.Run("the victim says no, and the attacker gets that", func(t *testing.T) {
		victim.refuses = "mcp-authd"
		before := asked(up)
		victim.visit(t, i.link(evilID, evil.redirect()))
		if q := evil.answer(t); q.Get("error") != "access_denied" || q.Has("code") || asked(up) != before {
			t.Errorf("got %v", q)
		}
	})
}

var stepField = regexp.MustCompile(`name="step" value="([^"]*)"`)

// forgery: the attacker opens the page in another browser, and the attacker's page posts its form
// values from the victim's browser.
func forgery(t *testing.T, i *installation, up *idptest.Provider, victim *person, evil *app, evilID string) {
	t.Helper()
	resp, err := http.Get(i.link(evilID, evil.redirect()))
	if err != nil {
		t.Fatal(err)
	}
	var body strings.Builder
	_ = resp.Write(&body)
	resp.Body.Close()
	step := stepField.FindStringSubmatch(body.String())
	if step == nil {
		t.Fatalf("the attacker sees no form:\n%s", body.String())
	}
	for _, path := range []string{"/consent", "/depart", "/login"} {
		page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w,
				`<!doctype html><form method=post action="%s"><input name=step value="%s"><input name=decision value=approve><button>Win a prize</button></form>`,
				i.issuer+path, step[1])
		}))
		before := asked(up)
		victim.glance(t, page.URL)
		shown, err := victim.press("button")
		if err != nil {
			t.Fatal(err)
		}
		if asked(up) != before || shown.Back || victim.trips(t, i) != 0 {
			t.Errorf("%s: the browser shows %s", path, shown.URL)
		}
		page.Close()
	}
	evil.quiet(t)
}

// TestLoginCSRF: the attacker signs in, and makes the victim's browser finish the sign-in. The
// attacker could then see the victim's actions.
func TestLoginCSRF(t *testing.T) {
	t.Parallel()
	i := plan(t)
	up := i.node("node", idptest.Options{}, nil)
	i.start()
	a, attacker, victim := newApp(t), idptest.NewPerson(idptest.Bob), newPerson(t, idptest.Alice)
	id := i.register(t, "An application", a.redirect())
	callback, err := attacker.Visit(i.link(id, a.redirect()), i.callback("node"))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(t *testing.T, link string) {
		t.Helper()
		before := up.TokenCalls("authorization_code")
		shown := victim.glance(t, link)
		if shown.Back || hostOf(shown.URL) != hostOf(i.issuer) || up.TokenCalls("authorization_code") != before {
			t.Errorf("the browser shows %s:\n%s", shown.URL, shown.Text)
		}
		a.quiet(t)
		if home := victim.glance(t, i.issuer+"/"); strings.Contains(home.Text, "Signed in as") {
			t.Errorf("the victim is signed in: %s", home.Text)
		}
	}
	t.Run("AS-220 SP-04 a callback of another person's browser signs no person in",
		func(t *testing.T) { refused(t, callback.String()) })
	t.Run("AS-220 nor with a trip of the victim's own under way", func(t *testing.T) {
		victim.glance(t, i.link(id, a.redirect()))
		if _, err := victim.press("button[value=approve]"); err != nil || victim.trips(t, i) != 1 {
			t.Fatalf("%d trips, %v", victim.trips(t, i), err)
		}
		refused(t, callback.String())
	})
	t.Run("AS-220 state missing, made up, or doubled", func(t *testing.T) {
		for _, state := range [][]string{
			nil, {""}, {"made-up"}, {callback.Query().Get("state"), callback.Query().Get("state")},
		} {
			q := callback.Query()
			q["state"] = state
			refused(t, i.callback("node")+"?"+q.Encode())
		}
	})
	t.Run("AS-220 it burned nothing: the browser that left comes back, once", func(t *testing.T) {
		back, err := attacker.Visit(callback.String(), a.URL)
		if err != nil || back.Query().Get("code") == "" {
			t.Fatalf("got %v, %v", back, err)
		}
		if again, err := attacker.Visit(callback.String(), a.URL); err == nil && again.Query().Has("code") {
			t.Errorf("a second time: %v", again)
		}
	})
}

// rogue is a provider that the operator trusts for its own users, and that tries to get access to
// another provider's users (RFC 9700 §4.4).
type rogue struct {
	*httptest.Server
	honest *idptest.Provider
	other  string // redirect URI of the honest provider
	own    string // its redirect URI

	mu    sync.Mutex // guards the fields below
	trick string
	got   []url.Values // requests to its token endpoint
}

func newRogue(t *testing.T) *rogue {
	t.Helper()
	r := &rogue{}
	mux := http.NewServeMux()
	r.Server = httptest.NewServer(mux)
	t.Cleanup(r.Close)
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": r.URL, "authorization_endpoint": r.URL + "/auth", "token_endpoint": r.URL + "/token",
			"jwks_uri":                 r.honest.Issuer + "/jwks",
			"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
			"id_token_signing_alg_values_supported":          []string{"RS256"},
			"authorization_response_iss_parameter_supported": true,
		})
	})
	mux.HandleFunc("GET /auth", r.authorize)
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, req *http.Request) {
		_ = req.ParseForm()
		r.mu.Lock()
		if !idptest.Examines(req.PostForm) {
			r.got = append(r.got, req.PostForm)
		}
		r.mu.Unlock()
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
	})
	return r
}

func (r *rogue) authorize(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	r.mu.Lock()
	trick := r.trick
	r.mu.Unlock()
	switch trick {
	case "send the browser on to the honest provider, with our state, challenge and nonce":
		q.Set("client_id", r.honest.ClientID)
		q.Set("redirect_uri", r.other)
		http.Redirect(w, req, r.honest.Issuer+"/auth?"+q.Encode(), http.StatusFound)
	case "answer in the honest one's name":
		http.Redirect(w, req,
			r.own+"?"+url.Values{"code": {"x"}, "state": {q.Get("state")}, "iss": {r.honest.Issuer}}.Encode(),
			http.StatusFound)
	case "answer without iss, against its metadata":
		http.Redirect(w, req, r.own+"?"+url.Values{"code": {"x"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	case "answer at the honest one's callback":
		http.Redirect(w, req,
			r.other+"?"+url.Values{"code": {"x"}, "state": {q.Get("state")}, "iss": {r.honest.Issuer}}.Encode(),
			http.StatusFound)
	}
}

// TestMixUp tests two providers, one of them rogue.
func TestMixUp(t *testing.T) {
	t.Parallel()
	i := plan(t)
	honest := i.node("node", idptest.Options{}, nil)
	r := newRogue(t)
	r.honest, r.own, r.other = honest, i.callback("rogue"), i.callback("node")
	i.connect("rogue",
		&idptest.Provider{
			Kind: "Rogue", Issuer: r.URL, ClientID: "at-the-rogue",
			ClientSecret: "a secret of at least 32 characters, of the rogue",
		})
	i.start()
	a, alice := newApp(t), newPerson(t, idptest.Alice)
	id := i.register(t, "An application", a.redirect())
	alice.visit(t, i.link(id, a.redirect(), "provider", "node")) // so that the honest provider knows her
	a.answer(t)
	alice.glance(t, i.issuer+"/")
	if _, err := alice.press("form[action$='/logout'] button"); err != nil {
		t.Fatal(err)
	}
	calls := honest.TokenCalls("authorization_code")
	for _, trick := range []string{
		"send the browser on to the honest provider, with our state, challenge and nonce",
		"answer in the honest one's name",
		"answer without iss, against its metadata", "answer at the honest one's callback",
	} {
		t.Run("AS-225 "+trick, func(t *testing.T) {
			r.mu.Lock()
			r.trick = trick
			r.mu.Unlock()
			shown := alice.see(t, i.link(id, a.redirect(), "provider", "rogue"))
			if shown.Back { // the application may get an error
				if q := a.answer(t); q.Has("code") || q.Get("error") == "" {
					t.Errorf("the application got %v", q)
				}
			} else {
				a.quiet(t)
			}
			r.mu.Lock()
			got := slices.Clone(r.got)
			r.mu.Unlock()
			if len(got) != 0 || honest.TokenCalls("authorization_code") != calls {
				t.Errorf("the rogue was sent %v, and the honest one %d codes, before %d", got,
					honest.TokenCalls("authorization_code"), calls)
			}
			if home := alice.glance(t, i.issuer+"/"); strings.Contains(home.Text, "Signed in as") {
				t.Errorf("a person is signed in: %s", home.Text)
			}
		})
	}
}
