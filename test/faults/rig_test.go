// Package faults tests the whole authorization server, with registration and a provider, over a
// store that fails on demand. Whichever store call fails, no endpoint may report success, nothing
// may fail open, and no change may be partial.
package faults

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

const (
	resource = "https://mcp.example.com/mcp"
	redirect = "https://app.example.com/callback"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636 appendix B
	password = "correct horse battery"
	secret   = "s3cr3t-of-a-confidential-client-0123456789"
)

// rig is a server with all features, over a store that can fail.
type rig struct {
	*installation.Clock
	t     *testing.T
	url   string
	store *storagetest.Failing
	up    *fakeidp.Upstream
	as    *authserver.Server
}

func newRig(t *testing.T) *rig {
	t.Helper()
	ctx := t.Context()
	r := &rig{Clock: installation.NewClock(), t: t, up: fakeidp.Start(t)}
	r.Set(time.Now().Truncate(time.Second)) // cookies expire by the real clock
	r.up.Behave(func(b *fakeidp.Behaviour) { b.Now = r.Now })
	r.store = storagetest.NewFailing(installation.Store(t))

	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	r.url = strings.Replace(server.URL, "127.0.0.1", "localhost", 1) // passkeys require a host name
	keys := [][]byte{bytes.Repeat([]byte{7}, secrets.KeySize)}
	registry, err := dcr.New(dcr.Config{
		Store: r.store, SecretKeys: keys, Now: r.Now, Limits: dcr.Limits{PerMinute: 100_000},
	})
	must(t, err)
	delegation, err := thirdparty.New(thirdparty.Config{
		Issuer: r.url, Store: r.store, SecretKeys: keys, Now: r.Now,
		Connectors: []thirdparty.Connector{{
			ID: "corp", Type: "oidc", Name: "Corp", ClientID: r.up.ClientID, ClientSecret: r.up.ClientSecret,
			Issuer:     r.up.URL,
			Scopes:     oauth.Scopes{"openid", "profile", "email", "offline_access"},
			CheckEvery: time.Second, Outage: time.Hour,
			ScopeRules: []thirdparty.ScopeRule{{Scopes: oauth.Scopes{"notes:write"}, Groups: []string{"editors"}}},
			Broker:     []thirdparty.BrokerRule{{Resource: resource, Scopes: oauth.Scopes{"openid"}}},
		}},
	})
	must(t, err)
	t.Cleanup(delegation.Close)
	r.as, err = authserver.Assemble(ctx, authserver.Config{
		Issuer: r.url, Store: r.store, SecretKeys: keys, Now: r.Now, Registry: registry,
		Delegation: delegation,
		Tokens: authserver.TokenPolicy{
			CodeTTL: 10 * time.Minute, AccessTTL: 12 * time.Hour, RefreshGrace: 10 * time.Minute,
		},
		// In these rounds alice changes passkeys in a session with only a password.
		SignIn: authserver.SignInPolicy{AdminsSecondFactor: "optional"},
		Resources: []storage.Resource{{URI: resource, Name: "Notes", Scopes: []storage.ScopeText{
			{Name: "mcp", Description: "use the server", Default: true},
			{Name: "notes:write", Description: "write notes"},
		}}},
	})
	must(t, err)
	r.as.Register(mux)
	_, err = r.as.Users().Create(ctx, "alice", password, true)
	must(t, err)
	r.addClients()
	return r
}

