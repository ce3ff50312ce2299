package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// fake is an MCP server and its authorization server, which is as strict as the specification
// permits. Each test changes one behaviour.
type fake struct {
	*httptest.Server
	t *testing.T

	mu            sync.Mutex // guards the fields below
	issuer        string
	needs         string // challenge of a 403 or 401 that the token must satisfy, by scope or proof
	satisfied     func(grant) bool
	mute          bool // every token is refused
	date          time.Duration
	dpop          bool
	back          func(url.Values) // changes the authorization response
	grants        []*grant
	codes         map[string]*grant
	access        map[string]*grant
	refresh       map[string]*grant
	registrations int
	refreshes     int
	tokens        int
	authorized    []url.Values
	revoked       []string
}

// grant is what one sign-in gave.
type grant struct {
	request url.Values
	ended   bool
	key     string
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, codes: map[string]*grant{}, access: map[string]*grant{}, refresh: map[string]*grant{}}
	mux := http.NewServeMux()
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	f.issuer = f.URL
	mux.HandleFunc("/mcp", f.locked(f.mcp))
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", f.locked(f.resource))
	for _, tenant := range []string{"", "/two"} {
		mux.HandleFunc("/.well-known/oauth-authorization-server"+tenant, f.locked(f.metadata(f.URL+tenant)))
	}
	mux.HandleFunc("POST /register", f.locked(f.register))
	mux.HandleFunc("GET /authorize", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /token", f.locked(f.token))
	mux.HandleFunc("POST /two/token", f.locked(f.token))
	mux.HandleFunc("POST /revoke", f.locked(f.revoke))
	mux.HandleFunc("POST /device", f.locked(f.device))
	return f
}

func (f *fake) locked(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		h(w, r)
	}
}

func say(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (f *fake) resource(w http.ResponseWriter, _ *http.Request) {
	say(w, 200, map[string]any{
		"resource": f.URL + "/mcp", "authorization_servers": []string{f.issuer},
		"dpop_bound_access_tokens_required": f.dpop,
	})
}

func (f *fake) metadata(issuer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		say(w, 200, map[string]any{
			"issuer": issuer, "authorization_endpoint": f.URL + "/authorize", "token_endpoint": issuer + "/token",
			"registration_endpoint": f.URL + "/register", "revocation_endpoint": f.URL + "/revoke",
			"device_authorization_endpoint":                  f.URL + "/device",
			"code_challenge_methods_supported":               []string{"S256"},
			"authorization_response_iss_parameter_supported": true,
		})
	}
}

func (f *fake) register(w http.ResponseWriter, _ *http.Request) {
	f.registrations++
	say(w, 201, map[string]string{"client_id": fmt.Sprintf("client-%d", f.registrations)})
}

func (f *fake) device(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	f.authorized = append(f.authorized, r.PostForm)
	f.codes["device"] = &grant{request: r.PostForm}
	say(w, 200, map[string]any{
		"device_code": "device", "user_code": "BCDF-GHJK", "verification_uri": f.URL + "/activate", "expires_in": 600,
		"interval": 1,
	})
}

// approve plays the user: it returns the URL that the browser opens after an authorization request.
func (f *fake) approve(raw string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	u, err := url.Parse(raw)
	if err != nil {
		f.t.Error(err)
		return ""
	}
	q := u.Query()
	if q.Get("resource") != f.URL+"/mcp" || q.Get("code_challenge_method") != oauth.S256 {
		f.t.Errorf("CL-17: the request is %v", q)
	}
	f.authorized = append(f.authorized, q)
	code := fmt.Sprintf("code-%d", len(f.authorized))
	f.codes[code] = &grant{request: q}
	answer := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {f.issuer}}
	if f.back != nil {
		f.back(answer)
	}
	return q.Get("redirect_uri") + "?" + answer.Encode()
}

