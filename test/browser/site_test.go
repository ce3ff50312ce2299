package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// site is an authorization server that can show every page.
type site struct {
	*demotest.Demo
	t     *testing.T
	as    *authserver.Server
	store *storagetest.Failing
	up    *fakeidp.Upstream // the providers google and company
}

const (
	notes      = "https://notes.example.com/mcp"
	everything = "https://everything.example.com/a/rather/long/path/to/the/server/of/a/whole/department/mcp"
	passphrase = "correct horse battery"
)

// aLongName contains a word that is too long for a line.
var aLongName = "The Unlimited Everything Server of the Department of " + strings.Repeat("Verwaltungsgericht", 3)

// allowances are the resources of the two MCP servers.
var allowances = []storage.Resource{
	{URI: notes, Name: "Team notes", Scopes: []storage.ScopeText{
		{Name: "mcp", Description: "Use the tools of this server", Default: true},
		{Name: "notes:read", Description: "Read your notes", Default: true},
		{Name: "notes:write", Description: "Add and change notes"},
	}},
	{URI: everything, Name: aLongName, Scopes: []storage.ScopeText{
		{Name: "mcp", Description: "Use the tools of this server", Default: true},
		{Name: "calendar:read",
			Description: "See your appointments, those that others have shared with you, and who takes part in them",
			Default:     true},
		{Name: "calendar:write", Description: "Make, move and cancel appointments", Default: true},
		{Name: "files:read", Description: "Read your files", Default: true},
		{Name: "files:write", Description: "Change your files", Default: true},
		{Name: "files:delete", Description: "Delete files for good", Default: true},
		{Name: "mail:send", Description: "Send messages in your name", Default: true},
		{Name: "https://everything.example.com/scopes/administration.of.the.department.readwrite", Default: true},
	}},
}

// newSite serves a site. change edits its configuration. Without connectors it has no providers.
func newSite(t *testing.T, change func(*authserver.Config), connectors ...thirdparty.Connector) *site {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var h http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	s := &site{
		Demo: &demotest.Demo{Issuer: server.URL, MCPURL: notes, Username: "alice", Password: passphrase},
		t:    t, store: storagetest.NewFailing(installation.Store(t)), up: fakeidp.Start(t),
	}
	keys := [][]byte{bytes.Repeat([]byte{7}, secrets.KeySize)}
	registry, err := dcr.New(dcr.Config{
		Store: s.store, SecretKeys: keys, Limits: dcr.Limits{PerMinute: 10_000},
		Documents: dcr.Documents{Enabled: true, InsecureLoopback: true},
	})
	must(err)
	c := authserver.Config{
		Issuer: server.URL, Store: s.store, SecretKeys: keys, Registry: registry, Resources: allowances,
	}
	if len(connectors) > 0 {
		for i := range connectors {
			connectors[i].Type, connectors[i].Issuer = "oidc", s.up.URL
			connectors[i].ClientID, connectors[i].ClientSecret = s.up.ClientID, s.up.ClientSecret
			connectors[i].CheckEvery = time.Second
		}
		d, err := thirdparty.New(thirdparty.Config{
			Issuer: server.URL, Store: s.store, SecretKeys: keys, Connectors: connectors,
		})
		must(err)
		t.Cleanup(d.Close)
		c.Delegation = d
	}
	if change != nil {
		change(&c)
	}
	s.as, err = authserver.Assemble(t.Context(), c)
	must(err)
	h = s.as.Handler()
	return s
}

func (s *site) user(name string) {
	s.t.Helper()
	if _, err := s.as.Users().Create(s.t.Context(), name, passphrase, true); err != nil {
		s.t.Fatal(err)
	}
}

// operated returns an operator's application with a redirect URI, or with its own for "".
func (s *site) operated(name, redirect string) *app {
	s.t.Helper()
	a := serveApp(s.t)
	a.id = secrets.ID("app_")
	if redirect == "" {
		redirect = a.URL + "/callback"
	}
	if err := s.store.PutClient(s.t.Context(), storage.Client{
		ID: a.id, Name: name, RedirectURIs: []string{redirect},
		GrantTypes: []string{"authorization_code", "refresh_token"},
		AuthMethod: "none", Source: storage.SourceStatic, CreatedAt: time.Now(),
	}); err != nil {
		s.t.Fatal(err)
	}
	return a
}

