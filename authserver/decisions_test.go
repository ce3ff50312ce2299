package authserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const (
	metricsResource = "https://mcp.example.com/metrics"
	callTool        = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add_note","arguments":{}}}`
	callList        = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
)

// guarded returns the guard of an MCP server in the process of the rig, at a resource.
func (r *rig) guarded(resource string) *mcpresource.Guard {
	r.t.Helper()
	g, err := mcpresource.New(mcpresource.Config{
		Resource:             resource,
		AuthorizationServers: []string{r.Issuer()},
		Validator:            mcpresource.Local(r.Server),
		Policy: &mcpresource.Rules{
			Base:  []string{"mcp"},
			Tools: map[string][]string{"add_note": {"notes:write"}},
		},
		CORS: true,
		Now:  r.now,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return g
}

// calls sends a request of p's client to a guard; without a token there is no Authorization header.
func (p *person) calls(g *mcpresource.Guard, token any, body string, header ...string) *httptest.ResponseRecorder {
	p.t.Helper()
	req := httptest.NewRequest(http.MethodPost, g.Resources()[0], strings.NewReader(body))
	req.RemoteAddr = "127.0.0.1:50000"
	req.Header.Set("User-Agent", "Go-http-client/1.1") // the same as in the other requests
	req.Header.Set("Content-Type", "application/json")
	if text, _ := token.(string); text != "" {
		req.Header.Set("Authorization", "Bearer "+text)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	g.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	})).ServeHTTP(w, req)
	return w
}