func (f *fake) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	refuse := func() { say(w, 400, map[string]string{"error": "invalid_grant"}) }
	var g *grant
	switch form := r.PostForm; form.Get("grant_type") {
	case oauth.GrantCode:
		g = f.codes[form.Get("code")]
		delete(f.codes, form.Get("code"))
		if g == nil || oauth.ChallengeS256(form.Get("code_verifier")) != g.request.Get("code_challenge") ||
			form.Get("redirect_uri") != g.request.Get("redirect_uri") ||
			form.Get("client_id") != g.request.Get("client_id") || form.Get("resource") != f.URL+"/mcp" {
			refuse()
			return
		}
		for _, old := range f.grants { // one grant for each client
			old.ended = old.ended || old.request.Get("client_id") == form.Get("client_id")
		}
		f.grants = append(f.grants, g)
	case oauth.GrantDeviceCode:
		if g = f.codes["device"]; g == nil {
			refuse()
			return
		}
		f.grants = append(f.grants, g)
	case oauth.GrantRefresh:
		f.refreshes++
		g = f.refresh[form.Get("refresh_token")]
		if g == nil || g.ended {
			refuse()
			return
		}
		if f.refresh["spent "+form.Get("refresh_token")] != nil { // no grace for a second use
			g.ended = true
			refuse()
			return
		}
		f.refresh["spent "+form.Get("refresh_token")] = g
	}
	kind := "Bearer"
	if proof := r.Header.Get("DPoP"); proof != "" {
		parsed, err := dpop.Parse(proof)
		if err != nil {
			f.t.Error(err)
			return
		}
		print := parsed.Thumbprint()
		if g.key != "" && g.key != print {
			refuse()
			return
		}
		kind, g.key = "DPoP", print
	}
	f.tokens++
	access, refresh := fmt.Sprintf("access-%d", f.tokens), fmt.Sprintf("refresh-%d", f.tokens)
	f.access[access], f.refresh[refresh] = g, g
	rest, _ := oauth.ParseScopes(g.request.Get("scope")).WithoutClearances()
	say(w, 200, map[string]any{
		"access_token": access, "token_type": kind, "expires_in": 900, "refresh_token": refresh, "scope": rest.String(),
	})
}

func (f *fake) revoke(w http.ResponseWriter, r *http.Request) {
	token := r.PostFormValue("token")
	f.revoked = append(f.revoked, token)
	if g := f.refresh[token]; g != nil {
		g.ended = true
	}
}

func (f *fake) mcp(w http.ResponseWriter, r *http.Request) {
	if f.date != 0 {
		w.Header().Set("Date", time.Now().Add(f.date).UTC().Format(http.TimeFormat))
	}
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	g := f.access[token]
	challenge := `Bearer scope="mcp", resource_metadata="` + f.URL + `/.well-known/oauth-protected-resource/mcp"`
	switch {
	case g == nil || g.ended || f.mute || f.dpop && (r.Header.Get("DPoP") == "" || g.key == ""):
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
	case f.needs != "" && !f.satisfied(*g):
		w.Header().Set("WWW-Authenticate", "Bearer "+f.needs)
		if strings.Contains(f.needs, "insufficient_scope") {
			w.WriteHeader(http.StatusForbidden)
		} else {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
}

// expire ends all access tokens, as time does.
func (f *fake) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.access)
}

// browser returns an OpenBrowser in which the user approves everything.
func (f *fake) browser() func(context.Context, string) error {
	return func(_ context.Context, raw string) error {
		go f.visit(f.approve(raw))
		return nil
	}
}

func (f *fake) visit(at string) {
	if resp, err := http.Get(at); err == nil { // the listener may be gone
		resp.Body.Close()
	}
}

// person returns a user of the fake, with changes to the configuration.
func (f *fake) person(store Store, change func(*PersonConfig)) *Person {
	f.t.Helper()
	c := PersonConfig{
		Server:      f.URL + "/mcp",
		ClientName:  "Notes",
		Store:       store,
		OpenBrowser: f.browser(),
		Ask:         func(context.Context, Prompt) {},
	}
	if change != nil {
		change(&c)
	}
	p, err := NewPerson(c)
	if err != nil {
		f.t.Fatal(err)
	}
	p.again = time.Millisecond
	return p
}

// call calls the MCP server and returns the status.
func (f *fake) call(p *Person) (int, error) {
	resp, err := p.HTTPClient().Post(f.URL+"/mcp", "application/json", strings.NewReader("{}"))
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

// calls calls the MCP server and fails the test unless the status is 200 and the user has signed in
// so many times.
func (f *fake) calls(p *Person, signIns int) {
	f.t.Helper()
	status, err := f.call(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || status != 200 || len(f.authorized) != signIns {
		f.t.Fatalf("got %d, %v after %d sign-ins, want %d: %v", status, err, len(f.authorized), signIns, f.authorized)
	}
}
