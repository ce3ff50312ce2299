package authserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// pushed is the response to a pushed authorization request.
type pushed struct {
	URI       string `json:"request_uri"`
	ExpiresIn int    `json:"expires_in"`
	Error     string `json:"error"`
}

func (p *person) push(query url.Values, header ...string) (int, pushed) {
	p.t.Helper()
	pg := p.post("/par", query, header...)
	var out pushed
	if err := json.Unmarshal([]byte(pg.body), &out); err != nil {
		p.t.Fatalf("the answer %d is not JSON: %s", pg.status, pg.body)
	}
	return pg.status, out
}

// reference returns the request_uri of a valid request.
func (p *person) reference(query url.Values, header ...string) string {
	p.t.Helper()
	status, out := p.push(query, header...)
	if status != http.StatusCreated {
		p.t.Fatalf("got %d %+v, want 201", status, out)
	}
	return out.URI
}

// open brings a reference to /authorize.
func (p *person) open(client, uri string) page {
	p.t.Helper()
	return p.get("/authorize?" + url.Values{"client_id": {client}, "request_uri": {uri}}.Encode())
}

// bring is open, and returns the request that the browser continues with.
func (p *person) bring(uri string) url.Values {
	p.t.Helper()
	pg := p.open("app", uri)
	to, err := url.Parse(pg.header.Get("Location"))
	if err != nil || pg.status != http.StatusSeeOther || to.Path != "/authorize" {
		p.t.Fatalf("got %d to %q: %.300s", pg.status, to, pg.body)
	}
	return to.Query()
}

func wantPushedGone(t *testing.T, pg page) {
	t.Helper()
	if pg.status != http.StatusBadRequest || !strings.Contains(pg.body, "was begun in another browser") {
		t.Errorf("got %d to %q, want the page of a sign-in that is gone: %.400s",
			pg.status, pg.header.Get("Location"), pg.body)
	}
}

func TestAS228PushedRequests(t *testing.T) {
	t.Run("AS-228 RFC 9126 2.2: what was pushed is what the person is asked, and what is granted", func(t *testing.T) {
		p := newRig(t).person()
		status, out := p.push(authorizeQuery("scope", "mcp notes:write", "state", "pushed-state"))
		if status != http.StatusCreated || out.ExpiresIn != 60 ||
			!strings.HasPrefix(out.URI, "urn:ietf:params:oauth:request_uri:") || len(out.URI) < 34+43 {
			t.Fatalf("got %d %+v", status, out)
		}
		query := url.Values{"client_id": {"app"}, "request_uri": {out.URI}, "scope": {"mcp"}, "state": {"other"}}
		pg := p.get("/authorize?" + query.Encode())
		to, _ := url.Parse(pg.header.Get("Location"))
		response := p.approve(to.Query())
		if response.Get("state") != "pushed-state" {
			t.Errorf("got state %q", response.Get("state"))
		}
		if status, tokens := p.token(codeForm(response.Get("code"))); tokens["scope"] != "mcp notes:write" {
			t.Errorf("got %d %v", status, tokens)
		}
	})
	t.Run("AS-228 RFC 9126 2.3: a request that is not in order is refused at once", func(t *testing.T) {
		p := newRig(t).person()
		for _, tt := range []struct {
			name, header, param, value string
			status                     int
			code                       string
		}{
			{"a request_uri", "", "request_uri", "urn:ietf:params:oauth:request_uri:x", 400, "invalid_request"},
			{"a request object", "", "request", "e30.e30.", 400, "invalid_request"},
			{"no challenge", "", "code_challenge", "", 400, "invalid_request"},
			{"another redirect URI", "", "redirect_uri", "https://evil.example/cb", 400, "invalid_request"},
			{"no client", "", "client_id", "", 401, "invalid_client"},
			{"an unknown client", "", "client_id", "nobody", 401, "invalid_client"},
			{"an unknown resource", "", "resource", "https://other.example/mcp", 400, "invalid_target"},
			{"a wrong secret", basic("static", "wrong"), "client_id", "", 401, "invalid_client"},
			{"no secret", "", "client_id", "static", 401, "invalid_client"},
			{"another client's secret", basic("static", testSecret), "client_id", "app", 401, "invalid_client"},
			{"a client without the grant", basic("machine", testSecret), "client_id", "", 400, "invalid_request"},
			{"too much", "", "state", strings.Repeat("s", 4000), 400, "invalid_request"},
		} {
			var header []string
			if tt.header != "" {
				header = []string{"Authorization", tt.header}
			}
			status, out := p.push(authorizeQuery(tt.param, tt.value), header...)
			if status != tt.status || out.Error != tt.code || out.URI != "" {
				t.Errorf("%s: got %d %+v, want %d %s", tt.name, status, out, tt.status, tt.code)
			}
		}
	})
	t.Run("AS-228 RFC 9126 2.1: what authenticates the client is not kept with the request", func(t *testing.T) {
		p := newRig(t).person()
		uri := p.reference(authorizeQuery("client_id", "static", "client_secret", testSecret))
		pg := p.open("static", uri)
		if pg.status != http.StatusSeeOther || strings.Contains(p.log.String(), testSecret) {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
	})
	t.Run("AS-34 AS-228 the metadata name the endpoint, and browsers may call it", func(t *testing.T) {
		p := newRig(t).person()
		pg := p.get("/.well-known/oauth-authorization-server")
		if !strings.Contains(pg.body, `"pushed_authorization_request_endpoint":"`+p.http.URL+`/par"`) {
			t.Errorf("got %s", pg.body)
		}
		if got := p.post("/par", authorizeQuery(), "Origin", "https://app.example"); got.status != http.StatusCreated ||
			got.header.Get("Access-Control-Allow-Origin") != "*" || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("got %d %v", got.status, got.header)
		}
	})
}