// TestReferenceOfCalls checks that each 401 and 403 of a guard has a reference where clients
// tolerate it, and that it finds the attempt.
func TestReferenceOfCalls(t *testing.T) {
	r := watched(t)
	p, g := r.person(), r.guarded(testResource)
	anonymous := p.calls(g, "", callList, "Origin", "https://mcp.example.com")
	if !strings.Contains(anonymous.Header().Get("Access-Control-Expose-Headers"), "X-Request-Id") {
		t.Error("OB-02: a page cannot read the reference")
	}
	if challenge := anonymous.Header().Get("WWW-Authenticate"); strings.Contains(challenge, "error") {
		t.Errorf("RS-18: got %s", challenge)
	}
	token := p.signIn()["access_token"]
	r.advance(time.Second)
	for _, tt := range []struct {
		name   string
		answer *httptest.ResponseRecorder
		status int
		fault  attempt.Fault
	}{
		{"no token", anonymous, 401, ""},
		{"a token of another server", p.calls(g, "other", callList), 401, attempt.TokenNotOurs},
		{"less scope", p.calls(g, token, callTool), 403, attempt.ScopeMissing},
	} {
		t.Run("OB-02 "+tt.name, func(t *testing.T) {
			h := tt.answer.Header()
			reference := h.Get("X-Request-Id")
			if _, ok := attempt.ParseReference(reference); !ok || tt.answer.Code != tt.status {
				t.Fatalf("got %d with the reference %q", tt.answer.Code, reference)
			}
			var body struct {
				Error struct {
					Message string
					Data    map[string]string
				}
			}
			if err := json.Unmarshal(tt.answer.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if body.Error.Data["reference"] != reference || !strings.Contains(body.Error.Message, reference) {
				t.Errorf("the body says %+v", body)
			}
			found := r.attempts(attempt.Query{Reference: reference})
			if len(found) != 1 || tt.fault != "" && found[0].Fault != tt.fault {
				t.Errorf("got %+v", found)
			}
		})
	}
}

// TestBrokenCalls checks the verdicts that operators read about errors between client and MCP
// server.
func TestBrokenCalls(t *testing.T) {
	for _, tt := range []struct {
		name  string
		do    func(r *rig, p *person)
		wait  time.Duration
		fault attempt.Fault // "": it succeeds
		whose attempt.Whose
		text  string
		got   string
		want  string
	}{
		{
			name: "a token for the wrong server",
			do: func(r *rig, p *person) {
				token := p.signIn()["access_token"]
				r.restart(func(c *Config) {
					metrics := c.Resources[0]
					metrics.URI = metricsResource
					c.Resources = append(c.Resources, metrics)
				})
				p.calls(r.guarded(metricsResource), token, callList)
			},
			fault: attempt.AudienceWrong, whose: attempt.OfClient, text: "the token for " + testResource,
			got: "/mcp", want: "/metrics",
		},
		{
			name: "a proxy that drops Authorization",
			do: func(r *rig, p *person) {
				g := r.guarded(testResource)
				p.calls(g, "", callList)
				r.advance(time.Second)
				p.signIn()
				r.advance(time.Second)
				p.calls(g, "", callList, "Via", "1.1 proxy")
			},
			fault: attempt.AuthorizationLost, whose: attempt.OfOperator, text: "through a proxy",
		},
		{
			name: "a proxy that drops Authorization and has its own User-Agent",
			do: func(r *rig, p *person) {
				g := r.guarded(testResource)
				p.calls(g, "", callList, "User-Agent", "forwarder/1")
				r.advance(time.Second)
				p.signIn()
				r.advance(time.Second)
				p.calls(g, "", callList, "User-Agent", "forwarder/1")
			},
			wait:  time.Second,
			fault: attempt.AuthorizationLost, whose: attempt.OfOperator, text: "from the same address, as forwarder/1",
		},
		{
			name: "a proxy that drops Authorization, and a client that signs in again",
			do: func(r *rig, p *person) {
				g := r.guarded(testResource)
				for range 3 {
					p.reads(wellKnown)
					r.advance(time.Second)
					p.signIn()
					r.advance(time.Second)
					p.calls(g, "", callList)
				}
			},
			fault: attempt.AuthorizationLost, whose: attempt.OfOperator, text: "without Authorization",
		},
		{
			name:  "a client that does not know what a challenge is",
			do:    func(r *rig, p *person) { p.calls(r.guarded(testResource), "", callList) },
			wait:  3 * time.Minute,
			fault: attempt.ChallengeOnly, whose: attempt.OfClient, text: "nothing followed",
		},
		{
			name: "a client that does not refresh",
			do: func(r *rig, p *person) {
				token := p.signIn()["access_token"]
				r.advance(time.Hour)
				p.calls(r.guarded(testResource), token, callList)
			},
			fault: attempt.TokenNotRefreshed, whose: attempt.OfClient, text: "expired",
		},
		{
			name: "access that was ended",
			do: func(r *rig, p *person) {
				token := p.signIn()["access_token"]
				p.post("/revoke", map[string][]string{"token": {token.(string)}, "client_id": {"app"}})
				p.calls(r.guarded(testResource), token, callList)
			},
			fault: attempt.AccessEnded, whose: attempt.OfPerson, text: "ended",
		},
		{
			name: "a tool that needs more scope",
			do: func(r *rig, p *person) {
				p.calls(r.guarded(testResource), p.signIn()["access_token"], callTool)
			},
			fault: attempt.ScopeMissing, whose: attempt.OfClient, text: "the tool add_note",
		},
		{
			name: "a page that may not call",
			do: func(r *rig, p *person) {
				p.calls(r.guarded(testResource), p.signIn()["access_token"], callList, "Origin", "https://evil.example")
			},
			fault: attempt.CallRefused, whose: attempt.OfOperator, text: "(origin)",
		},
		{
			name: "nothing",
			do: func(r *rig, p *person) {
				g := r.guarded(testResource)
				p.calls(g, "", callList)
				r.advance(time.Second)
				token := p.signIn()["access_token"]
				r.advance(time.Second)
				for range 3 {
					p.calls(g, token, callList)
				}
			},
			text: "tools/list",
		},
	} {
		t.Run("OB-01 "+tt.name, func(t *testing.T) {
			r := watched(t)
			tt.do(r, r.person())
			r.advance(tt.wait)
			got := r.lastAttempt()
			if got.OK != (tt.fault == "") || got.Fault != tt.fault || got.Whose != tt.whose ||
				!strings.Contains(got.Text, tt.text) {
				t.Errorf("got %s of %s: %s", got.Fault, got.Whose, got.Text)
			}
			if d := got.Difference; tt.want != "" && (d == nil || !strings.Contains(d.Got, tt.got) ||
				!strings.Contains(d.Want, tt.want)) {
				t.Errorf("got the difference %+v, want %q and %q", d, tt.got, tt.want)
			}
		})
	}
}

// TestCallsOfOneAttempt checks that the call that required a sign-in begins the attempt, and the
// first tool call ends it. Later calls cost no row.
func TestCallsOfOneAttempt(t *testing.T) {
	r := watched(t)
	p, g := r.person(), r.guarded(testResource)
	p.calls(g, "", callList)
	r.advance(time.Second)
	tokens := p.signIn()
	r.advance(time.Second)
	for range 5 {
		p.calls(g, tokens["access_token"], callList)
	}
	all := r.attempts(attempt.Query{})
	if len(all) != 1 || !all[0].OK {
		t.Fatalf("OB-01: got %d attempts: %+v", len(all), all)
	}
	steps := all[0].Steps
	if first, last := steps[0], steps[len(steps)-1]; first.Kind != attempt.Call || last.Kind != attempt.Call ||
		len(steps) != 8 {
		t.Errorf("OB-01: got %d steps: %+v", len(steps), steps)
	}
	r.advance(time.Hour) // the token expires, and the client refreshes after the error
	p.calls(g, tokens["access_token"], callList)
	if status, _ := p.token(refreshForm(tokens["refresh_token"])); status != http.StatusOK {
		t.Fatal("the refresh failed")
	}
	if got := r.lastAttempt(); len(got.Steps) != len(steps) || !got.OK {
		t.Errorf("OB-01: a token that expires and is refreshed is kept: %s", got.Text)
	}
	p.calls(g, "", callList) // another process of the client begins its own attempt
	if all := r.attempts(attempt.Query{}); len(all) != 2 || all[1].Fault != "" {
		t.Errorf("OB-01: got %d attempts: %+v", len(all), all)
	}
}

// TestCallsAreBounded checks that a client that repeats a refused call fills nothing, and hides no
// sign-in of its network. Browsers and search engines begin no attempt.
func TestCallsAreBounded(t *testing.T) {
	r := watched(t)
	p, g := r.person(), r.guarded(testResource)
	req := httptest.NewRequest(http.MethodGet, testResource, nil)
	w := httptest.NewRecorder()
	g.Handler(http.NotFoundHandler()).ServeHTTP(w, req)
	if w.Code != 401 || w.Header().Get("X-Request-Id") == "" || len(r.attempts(attempt.Query{})) != 0 {
		t.Errorf("OB-01: a browser begins an attempt: %d", w.Code)
	}
	for range 200 {
		p.calls(g, "", callList)
	}
	p.signIn()
	r.as.Attempts.Write(context.Background())
	steps, err := r.store.Steps(context.Background(), storage.StepQuery{Until: r.now().Add(time.Hour), Limit: 1000})
	if err != nil || len(steps) < 60 || len(steps) > 80 {
		t.Errorf("OB-01: got %d steps, %v", len(steps), err)
	}
	if got := r.attempts(attempt.Query{Client: "app"}); len(got) != 1 || !got[0].OK {
		t.Errorf("OB-01: the sign-in: got %+v", got)
	}
}

// TestReadingsBeforeRefreshes checks a client that reads the metadata before each refresh. It does
// not count as stopped there, and has no row for its other refreshes.
func TestReadingsBeforeRefreshes(t *testing.T) {
	r := watched(t)
	p := r.person()
	tokens := p.signIn()
	for range 3 {
		r.advance(time.Hour)
		p.get(wellKnown)
		status, out := p.token(refreshForm(tokens["refresh_token"]))
		if status != http.StatusOK {
			t.Fatalf("got %d %v", status, out)
		}
		r.advance(time.Minute)
		if status, out = p.token(refreshForm(out["refresh_token"])); status != http.StatusOK {
			t.Fatalf("got %d %v", status, out)
		}
		tokens = out
	}
	r.advance(time.Hour)
	all := r.attempts(attempt.Query{})
	if len(all) != 1 || !all[0].OK {
		t.Fatalf("OB-01: got %+v", all)
	}
	refreshes := 0
	for _, s := range all[0].Steps {
		if s.Kind == attempt.Refresh {
			refreshes++
		}
	}
	if refreshes != 3 {
		t.Errorf("OB-01: %d refreshes are kept of six", refreshes)
	}
	p.get(wellKnown)
	r.advance(time.Hour)
	if got := r.lastAttempt(); got.Fault != attempt.MetadataOnly {
		t.Errorf("OB-01: a client that goes no further: got %s", got.Fault)
	}
}

// TestResourceMetadataIsAStep checks that the first step is reading the metadata of the MCP server.
func TestResourceMetadataIsAStep(t *testing.T) {
	r := watched(t)
	p, g := r.person(), r.guarded(testResource)
	req := httptest.NewRequest(http.MethodGet, g.MetadataURL(), nil)
	req.RemoteAddr = "127.0.0.1:50000"
	req.Header.Set("User-Agent", "Go-http-client/1.1") // the same as in the other requests
	w := httptest.NewRecorder()
	g.Handler(http.NotFoundHandler()).ServeHTTP(w, req)
	if w.Code != http.StatusOK {
		t.Fatalf("got %d", w.Code)
	}
	r.advance(time.Second)
	p.signIn()
	all := r.attempts(attempt.Query{})
	if len(all) != 1 || !all[0].OK || all[0].Steps[0].Kind != attempt.Discovery ||
		!strings.Contains(all[0].Steps[0].Request.Path, "oauth-protected-resource") {
		t.Errorf("OB-01: got %+v", all)
	}
}
