package zoo

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// replay replays one client. It holds the client's state between steps.
type replay struct {
	*way
	row *row
	key *rsa.PrivateKey // for clients that sign

	clientID, secret, method string
	verifier, code           string
	access, refresh, scope   string
}

// server is the server that a client uses.
type server struct {
	issuer, mcp, username, password string
}

func of(d *demotest.Demo) server { return server{d.Issuer, d.MCPURL, d.Username, d.Password} }

// reply is a JSON response.
type reply struct {
	status  int
	header  http.Header
	raw     []byte
	members map[string]any
}

func (r reply) text(name string) string {
	s, _ := r.members[name].(string) // no test expects ""
	return s
}

func (r reply) list(name string) (out []string) {
	items, _ := r.members[name].([]any)
	for _, item := range items {
		s, _ := item.(string)
		out = append(out, s)
	}
	return out
}

func do(t *testing.T, req *http.Request) reply {
	t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(req) // none of these clients follows a redirect here
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode, header: resp.Header}
	if r.raw, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media == "application/json" {
		if err := json.Unmarshal(r.raw, &r.members); err != nil {
			t.Fatalf("%s %s: %v\n%s", req.Method, req.URL, err, r.raw)
		}
	}
	return r
}

// plain matches text that needs no encoding in a query or in Basic. Clients differ in whether they
// encode (VS Code reads the code raw).
var plain = regexp.MustCompile(`^[A-Za-z0-9._-]{1,499}$`)

// register sends the client's own registration request and checks everything that any client needs
// in the response.
func (r *replay) register(t *testing.T, s server) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.issuer+"/register",
		bytes.NewReader(r.Registration))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	got := do(t, req)
	if got.status != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", got.status, got.raw)
	}
	if cc := got.header.Get("Cache-Control"); cc != "no-store" {
		t.Errorf("Cache-Control is %q", cc)
	}
	var asked struct {
		Name      string   `json:"client_name"`
		Method    string   `json:"token_endpoint_auth_method"`
		Redirects []string `json:"redirect_uris"`
	}
	if err := json.Unmarshal(r.Registration, &asked); err != nil {
		t.Fatal(err)
	}
	for _, name := range r.Required {
		// client_secret is checked below, where it is known whether it is required.
		if _, ok := got.members[name]; !ok && name != "client_secret" {
			t.Errorf("the reply lacks %s: %s", name, got.raw)
		}
	}
	noNulls(t, "", got.members)
	r.clientID, r.secret, r.method = got.text("client_id"), got.text("client_secret"),
		got.text("token_endpoint_auth_method")
	if !plain.MatchString(r.clientID) {
		t.Errorf("client_id %q is too long, or needs encoding", r.clientID)
	}
	if g := got.list("redirect_uris"); !slices.Equal(g, asked.Redirects) {
		t.Errorf("redirect_uris: got %q, want them verbatim: %q", g, asked.Redirects)
	}
	if g := got.list("grant_types"); len(g) < 2 || g[0] != "authorization_code" ||
		!slices.Contains(g, "refresh_token") {
		t.Errorf("grant_types: got %q, want authorization_code first and refresh_token", g)
	}
	if g := got.list("response_types"); !slices.Equal(g, []string{"code"}) {
		t.Errorf("response_types: got %q", g)
	}
	if g := got.text("client_name"); g != asked.Name {
		t.Errorf("client_name: got %q, want %q", g, asked.Name)
	}
	if want := orNone(asked.Method); r.method != want {
		t.Errorf("token_endpoint_auth_method: got %q, want %q", r.method, want)
	}
	_, hasSecret := got.members["client_secret"]
	expires, hasExpiry := got.members["client_secret_expires_at"]
	switch {
	case r.method == "none" && (hasSecret || hasExpiry):
		t.Errorf("a public client got a secret: %s", got.raw)
	case r.method != "none" && (!plain.MatchString(r.secret) || expires != float64(0)):
		t.Errorf("a confidential client got no secret, or one that expires: %s", got.raw)
	}
}

func orNone(method string) string {
	if method == "" {
		return "none"
	}
	return method
}

