package gosdk

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pipetest"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const issuer = "https://auth.example.com"

// rig is a guarded SDK server; the token names the caller, as "subject scope scope".
type rig struct {
	*httptest.Server
	guard   *mcpresource.Guard
	adapter *Adapter
	handler http.Handler

	mu      sync.Mutex // guards headers
	headers []http.Header
}

// newRig returns a rig with two tools, open and secret, and additions by more.
func newRig(t *testing.T, o *Options, more ...func(*mcp.Server)) *rig {
	t.Helper()
	return newRigOf(t, func(*mcpresource.Config) {}, o, more...)
}

func newRigOf(t *testing.T, change func(*mcpresource.Config), o *Options, more ...func(*mcp.Server)) *rig {
	t.Helper()
	r := &rig{}
	mux := http.NewServeMux()
	if pipetest.InBubble() {
		r.Server = pipetest.NewServer(t, &http.Server{Handler: mux}).Server
	} else {
		r.Server = httptest.NewServer(mux)
		t.Cleanup(r.Close)
	}
	c := mcpresource.Config{
		Resource: r.URL + "/mcp", AuthorizationServers: []string{issuer},
		Policy: &mcpresource.Rules{Base: []string{"mcp"}, Tools: map[string][]string{"secret": {"deep"}}},
		Validator: mcpresource.ValidatorFunc(
			func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
				parts := strings.Split(c.Token, "-")
				return r.principal(parts[0], parts[1:]...), nil
			}),
	}
	change(&c)
	var err error
	if r.guard, err = mcpresource.New(c); err != nil {
		t.Fatal(err)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	answer := func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		r.mu.Lock()
		r.headers = append(r.headers, req.Extra.Header)
		r.mu.Unlock()
		p, ok := Principal(req)
		if !ok {
			return &mcp.CallToolResult{IsError: true}, nil, nil
		}
		return &mcp.CallToolResult{
			Content: []mcp.Content{&mcp.TextContent{Text: p.Subject + " " + p.Scopes.String()}}}, nil, nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "open"}, answer)
	mcp.AddTool(s, &mcp.Tool{Name: "secret"}, answer)
	for _, add := range more {
		add(s)
	}
	r.adapter = New(r.guard, s, o)
	r.handler = r.adapter.HTTP()
	r.guard.Register(mux, r.handler)
	return r
}

func (r *rig) principal(subject string, scopes ...string) *mcpresource.Principal {
	return &mcpresource.Principal{
		Issuer: issuer, Subject: subject, ClientID: "app", Scopes: scopes, Audience: []string{r.URL + "/mcp"},
		ExpiresAt: time.Now().Add(time.Hour),
	}
}

// post sends one JSON-RPC message over plain HTTP and returns status, body and session.
func (r *rig) post(t *testing.T, token, version, session, body string) (int, string, string) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodPost, r.URL+"/mcp", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	if version != "" {
		req.Header.Set("Mcp-Protocol-Version", version)
	}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	var m struct {
		Method string
		Params struct{ Name string }
	}
	json.Unmarshal([]byte(body), &m)
	req.Header.Set("Mcp-Method", m.Method)
	if m.Params.Name != "" {
		req.Header.Set("Mcp-Name", m.Params.Name)
	}
	resp, err := r.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), resp.Header.Get("Mcp-Session-Id")
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func (r *rig) initialize(t *testing.T, token string) (session string) {
	t.Helper()
	return r.initializeAt(t, token, "2025-11-25")
}

func (r *rig) initializeAt(t *testing.T, token, version string) (session string) {
	t.Helper()
	status, body, session := r.post(t, token, "", "",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+
			`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if status != 200 || session == "" {
		t.Fatalf("initialize: %d %s", status, body)
	}
	r.post(t, token, version, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return session
}

func TestBothErasOnOneURL(t *testing.T) {
	r := newRig(t, nil)
	t.Run("RS-99 RS-108 a session of 2025-11-25", func(t *testing.T) {
		session := r.initialize(t, "alice-mcp")
		status, body, _ := r.post(t, "alice-mcp", "2025-11-25", session,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"open","arguments":{}}}`)
		if status != 200 || !strings.Contains(body, "alice mcp") {
			t.Errorf("got %d %s", status, body)
		}
	})
	t.Run("RS-137 RS-140 RS-160 a stateless call of 2026-07-28", func(t *testing.T) {
		status, body, session := r.post(t, "alice-mcp", "2026-07-28", "",
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"open","arguments":{},`+modernMeta+`}}`)
		if status != 200 || session != "" || !strings.Contains(body, "alice mcp") {
			t.Errorf("got %d %q %s", status, session, body)
		}
	})
}

func TestIdentityIsPerRequest(t *testing.T) {
	r := newRig(t, nil)
	session := r.initialize(t, "alice-mcp-deep")
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"%s","arguments":{}}}`
	t.Run("RS-38 the scopes are those of this request, not of the one that opened the session", func(t *testing.T) {
		_, body, _ := r.post(t, "alice-mcp", "2025-11-25", session, strings.Replace(call, "%s", "open", 1))
		if !strings.Contains(body, `alice mcp"`) {
			t.Errorf("got %s", body)
		}
		if status, _, _ := r.post(t, "alice-mcp", "2025-11-25", session,
			strings.Replace(call, "%s", "secret", 1)); status != 403 {
			t.Errorf("a narrower token in the session: got %d, want 403", status)
		}
	})
	t.Run("RS-112 another person in the session is 404", func(t *testing.T) {
		if status, body, _ := r.post(t, "bob-mcp", "2025-11-25", session,
			strings.Replace(call, "%s", "open", 1)); status != 404 {
			t.Errorf("got %d %s", status, body)
		}
	})
	t.Run("RS-49 SP-06 tools never see the token", func(t *testing.T) {
		if len(r.headers) == 0 {
			t.Fatal("no tool was called")
		}
		for _, h := range r.headers {
			if h.Get("Authorization") != "" {
				t.Errorf("got %q", h.Get("Authorization"))
			}
		}
	})
}

