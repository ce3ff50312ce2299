package authserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// documents finds one client with a metadata document.
type documents struct {
	storage.Clients
	doc     storage.Client
	known   bool // it was read before
	vouched bool
	fetches int
	err     error
}

func (d *documents) Client(ctx context.Context, id string) (storage.Client, error) {
	if d.known && id == d.doc.ID {
		return d.doc, nil
	}
	return d.Clients.Client(ctx, id)
}

func (d *documents) Fetch(_ context.Context, id string) (storage.Client, error) {
	d.fetches++
	if d.err != nil {
		return storage.Client{}, d.err
	}
	if id != d.doc.ID {
		return storage.Client{},
			oauth.NewError(oauth.InvalidClient, "The client metadata document cannot be used: it is not there.")
	}
	d.known = true
	return d.doc, nil
}

func (d *documents) Vouched(storage.Client) bool { return d.vouched }

func newDocumentRig(t *testing.T) (*rig, *documents) {
	t.Helper()
	d := &documents{doc: storage.Client{
		ID: "https://app.example.com/client.json", Name: "Doc App",
		RedirectURIs: []string{"https://app.example.com/cb"},
		GrantTypes:   []string{oauth.GrantCode, oauth.GrantRefresh}, AuthMethod: "none", Source: storage.SourceCIMD,
	}}
	r := newRig(t, func(c *Config) {
		d.Clients = c.Store
		c.Registry = &registry{Clients: d, Documents: d}
	})
	return r, d
}

func documentQuery(d *documents, change ...string) url.Values {
	return authorizeQuery(append([]string{"client_id", d.doc.ID, "redirect_uri", d.doc.RedirectURIs[0]}, change...)...)
}

func TestDocumentIsReadAfterSignIn(t *testing.T) {
	r, d := newDocumentRig(t)
	p := r.person()
	pg := p.get("/authorize?" + documentQuery(d).Encode())
	if pg.status != 200 || !strings.Contains(pg.body, `name="password"`) ||
		!strings.Contains(pg.body, "app.example.com") || d.fetches != 0 {
		t.Fatalf("AS-154: status %d, %d fetches, page %.300s", pg.status, d.fetches, pg.body)
	}
	if csp := pg.header.Get("Content-Security-Policy"); strings.Contains(csp, "form-action") {
		t.Errorf("RU-01 a person who has consented before could not get back: %s", csp)
	}
	pg = p.post("/login", url.Values{"step": {pg.step(t)}, "username": {"alice"}, "password": {"wrong"}})
	if pg.status != 401 || d.fetches != 0 {
		t.Fatalf("AS-154 a failed sign-in: status %d, %d fetches", pg.status, d.fetches)
	}
	pg = p.post("/login",
		url.Values{"step": {pg.step(t)}, "username": {"alice"}, "password": {"correct horse battery"}})
	pg = p.get(pg.header.Get("Location"))
	if d.fetches != 1 || !strings.Contains(pg.body, "Doc App") || !strings.Contains(pg.body, "app.example.com") {
		t.Fatalf("AS-153 AS-73: %d fetches, page %.300s", d.fetches, pg.body)
	}
	pg = p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"approve"}})
	status, out := p.token(
		codeForm(responseOf(t, pg).Get("code"), "client_id", d.doc.ID, "redirect_uri", d.doc.RedirectURIs[0]),
	)
	if status != 200 || d.fetches != 1 {
		t.Errorf("AS-151: got %d %v, %d fetches", status, out, d.fetches)
	}
}

func TestDocumentRefused(t *testing.T) {
	r, d := newDocumentRig(t)
	p := r.person()
	p.signIn()
	t.Run("AS-165 a document that is no good is an error page, which says why, and no redirect", func(t *testing.T) {
		q := documentQuery(d, "client_id", "https://evil.example/c.json")
		pg := p.get("/authorize?" + q.Encode())
		if pg.status != 400 || pg.header.Get("Location") != "" || !strings.Contains(pg.body, "it is not there") {
			t.Errorf("got %d %.300s", pg.status, pg.body)
		}
	})
	t.Run("AS-157 a redirect URI that is not in it is looked for once more, then refused", func(t *testing.T) {
		d.known = true
		before := d.fetches
		pg := p.get("/authorize?" + documentQuery(d, "redirect_uri", "https://evil.example/cb").Encode())
		if pg.status != 400 || pg.header.Get("Location") != "" || d.fetches != before+1 {
			t.Errorf("got %d, %d fetches", pg.status, d.fetches-before)
		}
		if pg := p.get("/authorize?" + documentQuery(d).Encode()); pg.status != 200 {
			t.Errorf("the right one: got %d", pg.status)
		}
	})
	t.Run("AS-154 the token endpoint fetches nothing", func(t *testing.T) {
		d.known = false
		before := d.fetches
		status, out := p.token(codeForm("x", "client_id", d.doc.ID))
		if status != 400 || out["error"] != "invalid_grant" || d.fetches != before {
			t.Errorf("got %d %v, %d fetches", status, out, d.fetches-before)
		}
	})
}