// noNulls checks that a response has no null: clients that validate with zod or pydantic fail on
// it.
func noNulls(t *testing.T, path string, v any) {
	t.Helper()
	switch v := v.(type) {
	case nil:
		t.Errorf("%s is null", path)
	case map[string]any:
		for name, member := range v {
			noNulls(t, path+"."+name, member)
		}
	case []any:
		for _, item := range v {
			noNulls(t, path+"[]", item)
		}
	}
}

// fill replaces the placeholders of a fixture.
func (r *replay) fill(s server, value string) string {
	return strings.NewReplacer(
		"{CLIENT_ID}", r.clientID, "{CLIENT_SECRET}", r.secret, "{CODE}", r.code, "{VERIFIER}", r.verifier,
		"{CHALLENGE}", oauth.ChallengeS256(r.verifier), "{REFRESH_TOKEN}", r.refresh, "{GRANTED_SCOPE}", r.scope,
		"{RESOURCE}", s.mcp, "{RESOURCE_NOSLASH}", s.mcp, "{RESOURCE_SLASH}", s.mcp+"/", "{MCP_URL}", s.mcp,
	).Replace(value)
}

// authorizeURL returns the URL that the client opens in a browser.
func (r *replay) authorizeURL(s server) string {
	r.verifier = r.newVerifier()
	query := url.Values{}
	var raw strings.Builder
	for name, value := range r.Authorize {
		value = r.fill(s, value)
		if r.Unencoded && (name == "redirect_uri" || name == "resource") {
			raw.WriteString("&" + name + "=" + value)
			continue
		}
		query.Set(name, value)
	}
	return s.issuer + "/authorize?" + query.Encode() + raw.String()
}

func (r *replay) newVerifier() string {
	alphabet := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	if r.VerifierHex {
		alphabet = "0123456789abcdef"
	}
	b := make([]byte, r.VerifierLen)
	rand.Read(b)
	for i := range b {
		b[i] = alphabet[int(b[i])%len(alphabet)]
	}
	return string(b)
}

// signIn makes a user sign in and approve, and takes the code from the response.
func (r *replay) signIn(t *testing.T, s server) {
	t.Helper()
	back, err := demotest.NewPerson(s.username, s.password).Visit(r.authorizeURL(s))
	if err != nil {
		t.Fatal(err)
	}
	got := back.String()
	if rest, ok := strings.CutPrefix(got, r.RedirectURI); !ok || !strings.HasPrefix(rest, "?") {
		t.Fatalf("the browser goes to %s, want %s", got, r.RedirectURI)
	}
	answer, err := url.ParseQuery(back.RawQuery)
	if err != nil {
		t.Fatal(err)
	}
	state, hasState := r.Authorize["state"]
	if answer.Get("state") != state || answer.Has("state") != hasState {
		t.Errorf("state: got %q, want %q", answer.Get("state"), state)
	}
	if answer.Get("iss") != s.issuer {
		t.Errorf("iss: got %q, want %q", answer.Get("iss"), s.issuer)
	}
	if r.code = answer.Get("code"); !plain.MatchString(r.code) {
		t.Fatalf("no code that can be read without decoding in %s", got)
	}
}

// tokenRequest returns the client's request to the token endpoint.
func (r *replay) tokenRequest(t *testing.T, s server, f *request) *http.Request {
	t.Helper()
	form := url.Values{}
	posted := false
	for name, value := range f.Body {
		form.Set(name, r.fill(s, value))
		posted = posted || strings.Contains(value, "{CLIENT_SECRET}")
	}
	if r.change != nil {
		r.change(form)
	}
	if r.sign {
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", r.assertion(t, s))
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.issuer+"/token",
		strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	switch {
	case strings.HasPrefix(f.Authorization, "Basic base64(urlencode({CLIENT_ID})+':')"):
		req.Header.Set("Authorization", basic(url.QueryEscape(r.clientID), ""))
	case f.Authorization != "":
		t.Fatalf("the fixture has an Authorization header that this test does not know: %s", f.Authorization)
	case r.method == "client_secret_basic" && !posted:
		// In these fixtures the reply determines the authentication method.
		req.Header.Set("Authorization", basic(r.clientID, r.secret))
	}
	return req
}

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}

// keyID is the id of the key in the set that newKey publishes.
const keyID = "zoo"