// naming is a Decisions that returns the same reference for every refusal.
type naming struct{ refused []oauth.Decision }

func (n *naming) Refused(_ *http.Request, d oauth.Decision) string {
	n.refused = append(n.refused, d)
	return "K7PX2M4Q"
}

func (n *naming) LetThrough(context.Context, oauth.Decision) {}

// TestSecondCheck bypasses the guard, like a body that guard and SDK read differently: the decoded
// call is checked again.
func TestSecondCheck(t *testing.T) {
	n := &naming{}
	r := newRigOf(t, func(c *mcpresource.Config) { c.Decisions, c.StructuredDenials = n, true }, nil)
	serve := func(p *mcpresource.Principal, tool string) string {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{},` +
			modernMeta + `}}`
		req := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
		for k, v := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
		} {
			req.Header.Set(k, v)
		}
		if p != nil {
			req = req.WithContext(mcpresource.NewContext(req.Context(), p))
		}
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, req)
		return w.Body.String()
	}
	t.Run("RS-43 without the scope", func(t *testing.T) {
		if body := serve(r.principal("alice", "mcp"), "secret"); !strings.Contains(body, "insufficient_scope") ||
			strings.Contains(body, "alice") {
			t.Errorf("got %s", body)
		}
	})
	t.Run("OB-02 RS-214 the refusal has a reference, and says what SEP-2643 does", func(t *testing.T) {
		n.refused = nil
		body := serve(r.principal("alice", "mcp"), "secret")
		for _, want := range []string{
			"Reference: K7PX2M4Q.", `"reference":"K7PX2M4Q"`, `"authorizationContextId":"K7PX2M4Q"`,
			`"credentialDisposition":"replacement"`, `"scope":"`,
		} {
			if !strings.Contains(body, want) {
				t.Errorf("no %s in %s", want, body)
			}
		}
		if len(n.refused) != 1 {
			t.Fatalf("got %+v", n.refused)
		}
		d := n.refused[0]
		if d.Status != 403 || d.Error != oauth.InsufficientScope || d.Name != "secret" || d.Subject != "alice" ||
			d.Outcome != "insufficient_scope" || d.Resource != r.URL+"/mcp" {
			t.Errorf("got %+v", d)
		}
	})
	t.Run("RS-38 without a caller", func(t *testing.T) {
		if body := serve(nil, "open"); !strings.Contains(body, "invalid_token") {
			t.Errorf("got %s", body)
		}
	})
	t.Run("RS-43 with the scope", func(t *testing.T) {
		if body := serve(r.principal("alice", "mcp", "deep"), "secret"); !strings.Contains(body, "alice mcp deep") {
			t.Errorf("got %s", body)
		}
	})
}

func TestLists(t *testing.T) {
	list := func(r *rig, token, version, session string) (names []string, scope string) {
		body := `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{}}`
		if version == "2026-07-28" {
			body = `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{` + modernMeta + `}}`
		}
		_, out, _ := r.post(t, token, version, session, body)
		if i := strings.Index(out, "data: {"); i >= 0 {
			out = out[i+len("data: "):]
		}
		var m struct {
			Result struct {
				CacheScope string
				Tools      []struct{ Name string }
			}
		}
		if err := json.NewDecoder(strings.NewReader(out)).Decode(&m); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		for _, tool := range m.Result.Tools {
			names = append(names, tool.Name)
		}
		return names, m.Result.CacheScope
	}
	r := newRig(t, nil)
	for version, session := range map[string]string{"2026-07-28": "", "2025-11-25": r.initialize(t, "alice-mcp")} {
		t.Run("RS-53 RS-54 RS-57 lists follow the scopes and are private: "+version, func(t *testing.T) {
			names, scope := list(r, "alice-mcp", version, session)
			if len(names) != 1 || names[0] != "open" || version == "2026-07-28" && scope != "private" {
				t.Errorf("got %v %q", names, scope)
			}
			if names, _ := list(r, "alice-mcp-deep", version, session); len(names) != 2 {
				t.Errorf("with the scope: got %v", names)
			}
		})
	}
	t.Run("RS-56 ShowAll lists what a call would be challenged for", func(t *testing.T) {
		if names, _ := list(newRig(t, &Options{ShowAll: true}), "alice-mcp", "2026-07-28", ""); len(names) != 2 {
			t.Errorf("got %v", names)
		}
	})
}
