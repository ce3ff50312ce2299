package assembly

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/collector"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

const (
	agentTrace = "0af7651916cd43dd8448eb211c80319c"
	agentSpan  = "b7ad6b7169203331"
	verifier   = "a-verifier-of-the-app-that-is-long-enough-for-anybody"
	redirect   = "http://127.0.0.1:1/cb"
)

// site is a complete server with traces, a provider, an MCP server behind the gateway, and a
// collector.
type site struct {
	*Server
	*collector.Collector
	provider *fakeidp.Upstream
	mu       sync.Mutex    // guards asked
	asked    []http.Header // requests to the MCP server
	secrets  []string      // sent over the network
}

const siteConfig = `
traces: {enabled: true, endpoint: %q}
login: {local: false}
thirdparty:
  - {id: corp, type: oidc, issuer: %q, client_id: %q, client_secret: %q, scopes: [openid, profile, email, offline_access]}
clients:
  - {id: app, name: App, redirect_uris: [%q], auth_method: none}
resources:
  - uri: http://localhost:8414/mcp
    scopes: [{name: mcp, description: Use the server, default: true}]
    tools: [{name: pay, clearance: {by: person, when: "arguments.amount > 100"}}]
    upstream: {url: %q}
`

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Collector: collector.New(t), provider: fakeidp.Start(t)}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Header)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	}))
	t.Cleanup(upstream.Close)
	file := filepath.Join(t.TempDir(), "mcp-authd.yaml")
	text := fmt.Sprintf(siteConfig, s.Collector.URL, s.provider.URL, s.provider.ClientID,
		s.provider.ClientSecret, redirect, upstream.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Server = measured(t, "MCP_AUTHD_CONFIG="+file)
	return s
}

// agent sends requests to a site in this process, within its own trace if traced is set.
type agent struct {
	http.RoundTripper
	traced bool
}

func (a agent) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.traced {
		r = r.Clone(r.Context())
		r.Header.Set("Traceparent", "00-"+agentTrace+"-"+agentSpan+"-01")
	}
	return a.RoundTripper.RoundTrip(r)
}

var step = regexp.MustCompile(`name="step" value="([^"]*)"`)

// signIn runs a complete client flow: from the 401 through sign-in at the provider to the result of
// a tool.
func (s *site) signIn(t *testing.T, app, person agent) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Transport: person, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	client := &http.Client{Transport: app}
	const issuer = "http://localhost:8414"
	do := func(by *http.Client, method, target string, form url.Values, want int) (string, *http.Response) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if form != nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		resp, err := by.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("%s %s: got %d %.600s, %v", method, target, resp.StatusCode, body, err)
		}
		return string(body), resp
	}
	do(client, http.MethodGet, issuer+"/mcp", nil, http.StatusUnauthorized)
	do(client, http.MethodGet, issuer+"/.well-known/oauth-authorization-server", nil, http.StatusOK)
	challenge := sha256.Sum256([]byte(verifier))
	page, _ := do(browser, http.MethodGet, issuer+"/authorize?"+url.Values{
		"client_id":             {"app"},
		"response_type":         {"code"},
		"redirect_uri":          {redirect},
		"scope":                 {"mcp"},
		"state":                 {"SECRET-state"},
		"resource":              {issuer + "/mcp"},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(challenge[:])},
		"code_challenge_method": {"S256"},
	}.Encode(), nil, http.StatusOK)
	sealed := step.FindStringSubmatch(page)
	if sealed == nil {
		t.Fatalf("no form: %s", page)
	}
	_, away := do(browser, http.MethodPost, issuer+"/consent", url.Values{
		"step": {html.UnescapeString(sealed[1])}, "decision": {"approve"},
	}, http.StatusSeeOther)
	back, err := s.provider.Visit(away.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	page, _ = do(browser, http.MethodGet, back.String(), nil, http.StatusOK) // it names the account
	if sealed = step.FindStringSubmatch(page); sealed == nil {
		t.Fatalf("no form: %s", page)
	}
	_, done := do(browser, http.MethodPost, issuer+"/consent", url.Values{
		"step": {html.UnescapeString(sealed[1])}, "decision": {"approve"},
	}, http.StatusSeeOther)
	for done.Request.URL.Path != "/authorize" && !strings.HasPrefix(done.Header.Get("Location"), redirect) {
		next, err := done.Location()
		if err != nil {
			t.Fatal(err)
		}
		_, done = do(browser, http.MethodGet, next.String(), nil, http.StatusSeeOther)
	}
	at, err := done.Location()
	if err != nil {
		t.Fatal(err)
	}
	body, _ := do(client, http.MethodPost, issuer+"/token", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"app"}, "redirect_uri": {redirect},
		"code": {at.Query().Get("code")}, "code_verifier": {verifier}, "resource": {issuer + "/mcp"},
	}, http.StatusOK)
	var tokens struct {
		Access string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(body), &tokens); err != nil || tokens.Access == "" {
		t.Fatalf("got %s, %v", body, err)
	}
	s.secrets = []string{
		at.Query().Get("code"), back.Query().Get("code"), back.Query().Get("state"), verifier, tokens.Access,
		"SECRET", fakeidp.Alice.Email, fakeidp.Alice.Name,
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, issuer+"/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":"SECRET"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+tokens.Access)
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v", resp, err)
	}
	resp.Body.Close()
}