func (r *replay) assertion(t *testing.T, s server) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: r.key},
		(&jose.SignerOptions{}).WithHeader("kid", keyID).WithType("JWT"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signed, err := jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: r.clientID, Subject: r.clientID, Audience: jwt.Audience{s.issuer}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(time.Minute)),
	}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// takeTokens checks a token response and stores its tokens.
func (r *replay) takeTokens(t *testing.T, got reply) {
	t.Helper()
	if got.status != http.StatusOK {
		t.Fatalf("got %d %s, want 200", got.status, got.raw)
	}
	noNulls(t, "", got.members)
	if got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control is %q", got.header.Get("Cache-Control"))
	}
	if g := got.text("token_type"); g != "Bearer" {
		t.Errorf("token_type: got %q", g)
	}
	// Claude Code, VS Code and Gemini refresh before every request below 300 s.
	if n, ok := got.members["expires_in"].(float64); !ok || n <= 300 {
		t.Errorf("expires_in: got %v", got.members["expires_in"])
	}
	if r.scope = got.text("scope"); r.scope == "" {
		t.Errorf("no scope: %s", got.raw)
	}
	r.access = got.text("access_token")
	if fresh := got.text("refresh_token"); !plain.MatchString(fresh) || fresh == r.refresh {
		t.Fatalf("no new refresh token: %s", got.raw)
	} else {
		r.refresh = fresh
	}
}

// exchange redeems the code.
func (r *replay) exchange(t *testing.T, s server) {
	t.Helper()
	r.refresh = ""
	r.takeTokens(t, do(t, r.tokenRequest(t, s, r.Token)))
}

// renew refreshes like the client. Parallel refreshes must get the same response.
func (r *replay) renew(t *testing.T, s server) {
	t.Helper()
	if !r.ParallelRefresh {
		r.takeTokens(t, do(t, r.tokenRequest(t, s, r.Refresh)))
		return
	}
	const parallel = 3
	requests, replies := make([]*http.Request, parallel), make(chan reply, parallel)
	for i := range requests {
		requests[i] = r.tokenRequest(t, s, r.Refresh)
	}
	for _, req := range requests {
		go func() {
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				replies <- reply{raw: []byte(err.Error())}
				return
			}
			defer resp.Body.Close()
			got := reply{status: resp.StatusCode, header: resp.Header}
			got.raw, _ = io.ReadAll(resp.Body)    // missing content is detected below
			json.Unmarshal(got.raw, &got.members) // likewise
			replies <- got
		}()
	}
	first := <-replies
	for range parallel - 1 {
		if next := <-replies; next.status != first.status || !sameTokens(next, first) {
			t.Errorf("AS-96 the same refresh token, two replies: %s and %s", first.raw, next.raw)
		}
	}
	r.takeTokens(t, first)
}

// sameTokens ignores expires_in, which is the remaining time and may differ by a second.
func sameTokens(a, b reply) bool {
	for _, name := range []string{"access_token", "refresh_token", "scope", "token_type", "error"} {
		if a.text(name) != b.text(name) {
			return false
		}
	}
	return true
}

// call opens an MCP session and calls a tool that returns the caller.
func (r *replay) call(t *testing.T, s server) {
	t.Helper()
	got := r.post(t, s, nil,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"zoo","version":"1"}}}`)
	if got.status != http.StatusOK {
		t.Fatalf("initialize: got %d %s", got.status, got.raw)
	}
	got = r.post(t, s,
		map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "whoami"},
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if got.status != http.StatusOK || !bytes.Contains(got.raw, []byte(`"client":"`+r.clientID+`"`)) {
		t.Errorf("whoami: got %d %s, want the client %s", got.status, got.raw, r.clientID)
	}
}

func (r *replay) post(t *testing.T, s server, header map[string]string, body string) reply {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.mcp, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if r.access != "" {
		req.Header.Set("Authorization", "Bearer "+r.access)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	return do(t, req)
}

// deadRefresh: the grant was lost with the database, but the client was not. Only invalid_grant
// makes the clients of go-sdk and rmcp sign in again.
func (r *replay) deadRefresh(t *testing.T, s server) {
	t.Helper()
	if got := do(t, r.tokenRequest(t, s, r.Refresh)); got.status != http.StatusBadRequest ||
		got.text("error") != "invalid_grant" {
		t.Errorf("the lost refresh token: got %d %s, want 400 invalid_grant", got.status, got.raw)
	}
}
