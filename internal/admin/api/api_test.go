package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/assembly"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	issuer = "https://auth.example.com"
	root   = issuer + "/api/v1"
)

// rig is an API. The test issues its tokens.
type rig struct {
	*testing.T
	mux     *http.ServeMux
	store   storage.Store
	users   *users.Users
	service *admin.Service
	tokens  map[string]*mcpresource.Principal
	keyed   *watched
	now     time.Time
}

func newRig(t *testing.T) *rig {
	store := installation.Store(t)
	return newRigOn(t, store)
}

func newRigOn(t *testing.T, store storage.Store) *rig { return newRigUnder(t, store, make([]byte, 32)) }

// newRigUnder is newRigOn with the given master keys, the current one first.
func newRigUnder(t *testing.T, store storage.Store, masters ...[]byte) *rig {
	loaded, err := config.Load(config.Source{Environ: []string{"HOME=" + t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	service, err := assembly.Parts{
		Config: loaded, Store: store, Keys: masters, Log: slog.New(slog.DiscardHandler),
	}.Admin(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		T: t, mux: http.NewServeMux(), store: store, users: service.Users, service: service,
		tokens: map[string]*mcpresource.Principal{}, keyed: &watched{KeyedRequests: store}, now: time.Now(),
	}
	ring, err := secrets.NewRing(masters...)
	if err != nil {
		t.Fatal(err)
	}
	service.Now = func() time.Time { return r.now }
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: root, AuthorizationServers: []string{issuer}, Policy: api.Rules(),
		Validator: mcpresource.ValidatorFunc(r.validate),
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := api.New(api.Config{
		Root: root, Guard: guard, Log: slog.New(slog.DiscardHandler),
		Callers: api.Callers{Store: store, Clients: store},
		Service: service, Requests: r.keyed, Ring: ring,
	})
	if err == nil {
		err = server.Register(r.mux)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) validate(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
	if p, ok := r.tokens[c.Token]; ok {
		return p, nil
	}
	return nil, mcpresource.ErrInvalidToken
}

// person creates a user with a role and a token. The user authenticated the given time ago.
func (r *rig) person(name string, role admin.Role, scopes string, ago time.Duration) {
	u, err := r.users.Add(r.Context(), users.Account{Name: name, Password: "correct horse battery", Role: role})
	if err != nil {
		r.Fatal(err)
	}
	claims := fmt.Sprintf(`{"gid":"grt_1","auth_time":%d}`, r.now.Add(-ago).Unix())
	r.token(name, u.ID, "app", scopes, claims)
}

func (r *rig) token(name, subject, client, scopes, claims string) {
	r.tokens[name] = &mcpresource.Principal{
		Issuer: issuer, Subject: subject, ClientID: client, Scopes: oauth.ParseScopes(scopes),
		Audience: []string{root}, ExpiresAt: time.Now().Add(time.Hour), Claims: json.RawMessage(claims),
	}
}

// client creates a token of a client that acts for itself.
func (r *rig) client(c storage.Client, scopes string) {
	c.CreatedAt = r.now
	if err := r.store.PutClient(r.Context(), c); err != nil {
		r.Fatal(err)
	}
	r.token(c.ID, c.ID, c.ID, scopes, "{}")
}

// do sends a request. headers are pairs of name and value.
func (r *rig) do(token, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	req, w := httptest.NewRequest(method, root+path, strings.NewReader(body)), httptest.NewRecorder()
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	r.mux.ServeHTTP(w, req)
	return w
}

// is checks the status and, for an error, the type of the problem.
func (r *rig) is(w *httptest.ResponseRecorder, status int, kind string) {
	r.Helper()
	var p api.Problem
	if kind != "" && (json.Unmarshal(w.Body.Bytes(), &p) != nil ||
		w.Header().Get("Content-Type") != "application/problem+json" || p.Status != status) {
		r.Errorf("got no problem document: %s", w.Body)
	}
	if w.Code != status || kind != "" && p.Type != "urn:mcp-authd:problem:"+kind {
		r.Errorf("got %d %s, want %d %s", w.Code, w.Body, status, kind)
	}
}

// TestCallers checks the permissions of tokens by scope and by the role of their user or program.
func TestCallers(t *testing.T) {
	r := newRig(t)
	const write, read = "admin:write", "admin:read"
	r.person("root", admin.Administrator, write, time.Minute)
	r.person("reader", admin.Administrator, read, time.Minute)
	r.person("old", admin.Administrator, write, admin.FreshFor+time.Second)
	r.person("audit", admin.Auditor, write, time.Minute)
	r.person("sue", admin.Support, write, time.Minute)
	r.person("alice", "", write, time.Minute)
	r.person("other", admin.Administrator, "mcp", time.Minute)
	r.token("gone", "usr_gone", "app", write, `{"gid":"grt_1"}`)
	admins := []string{root}
	machine := storage.Client{
		ID: "robot", Source: storage.SourceStatic, AuthMethod: "client_secret_basic",
		GrantTypes: []string{oauth.GrantClientCredentials}, Resources: admins,
	}
	r.client(machine, write)
	with := func(id string, change func(*storage.Client), scopes string) {
		c := machine
		c.ID = id
		change(&c)
		r.client(c, scopes)
	}
	with("watcher", func(*storage.Client) {}, read)
	with("registered", func(c *storage.Client) { c.Source = storage.SourceDynamic }, write)
	with("elsewhere", func(c *storage.Client) { c.Resources = []string{"https://mcp.example.com"} }, write)
	with("unassigned", func(c *storage.Client) { c.Resources = nil }, write)
	with("public", func(c *storage.Client) { c.AuthMethod = "none" }, write)
	with("key", func(c *storage.Client) { c.Source = storage.SourcePerson; c.GrantTypes = nil }, write)
	r.token("helper", r.tokens["root"].Subject, "app", write,
		`{"gid":"grt_1","auth_time":`+fmt.Sprint(r.now.Unix())+`,"act":{"sub":"helper"}}`)
	r.token("workload", "job", "job", write, `{"gid":"grt_2"}`)
	elsewhere := *r.tokens["root"]
	elsewhere.Audience = []string{"https://mcp.example.com"}
	r.tokens["audience"] = &elsewhere

	for token, want := range map[string]struct {
		read, change int
		kind         string // of the refused change
	}{
		"root":       {200, 200, ""},
		"reader":     {200, 403, "insufficient-scope"},
		"old":        {200, 401, "stale-proof"},
		"audit":      {200, 403, "forbidden"},
		"sue":        {200, 200, ""},
		"alice":      {403, 403, "forbidden"},
		"gone":       {403, 403, "forbidden"},
		"other":      {403, 403, "insufficient-scope"},
		"robot":      {200, 200, ""},
		"watcher":    {200, 403, "insufficient-scope"},
		"registered": {403, 403, "forbidden"},
		"elsewhere":  {403, 403, "forbidden"},
		"unassigned": {403, 403, "forbidden"},
		"public":     {403, 403, "forbidden"},
		"key":        {403, 403, "forbidden"},
		"helper":     {403, 403, "forbidden"},
		"workload":   {403, 403, "forbidden"},
		"audience":   {401, 401, "unauthenticated"},
		"nonsense":   {401, 401, "unauthenticated"},
		"":           {401, 401, "unauthenticated"},
	} {
		t.Run("OB-10 "+token, func(t *testing.T) {
			r := *r
			r.T = t
			if w := r.do(token, "GET", "/users/alice", ""); w.Code != want.read {
				t.Errorf("to read: got %d %s, want %d", w.Code, w.Body, want.read)
			}
			r.is(r.do(token, "POST", "/users/alice/enable", ""), want.change, want.kind)
		})
	}
	t.Run("OB-10 the role counts that the person has now", func(t *testing.T) {
		if err := r.users.SetRole(t.Context(), "sue", ""); err != nil {
			t.Fatal(err)
		}
		r.is(r.do("sue", "GET", "/users", ""), 403, "forbidden")
	})
	t.Run("OB-10 challenges say how to go on", func(t *testing.T) {
		for token, want := range map[string]string{
			"":         `^Bearer scope="admin:read", resource_metadata="https://auth.example.com/.well-known/oauth-protected-resource/api/v1"$`,
			"nonsense": `error="invalid_token".*scope="admin:write"`,
			"reader":   `error="insufficient_scope".*scope="admin:write"`,
			"old":      `error="insufficient_user_authentication".*max_age="600"`,
		} {
			got := r.do(token, "POST", "/users/alice/enable", "").Header().Get("WWW-Authenticate")
			if token == "" {
				got = r.do(token, "GET", "/users", "").Header().Get("WWW-Authenticate")
			}
			if !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("%q: got %s", token, got)
			}
		}
	})
}

// TestRequests checks which requests are accepted, and how others are refused.
func TestRequests(t *testing.T) {
	r := newRig(t)
	r.person("root", admin.Administrator, "admin:write", time.Minute)
	r.person("alice", "", "", time.Minute)
	deep := `{"mail":` + strings.Repeat("[", 200) + "0" + strings.Repeat("]", 200) + "}"
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		kind                     string
	}{
		{"a list", "GET", "/users?limit=1", "", 200, ""},
		{"one", "GET", "/users/alice", "", 200, ""},
		{"an unknown one", "GET", "/users/nobody", "", 404, "not-found"},
		{"an unknown path", "GET", "/nothing", "", 404, "not-found"},
		{"another method", "DELETE", "/users", "", 405, "method-not-allowed"},
		{"an unknown parameter", "GET", "/users?page=2", "", 400, "invalid"},
		{"a parameter twice", "GET", "/users?limit=1&limit=2", "", 400, "invalid"},
		{"no number", "GET", "/users?limit=x", "", 400, "invalid"},
		{"a change with a query", "POST", "/users/alice/disable?name=root", "", 400, "invalid"},
		{"a body", "PUT", "/users/alice/role", `{"role":"auditor"}`, 200, ""},
		{"an unknown field", "PUT", "/users/alice/role", `{"rolle":"auditor"}`, 400, "invalid"},
		{"no JSON", "PUT", "/users/alice/role", `role=auditor`, 400, "invalid"},
		{"a field in another case", "PUT", "/users/alice/role", `{"Role":"auditor"}`, 400, "invalid"},
		{"a field twice", "PUT", "/users/alice/role", `{"role":"auditor","role":"support"}`, 400, "invalid"},
		{"a field twice further in", "POST", "/resources", `{"scopes":[{"name":"a","Name":"b"}]}`, 400, "invalid"},
		{"a field twice further in, in one case", "POST", "/resources",
			`{"scopes":[{"name":"a","name":"b"}]}`, 400, "invalid"},
		{"a field twice further in, by U+017F", "POST", "/resources",
			`{"uri":"https://m.example/","scopes":[{"name":"a","description":"b","de\u017fcription":"c"}]}`, 400, "invalid"},
		{"a field of another case further in", "POST", "/resources",
			`{"uri":"https://m.example/","scopes":[{"Name":"a"}]}`, 400, "invalid"},
		{"any JSON, twice by U+212A", "POST", "/clients", `{"jwks":{"keys":[],"\u212aeys":[]}}`, 400, "invalid"},
		{"null further in", "POST", "/resources",
			`{"uri":"https://m.example/","scopes":[{"name":"a","description":null}]}`, 400, "invalid"},
		{"null in a list", "POST", "/clients", `{"redirect_uris":["https://a.example/cb",null]}`, 400, "invalid"},
		{"null in a list of objects", "POST", "/resources", `{"uri":"https://m.example/","scopes":[null]}`, 400, "invalid"},
		{"what is further in", "POST", "/resources",
			`{"uri":"https://m.example/","scopes":[{"name":"a","description":"b"}]}`, 200, ""},
		{"a field of the path", "PUT", "/users/alice/role", `{"name":"root","role":"support"}`, 400, "invalid"},
		{"no object", "PUT", "/users/alice/mail", `null`, 400, "invalid"},
		{"another type", "PUT", "/users/alice/mail", `{"mail":[]}`, 400, "invalid"},
		{"many levels", "PUT", "/users/alice/mail", deep, 400, "invalid"},
		{"no UTF-8", "PUT", "/users/alice/mail", "{\"mail\":\"\xff@example.com\"}", 400, "invalid"},
		{"no UTF-8 in the path", "GET", "/users/%ff", "", 400, "invalid"},
		{"a zero byte", "GET", "/users?after=a%00", "", 400, "invalid"},
		{"a page that is no hash", "GET", "/links?after=" + strings.Repeat("a", 66), "", 400, "invalid"},
		{"two objects", "PUT", "/users/alice/role", `{"role":"auditor"}{}`, 400, "invalid"},
		{"what cannot be used", "PUT", "/users/alice/role", `{"role":"king"}`, 400, "invalid"},
		{"what stands in the way", "PUT", "/users/root/role", `{"role":"none"}`, 409, "conflict"},
		{"too much", "PUT", "/users/alice/role", `{"role":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "too-large"},
	} {
		t.Run("OB-10 "+c.name, func(t *testing.T) {
			r := *r
			r.T = t
			r.is(r.do("root", c.method, c.path, c.body), c.status, c.kind)
		})
	}
	t.Run("OB-10 another type of body", func(t *testing.T) {
		w := r.do("root", "PUT", "/users/alice/role", "{}", "Content-Type", "text/plain")
		r.is(w, 415, "unsupported-media-type")
	})
	t.Run("OB-10 another charset", func(t *testing.T) {
		w := r.do("root", "PUT", "/users/alice/role", "{}", "Content-Type", "application/json; charset=utf-16")
		r.is(w, 415, "unsupported-media-type")
	})
	t.Run("OB-10 no type of ours is named", func(t *testing.T) {
		w := r.do("root", "PUT", "/users/alice/mail", `{"mail":1}`)
		if got := w.Body.String(); strings.Contains(got, "admin.") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("OB-10 which methods there are", func(t *testing.T) {
		if got := r.do("root", "POST", "/users/alice", "").Header().Get("Allow"); got != "GET, DELETE" {
			t.Errorf("Allow: got %q", got)
		}
	})
}

// TestETags checks that a change applies only to the state that its caller saw.
func TestETags(t *testing.T) {
	r := newRig(t)
	r.person("root", admin.Administrator, "admin:write", time.Minute)
	r.person("alice", "", "", time.Minute)
	seen := r.do("root", "GET", "/users/alice", "").Header().Get("ETag")
	r.is(r.do("root", "GET", "/users/alice", "", "If-None-Match", seen), 304, "")
	r.is(r.do("root", "PUT", "/users/alice/role", `{"role":"auditor"}`, "If-Match", seen), 200, "")
	r.is(r.do("root", "PUT", "/users/alice/role", `{"role":"support"}`, "If-Match", seen), 412, "changed")
	r.is(r.do("root", "PUT", "/users/nobody/role", `{"role":"support"}`, "If-Match", seen), 404, "not-found")
	r.is(r.do("root", "PUT", "/users/alice/role", `{"role":"support"}`, "If-Match", "*"), 200, "")
	if u, err := r.users.Find(t.Context(), "alice"); err != nil || u.Role != admin.Support {
		t.Errorf("got %+v, %v", u, err)
	}
	r.is(r.do("root", "GET", "/users/alice", "", "If-None-Match", seen), 200, "")
}

// TestEveryOperation checks that an administrator finds each operation at its path.
func TestEveryOperation(t *testing.T) {
	r := newRig(t)
	r.person("root", admin.Administrator, "admin:write", time.Minute)
	inPath := regexp.MustCompile(`{[a-z_.]+}`)
	for _, v := range admin.All() {
		s := v.Spec()
		w := r.do("root", s.Method, inPath.ReplaceAllString(s.Path, "nothing"), "")
		var p api.Problem
		_ = json.Unmarshal(w.Body.Bytes(), &p)
		if w.Code == 405 || w.Code >= 500 || strings.Contains(p.Detail, "no operation") {
			t.Errorf("OB-10: %s: got %d %s", s.Name, w.Code, w.Body)
		}
	}
}
