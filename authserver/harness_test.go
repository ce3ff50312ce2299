package authserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	testResource = "https://mcp.example.com/mcp"
	testRedirect = "http://127.0.0.1:33418/callback"
	testVerifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636 appendix B
	testSecret   = "s3cr3t-of-the-machine-client-0123456789ab"
)

// rig is a server with a real store, a clock that the test moves, a user, and one client of each
// kind.
type rig struct {
	*Server
	*installation.Installation
	t     *testing.T
	http  *httptest.Server
	store *sqlite.Store
	log   *logtest.Buffer
	as    Config
	mux   atomic.Pointer[http.ServeMux]
}

func (r *rig) now() time.Time          { return r.Now() }
func (r *rig) advance(d time.Duration) { r.Advance(d) }

func newRig(t *testing.T, change ...func(*Config)) *rig {
	t.Helper()
	ctx := context.Background()
	i := installation.New(t)
	r := &rig{Installation: i, t: t, store: i.Store, log: i.Log}
	r.http = httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.mux.Load().ServeHTTP(w, req) }),
	)
	t.Cleanup(r.http.Close)
	r.as = Config{
		Issuer: r.http.URL, Store: r.store, SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)},
		Resources: []storage.Resource{{URI: testResource, Name: "Notes", Scopes: []storage.ScopeText{
			{Name: "mcp", Description: "use the server", Default: true},
			{Name: "notes:write", Description: "add notes"},
		}}},
		Now: r.Now, Logger: r.Logger, Audit: r.Audit,
		passwords: &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32},
	}
	r.restart(change...)
	if _, err := r.Users().Create(ctx, "alice", "correct horse battery", false); err != nil {
		t.Fatal(err)
	}
	hash := storage.Hash(secrets.Hash(testSecret))
	for _, c := range []storage.Client{
		{ID: "app", Name: "An App", RedirectURIs: []string{testRedirect},
			GrantTypes: []string{oauth.GrantCode, oauth.GrantRefresh}, AuthMethod: "none",
			Source: storage.SourceDynamic},
		{ID: "static", Name: "Our App", RedirectURIs: []string{testRedirect, "https://app.example.com/cb?a=1"},
			GrantTypes: []string{oauth.GrantCode, oauth.GrantRefresh}, AuthMethod: "client_secret_basic",
			SecretHash: &hash, Source: storage.SourceStatic},
		{ID: "machine", Name: "Robot", GrantTypes: []string{oauth.GrantClientCredentials},
			AuthMethod: "client_secret_basic", SecretHash: &hash, Scopes: []string{"mcp"},
			Resources: []string{testResource}, Source: storage.SourceStatic},
	} {
		c.CreatedAt = r.now()
		if err := r.store.PutClient(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// restart starts the server again, with the same store and another configuration.
func (r *rig) restart(change ...func(*Config)) {
	r.t.Helper()
	for _, f := range change {
		f(&r.as)
	}
	s, err := Assemble(context.Background(), r.as)
	if err != nil {
		r.t.Fatal(err)
	}
	mux := http.NewServeMux()
	s.Register(mux)
	r.Server = s
	r.mux.Store(mux)
}

// registry is a Registry made of parts; without Handler or Documents it does not offer them.
type registry struct {
	Clients
	Documents
	http.Handler
	keys ClientKeys
}

func (r *registry) OffersRegistration() bool { return r.Handler != nil }
func (r *registry) OffersDocuments() bool    { return r.Documents != nil }

func (r *registry) Current(ctx context.Context, id string) (storage.Client, error) {
	if c, ok := r.Clients.(CurrentClients); ok {
		return c.Current(ctx, id)
	}
	return r.Client(ctx, id)
}

func (r *registry) ClientKeys(ctx context.Context, c storage.Client, kid string) ([]jose.JSONWebKey, error) {
	return r.keys.ClientKeys(ctx, c, kid)
}

func (*registry) Attach(
	string, func(context.Context) oauth.Scopes, func(context.Context) oauth.Scopes, func(*http.Request) netip.Addr,
) {
}

// person is a browser with a cookie jar that does not follow redirects.
type person struct {
	*rig
	client *http.Client
}

func (r *rig) person() *person {
	jar, _ := cookiejar.New(nil)
	return &person{
		r, &http.Client{
			Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

type page struct {
	status int
	header http.Header
	body   string
}

func (p *person) do(req *http.Request) page {
	p.t.Helper()
	resp, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return page{resp.StatusCode, resp.Header, string(body)}
}

func (p *person) get(target string, header ...string) page {
	p.t.Helper()
	if !strings.HasPrefix(target, "http") {
		target = p.http.URL + target
	}
	req, _ := http.NewRequest(http.MethodGet, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return p.do(req)
}

func (p *person) post(path string, form url.Values, header ...string) page {
	p.t.Helper()
	req, _ := http.NewRequest(http.MethodPost, p.http.URL+path, strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return p.do(req)
}

var stepField = regexp.MustCompile(`name="step" value="([^"]+)"`)

// step returns the sealed state of the page's main form.
func (pg page) step(t *testing.T) string {
	t.Helper()
	m := stepField.FindStringSubmatch(pg.body)
	if m == nil {
		t.Fatalf("no form in the page (status %d): %.600s", pg.status, pg.body)
	}
	return m[1]
}

func authorizeQuery(change ...string) url.Values {
	d := sha256.Sum256([]byte(testVerifier))
	v := url.Values{
		"response_type": {"code"}, "client_id": {"app"}, "redirect_uri": {testRedirect}, "state": {"st-1"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(d[:])}, "code_challenge_method": {"S256"},
		"resource": {testResource}, "scope": {"mcp"},
	}
	for i := 0; i+1 < len(change); i += 2 {
		if change[i+1] == "" {
			v.Del(change[i])
		} else {
			v.Set(change[i], change[i+1])
		}
	}
	return v
}

// login submits the login page of an authorization request and returns the page after it.
func (p *person) login(query url.Values) page {
	p.t.Helper()
	pg := p.get("/authorize?" + query.Encode())
	pg = p.post("/login",
		url.Values{"step": {pg.step(p.t)}, "username": {"alice"}, "password": {"correct horse battery"}})
	if pg.status != http.StatusSeeOther {
		p.t.Fatalf("login: got status %d, want 303: %.300s", pg.status, pg.body)
	}
	return p.get(pg.header.Get("Location"))
}

// approve signs in if needed, approves, and returns the response parameters.
func (p *person) approve(query url.Values) url.Values {
	p.t.Helper()
	pg := p.get("/authorize?" + query.Encode())
	if strings.Contains(pg.body, `name="password"`) {
		pg = p.login(query)
	}
	if pg.status == http.StatusOK {
		pg = p.post("/consent", url.Values{"step": {consentStep(p.t, pg)}, "decision": {"approve"}})
	}
	return responseOf(p.t, pg)
}

var consentForm = regexp.MustCompile(`(?s)<form[^>]*action="[^"]*/consent".*?</form>`)

func consentStep(t *testing.T, pg page) string {
	t.Helper()
	return page{body: consentForm.FindString(pg.body), status: pg.status}.step(t)
}

func responseOf(t *testing.T, pg page) url.Values {
	t.Helper()
	if pg.status != http.StatusSeeOther {
		t.Fatalf("got status %d, want 303: %.400s", pg.status, pg.body)
	}
	u, err := url.Parse(pg.header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

// token posts a token request and decodes the response.
func (p *person) token(form url.Values, header ...string) (int, map[string]any) {
	p.t.Helper()
	pg := p.post("/token", form, header...)
	var out map[string]any
	if err := json.Unmarshal([]byte(pg.body), &out); err != nil {
		p.t.Fatalf("token answer %d is not JSON: %s", pg.status, pg.body)
	}
	return pg.status, out
}

func codeForm(code string, change ...string) url.Values {
	v := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "client_id": {"app"},
		"redirect_uri": {testRedirect}, "code_verifier": {testVerifier}, "resource": {testResource},
	}
	for i := 0; i+1 < len(change); i += 2 {
		if change[i+1] == "" {
			v.Del(change[i])
		} else {
			v.Set(change[i], change[i+1])
		}
	}
	return v
}

// signIn runs the whole flow and returns the token response.
func (p *person) signIn() map[string]any {
	p.t.Helper()
	status, out := p.token(codeForm(p.approve(authorizeQuery()).Get("code")))
	if status != http.StatusOK {
		p.t.Fatalf("token: got %d %v", status, out)
	}
	return out
}

func refreshForm(token any, change ...string) url.Values {
	v := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token.(string)}, "client_id": {"app"}}
	for i := 0; i+1 < len(change); i += 2 {
		v.Set(change[i], change[i+1])
	}
	return v
}

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}