func TestAS242PushedRequestsAreUsedOnce(t *testing.T) {
	t.Run("AS-242 RFC 9126 4: the browser that has opened a request may load it again, no other may", func(t *testing.T) {
		r := newRig(t)
		p, other := r.person(), r.person()
		uri := p.reference(authorizeQuery())
		query := p.bring(uri)
		for range 2 {
			if pg := p.get("/authorize?" + query.Encode()); !strings.Contains(pg.body, `name="password"`) {
				t.Fatalf("got %d %.300s", pg.status, pg.body)
			}
		}
		p.bring(uri)
		wantPushedGone(t, other.open("app", uri))
		wantPushedGone(t, other.get("/authorize?"+query.Encode()))
		r.advance(61 * time.Second) // the user takes their time
		wantPushedGone(t, p.open("app", uri))
		if code := p.approve(query).Get("code"); code == "" {
			t.Error("the person who took their time got no code")
		}
	})
	t.Run("AS-242 a request makes one code, whatever the browser does", func(t *testing.T) {
		p := newRig(t).person()
		p.signIn() // from now on the user need not be asked
		query := p.bring(p.reference(authorizeQuery()))
		first := responseOf(t, p.get("/authorize?"+query.Encode())).Get("code")
		again := responseOf(t, p.get("/authorize?"+query.Encode())).Get("code")
		if first == "" || again != first {
			t.Fatalf("got the codes %q and %q", first, again)
		}
		if status, out := p.token(codeForm(first)); status != http.StatusOK {
			t.Fatalf("got %d %v", status, out)
		}
		wantAnswered(t, p.get("/authorize?"+query.Encode()))
		p.wantConnections(2)
	})
	t.Run("AS-242 nothing can be approved after a no", func(t *testing.T) {
		p := newRig(t).person()
		query := p.bring(p.reference(authorizeQuery()))
		deny := p.answering(query)
		if got := responseOf(t, deny.send("decision", "deny")).Get("error"); got != "access_denied" {
			t.Fatalf("got %q", got)
		}
		wantAnswered(t, p.answering(query).send())
	})
	t.Run("AS-242 a request is the client's that has pushed it, for a minute", func(t *testing.T) {
		p := newRig(t).person()
		uri := p.reference(authorizeQuery())
		wantPushedGone(t, p.open("static", uri))
		if pg := p.open("", uri); pg.status != http.StatusBadRequest {
			t.Errorf("without a client: got %d", pg.status)
		}
		p.bring(uri)
		late := p.reference(authorizeQuery())
		p.advance(time.Minute)
		wantPushedGone(t, p.open("app", late))
		wantPushedGone(t, p.open("app", "urn:ietf:params:oauth:request_uri:unknown"))
	})
	t.Run("AS-242 what counts is what was pushed: the browser cannot change it", func(t *testing.T) {
		p := newRig(t).person()
		p.signIn()
		query := p.bring(p.reference(authorizeQuery("prompt", "login")))
		query.Set("prompt", "none")
		query.Set("scope", "mcp notes:write")
		if pg := p.get("/authorize?" + query.Encode()); !strings.Contains(pg.body, `name="password"`) {
			t.Errorf("got %d to %q", pg.status, pg.header.Get("Location"))
		}
		changed := []byte(query.Get("resume"))
		changed[40] ^= 1
		query.Set("resume", string(changed))
		wantPushedGone(t, p.get("/authorize?"+query.Encode()))
		old := p.bring(p.reference(authorizeQuery()))
		p.advance(time.Hour)
		wantPushedGone(t, p.get("/authorize?"+old.Encode()))
	})
	t.Run("AS-242 RFC 9126 6: a client that has to push its requests is refused any other", func(t *testing.T) {
		p := newRig(t).person()
		strict := storage.Client{ID: "strict", Name: "Strict", RedirectURIs: []string{testRedirect},
			GrantTypes: []string{"authorization_code"}, AuthMethod: "none", Source: storage.SourceStatic,
			Metadata: []byte(`{"require_pushed_authorization_requests":true}`)}
		if err := p.store.PutClient(t.Context(), strict); err != nil {
			t.Fatal(err)
		}
		for _, query := range []url.Values{
			authorizeQuery("client_id", "strict"),
			authorizeQuery("client_id", "strict", "pushed", "mcpac_x false  0"), // a claim
		} {
			if got := responseOf(t, p.get("/authorize?"+query.Encode())).Get("error"); got != "invalid_request" {
				t.Errorf("got %q", got)
			}
		}
		pg := p.open("strict", p.reference(authorizeQuery("client_id", "strict", "pushed", "mcpac_x false  0")))
		to, _ := url.Parse(pg.header.Get("Location"))
		if code := p.approve(to.Query()).Get("code"); code == "" {
			t.Error("the pushed request got no code")
		}
	})
	t.Run("AS-242 two replicas: of two browsers one gets the request", func(t *testing.T) {
		r := newRig(t)
		uri := r.person().reference(authorizeQuery())
		first := r.person()
		first.bring(uri)
		r.restart() // another server on the same store
		wantPushedGone(t, r.person().open("app", uri))
		first.bring(uri)
	})
	t.Run("AS-154 AS-228 a document is not read for a push, and decides when it is read", func(t *testing.T) {
		const id = "https://app.example/client.json"
		for method, want := range map[string]string{"none": "", "private_key_jwt": "invalid_request"} {
			docs := &described{client: storage.Client{
				ID: id, Name: "Documented", RedirectURIs: []string{"https://app.example/cb"}, AuthMethod: method,
				GrantTypes: []string{"authorization_code"}, Source: storage.SourceCIMD,
			}}
			p := newRig(t, func(c *Config) {
				docs.Clients, c.Registry = c.Store, &registry{Clients: docs, Documents: docs}
			}).person()
			p.signIn()
			request := authorizeQuery("client_id", id, "redirect_uri", "https://app.example/cb")
			uri := p.reference(request)
			if docs.read > 0 {
				t.Fatal("a push had the document read")
			}
			to, _ := url.Parse(p.open(id, uri).header.Get("Location"))
			if want == "" {
				if code := p.approve(to.Query()).Get("code"); code == "" {
					t.Error("no code")
				}
				continue
			}
			pg := p.get("/authorize?" + to.RawQuery)
			if pg.status != http.StatusBadRequest || !strings.Contains(pg.body, "did not authenticate when it pushed") {
				t.Errorf("got %d %.300s", pg.status, pg.body)
			}
		}
	})
	t.Run("AS-228 a public client cannot fill the database", func(t *testing.T) {
		p := newRig(t).person()
		for range 2000 {
			if status, out := p.push(authorizeQuery()); status == http.StatusTooManyRequests {
				if out.Error != "slow_down" {
					t.Errorf("got %+v", out)
				}
				return
			}
		}
		t.Error("it was never told to slow down")
	})
}

// described reads one document, and knows its client afterwards.
type described struct {
	Clients
	client storage.Client
	read   int
}

func (d *described) Client(ctx context.Context, id string) (storage.Client, error) {
	if id == d.client.ID && d.read > 0 {
		return d.client, nil
	}
	return d.Clients.Client(ctx, id)
}

func (d *described) Fetch(context.Context, string) (storage.Client, error) {
	d.read++
	return d.client, nil
}
func (*described) Vouched(storage.Client) bool { return false }