// registered returns an application that registered itself with a redirect URI, or with its own for
// "".
func (s *site) registered(name, redirect string) *app {
	s.t.Helper()
	a := serveApp(s.t)
	if redirect == "" {
		redirect = a.URL + "/callback"
	}
	a.id = newManaged(s.t, s.Demo, name, redirect).id
	return a
}

// documented returns an application whose id is the URL of its metadata document.
func (s *site) documented(name string) *app {
	s.t.Helper()
	a := &app{back: make(chan url.Values, 10)}
	mux := http.NewServeMux()
	a.Server = httptest.NewServer(mux)
	s.t.Cleanup(a.Close)
	a.id = a.URL + "/client.json"
	mux.HandleFunc("/client.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"client_id": a.id, "client_name": name, "redirect_uris": []string{a.URL + "/callback"},
			"token_endpoint_auth_method": "none",
		})
	})
	mux.HandleFunc("/callback", func(w http.ResponseWriter, r *http.Request) {
		a.back <- r.URL.Query()
		fmt.Fprint(w, "<!doctype html><title>back</title><main>back at the application</main>")
	})
	return a
}

// connectLink returns a link as a tool would create it. With it, alice gives the notes server more
// access to her account at the provider.
func (s *site) connectLink(token string) string {
	s.t.Helper()
	const id, secret = "notes-server", "the secret of the notes server, of enough length"
	hash := storage.Hash(secrets.Hash(secret))
	if err := s.store.PutClient(s.t.Context(), storage.Client{
		ID: id, Name: "Notes server", AuthMethod: "client_secret_post", SecretHash: &hash, Resources: []string{notes},
		Source: storage.SourceStatic, CreatedAt: time.Now(),
	}); err != nil {
		s.t.Fatal(err)
	}
	out := s.post("/token", url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {token},
		"client_id": {id}, "client_secret": {secret},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"}, "audience": {"google"},
		"scope": {"calendar.readonly"},
	})
	link, _ := out["interaction_uri"].(string)
	if link == "" {
		s.t.Fatalf("no link to connect: %v", out)
	}
	return link
}

// redeemed returns the token response for an application's code.
func (s *site) redeemed(a *app, q url.Values) map[string]any {
	s.t.Helper()
	return s.post("/token", url.Values{
		"grant_type": {"authorization_code"}, "code": {q.Get("code")}, "client_id": {a.id},
		"redirect_uri":  {a.URL + "/callback"},
		"code_verifier": {strings.Repeat("v", 43)},
	})
}

// token redeems an application's code and returns the access token.
func (s *site) token(a *app, q url.Values) string {
	s.t.Helper()
	out := s.redeemed(a, q)
	token, _ := out["access_token"].(string)
	if token == "" {
		s.t.Fatalf("no token: %v", out)
	}
	return token
}

func (s *site) post(path string, form url.Values) (out map[string]any) {
	s.t.Helper()
	resp, err := http.PostForm(s.Issuer+path, form)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// everyScope returns all scopes of an MCP server.
func everyScope(uri string) string {
	i := slices.IndexFunc(allowances, func(r storage.Resource) bool { return r.URI == uri })
	var names oauth.Scopes
	for _, t := range allowances[i].Scopes {
		names = append(names, t.Name)
	}
	return names.String()
}

// formTo returns a page of another site with a form that posts to action.
func formTo(action string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w,
			`<!doctype html><title>elsewhere</title><main><form method="post" action="%s"><button>Win a prize</button></form></main>`,
			action)
	}
}

// guess tries passwords until stop is closed.
func guess(issuer, name string, stop <-chan struct{}) {
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Timeout: time.Minute}
	step := regexp.MustCompile(`name="step" value="([^"]*)"`)
	for {
		select {
		case <-stop:
			return
		default:
		}
		resp, err := client.Get(issuer + "/login")
		if err != nil {
			return
		}
		page, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		m := step.FindSubmatch(page)
		if m == nil {
			return
		}
		form := url.Values{"username": {name}, "password": {"a guess"}, "step": {html.UnescapeString(string(m[1]))}}
		if resp, err = client.PostForm(issuer+"/login", form); err != nil {
			return
		}
		resp.Body.Close()
	}
}