func TestUnknownClient(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct{ client, redirect, want string }{
		{"gone", "cursor://anysphere.cursor-mcp/oauth/callback", "Cursor"},
		{"gone", "https://vscode.dev/redirect", "VS Code"},
		{"gone", "http://127.0.0.1:33418/", "VS Code"},
		{"gone", "https://claude.ai/api/mcp/auth_callback", "Claude"},
		{"gone", "http://127.0.0.1:52000/callback/abc", "Codex"},
		{"gone", "http://localhost:3335/oauth/callback", "mcp-remote"},
		{"gone", "http://127.0.0.1:6276/oauth/callback", "Inspector"},
		{"gone", "https://unheard.example/cb", "clear its saved sign-in"},
	} {
		t.Run("CL-13 the page says how to make it register again: "+tt.redirect, func(t *testing.T) {
			pg := r.person().get("/authorize?" +
				authorizeQuery("client_id", tt.client, "redirect_uri", tt.redirect).Encode())
			if pg.status != 400 || pg.header.Get("Location") != "" || !strings.Contains(pg.body, tt.want) {
				t.Errorf("got %d %s", pg.status, pg.body)
			}
		})
	}
	t.Run("a program that asks for JSON gets invalid_client", func(t *testing.T) {
		pg := r.person().get("/authorize?"+authorizeQuery("client_id", "gone").Encode(), "Accept", "application/json")
		if pg.status != 400 || !strings.Contains(pg.body, `"error":"invalid_client"`) {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
}

func TestHandoff(t *testing.T) {
	r := newRig(t)
	const scheme = "cursor://anysphere.cursor-mcp/oauth/callback"
	if err := r.store.PutClient(t.Context(),
		storage.Client{ID: "cursor", Name: "Cursor", RedirectURIs: []string{scheme},
			GrantTypes: []string{oauth.GrantCode}, AuthMethod: "none", Source: storage.SourceDynamic,
			CreatedAt: r.now()}); err != nil {
		t.Fatal(err)
	}
	q := authorizeQuery("client_id", "cursor", "redirect_uri", scheme)
	p := r.person()
	p.approve(q)
	t.Run("AS-57 a browser gets a page with a button", func(t *testing.T) {
		pg := p.get("/authorize?"+q.Encode(), "Sec-Fetch-Dest", "document")
		if pg.status != 200 ||
			!strings.Contains(pg.body, `href="cursor://anysphere.cursor-mcp/oauth/callback?code=`) ||
			!strings.HasPrefix(pg.header.Get("Refresh"), "0; url="+scheme+"?code=") {
			t.Errorf("got %d %q %s", pg.status, pg.header.Get("Refresh"), pg.body)
		}
		if pg.header.Get("Cache-Control") != "no-store" {
			t.Errorf("the page with the code may be kept: %v", pg.header)
		}
	})
	t.Run("AS-57 anything else gets the redirect", func(t *testing.T) {
		if pg := p.get("/authorize?" + q.Encode()); pg.status != http.StatusSeeOther ||
			!strings.HasPrefix(pg.header.Get("Location"), scheme+"?code=") {
			t.Errorf("got %d %v", pg.status, pg.header)
		}
	})
}

func TestResourceIsExplained(t *testing.T) {
	r := newRig(t)
	p := r.person()
	p.signIn()
	for resource, want := range map[string]string{
		"": "absent: the default", testResource: "exact", testResource + "/": "trailing slash",
		strings.ToUpper("https://mcp.example.com") + "/mcp": "upper case",
	} {
		t.Run("CL-48 "+want, func(t *testing.T) {
			r.log.Reset()
			p.approve(authorizeQuery("resource", resource))
			if !strings.Contains(r.log.String(), `"resource_match":"`+want+`"`) ||
				!strings.Contains(r.log.String(), `"resource":"`+testResource+`"`) {
				t.Errorf("got %s", r.log.String())
			}
		})
	}
}

func TestRootAliases(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Issuer += "/tenant" })
	h := r.Handler()
	for _, path := range []string{"/authorize", "/tenant/authorize"} {
		req, _ := http.NewRequest(http.MethodGet, path+"?"+authorizeQuery().Encode(), nil)
		req.Host = "127.0.0.1"
		w := recorderOf(h, req)
		if w.Code != 200 || !strings.Contains(w.Body.String(), `action="/tenant/login"`) {
			t.Errorf("AS-16 %s: got %d %.200s", path, w.Code, w.Body)
		}
	}
	req, _ := http.NewRequest(http.MethodPost, "/token", strings.NewReader("grant_type=password"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if w := recorderOf(h, req); w.Code != 401 && w.Code != 400 {
		t.Errorf("AS-16 /token: got %d", w.Code)
	}
}

func recorderOf(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