// addClients adds an operator's client of each kind.
func (r *rig) addClients() {
	hash := storage.Hash(secrets.Hash(secret))
	both := []string{"authorization_code", "refresh_token"}
	for _, c := range []storage.Client{
		{ID: "app", Name: "App", RedirectURIs: []string{redirect}, GrantTypes: both, AuthMethod: "none"},
		{ID: "tv", Name: "TV", GrantTypes: []string{oauth.GrantDeviceCode, "refresh_token"}, AuthMethod: "none"},
		{ID: "server", Name: "Server", GrantTypes: both, AuthMethod: "client_secret_basic", SecretHash: &hash,
			Resources: []string{resource}},
		{ID: "robot", Name: "Robot", GrantTypes: []string{"client_credentials"}, AuthMethod: "client_secret_basic",
			SecretHash: &hash,
			Scopes:     []string{"mcp"}, Resources: []string{resource}},
	} {
		c.Source, c.CreatedAt = storage.SourceStatic, r.Now()
		must(r.t, r.store.PutClient(r.t.Context(), c))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// browser is a user's browser. It does not follow redirects.
type browser struct {
	*rig
	client *http.Client
}

func (r *rig) browser() *browser {
	jar, _ := cookiejar.New(nil)
	return &browser{r, &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is the response of an endpoint.
type answer struct {
	status int
	header http.Header
	body   string
}

// at returns the target of a redirect.
func (a answer) at() *url.URL {
	u, err := url.Parse(a.header.Get("Location"))
	if err != nil {
		return &url.URL{}
	}
	return u
}

// json returns a string member of a JSON response.
func (a answer) json(name string) string {
	var out map[string]any
	if json.Unmarshal([]byte(a.body), &out) != nil {
		return ""
	}
	s, _ := out[name].(string)
	return s
}

func (b *browser) send(method, target, body string, header ...string) answer {
	b.t.Helper()
	if strings.HasPrefix(target, "/") {
		target = b.url + target
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, target, strings.NewReader(body))
	must(b.t, err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := b.client.Do(req)
	must(b.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	must(b.t, err)
	return answer{resp.StatusCode, resp.Header, string(text)}
}

func (b *browser) get(target string) answer {
	b.t.Helper()
	return b.send(http.MethodGet, target, "", "Accept", "text/html")
}

func (b *browser) post(path string, form url.Values, header ...string) answer {
	b.t.Helper()
	return b.send(http.MethodPost, path, form.Encode(),
		append(header, "Content-Type", "application/x-www-form-urlencoded")...)
}

func (b *browser) postJSON(method, target, body string, header ...string) answer {
	b.t.Helper()
	return b.send(method, target, body, append(header, "Content-Type", "application/json")...)
}

var (
	formTag = regexp.MustCompile(`(?s)<form[^>]*action="([^"]*)".*?</form>`)
	field   = regexp.MustCompile(`<input[^>]*name="([^"]*)"[^>]*value="([^"]*)"`)
)

// form returns the form of a page whose action ends in suffix, with its prefilled values.
func (a answer) form(t *testing.T, suffix string) (action string, values url.Values) {
	t.Helper()
	for _, m := range formTag.FindAllStringSubmatch(a.body, -1) {
		action := html.UnescapeString(m[1])
		if !strings.HasSuffix(action, suffix) {
			continue
		}
		values := url.Values{}
		for _, f := range field.FindAllStringSubmatch(m[0], -1) {
			values.Set(f[1], html.UnescapeString(f[2]))
		}
		return action, values
	}
	t.Fatalf("no form for %s in the answer %d: %.600s", suffix, a.status, a.body)
	return "", nil
}

func link(change ...string) string {
	q := url.Values{
		"response_type": {"code"}, "client_id": {"app"}, "redirect_uri": {redirect}, "state": {"s"},
		"resource":       {resource},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {oauth.S256}, "scope": {"mcp"},
	}
	for i := 0; i+1 < len(change); i += 2 {
		q.Set(change[i], change[i+1])
	}
	return "/authorize?" + q.Encode()
}

// signIn returns the browser of alice after a sign-in with her password.
func (r *rig) signIn() *browser {
	r.t.Helper()
	b := r.browser()
	action, form := b.get(link("prompt", "login")).form(r.t, "/login")
	form.Set("username", "alice")
	form.Set("password", password)
	if got := b.post(action, form); got.status != http.StatusSeeOther {
		r.t.Fatalf("sign-in: got %d: %.300s", got.status, got.body)
	}
	return b
}

// code returns an authorization code that alice has approved.
func (r *rig) code() string {
	r.t.Helper()
	b := r.signIn()
	page := b.get(link("prompt", "consent"))
	action, form := page.form(r.t, "/consent")
	form.Set("decision", "approve")
	got := b.post(action, form)
	code := got.at().Query().Get("code")
	if code == "" {
		r.t.Fatalf("consent: got %d %v", got.status, got.header)
	}
	return code
}

func redeem(code string) url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "client_id": {"app"}, "redirect_uri": {redirect},
		"code_verifier": {verifier}, "resource": {resource},
	}
}

// tokens returns an access and a refresh token of alice.
func (r *rig) tokens() (access, refresh string) {
	r.t.Helper()
	got := r.browser().post("/token", redeem(r.code()))
	access, refresh = got.json("access_token"), got.json("refresh_token")
	if access == "" || refresh == "" {
		r.t.Fatalf("token: got %d %s", got.status, got.body)
	}
	return access, refresh
}

func basic(id string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}