// TestOneTrace checks that the sign-in of a traced client is one trace through guard, server,
// provider and store (OB-08, RS-213). The trace continues at the MCP server, and contains no secret
// that was sent.
func TestOneTrace(t *testing.T) {
	s := newSite(t)
	traced := agent{inProcess{s.Handler()}, true}
	s.signIn(t, traced, traced)
	s.Close()
	ids, names := map[string]bool{agentSpan: true}, map[string]int{}
	for _, span := range s.Spans() {
		ids[span.ID] = true
		names[span.Kind+" "+span.Name]++
		if c := span.Attributes["mcp_authd.connector"]; c != "" {
			names["provider "+c]++
		}
	}
	for _, span := range s.Spans() {
		if span.Trace != agentTrace || !ids[span.Parent] {
			t.Errorf("%s is in the trace %s below %s", span.Name, span.Trace, span.Parent)
		}
	}
	for _, want := range []string{
		"SPAN_KIND_SERVER GET /mcp", "SPAN_KIND_INTERNAL guard", "SPAN_KIND_SERVER GET /authorize",
		"SPAN_KIND_SERVER POST /consent", "SPAN_KIND_SERVER GET /callback/{provider}", "provider corp",
		"SPAN_KIND_CLIENT Arrive", "SPAN_KIND_SERVER POST /token", "SPAN_KIND_CLIENT RedeemCode",
		"SPAN_KIND_INTERNAL sign", "SPAN_KIND_SERVER POST /mcp", "SPAN_KIND_SERVER tools/call add",
	} {
		if names[want] == 0 {
			t.Errorf("the span %s is missing among %v", want, names)
		}
	}
	text := fmt.Sprintf("%+v", s.Spans())
	for _, secret := range s.secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in the spans", secret)
		}
	}
	parent := s.asked[len(s.asked)-1].Get("Traceparent")
	if p := strings.Split(parent, "-"); len(p) != 4 || p[1] != agentTrace || !ids[p[2]] || p[2] == agentSpan {
		t.Errorf("the MCP server continues with %s", parent)
	}
}

// TestTraceOfABrowser checks that the steps of an untraced browser for one authorization request
// form one trace, including provider and store (OB-08).
func TestTraceOfABrowser(t *testing.T) {
	s := newSite(t)
	plain := agent{inProcess{s.Handler()}, false}
	s.signIn(t, plain, plain)
	s.Close()
	of := map[string][]string{}
	for _, span := range s.Spans() {
		if span.Attributes["mcp_authd.connector"] != "" {
			span.Name = "provider"
		}
		of[span.Name] = append(of[span.Name], span.Trace)
	}
	trace := of["POST /consent"][0]
	for _, name := range []string{"GET /authorize", "GET /callback/{provider}", "Arrive", "provider"} {
		if !slices.Contains(of[name], trace) {
			t.Errorf("%s is in %v, and the consent in %s", name, of[name], trace)
		}
	}
	if slices.Contains(of["POST /token"], trace) || slices.Contains(of["tools/call add"], trace) {
		t.Error("the application is in the trace of the browser without having named it")
	}
}
