package upstream

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/idptest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestGatewayBroker: RS-198, RS-202, RS-203. An MCP server behind the gateway, which does not know
// the sign-in, uses the caller's account at a real provider. It uses a token from the gateway,
// which refreshes it after expiry, and never sends it without the user's consent.
func TestGatewayBroker(t *testing.T) {
	lane.Long(t, "thirdparty tests the broker")
	t.Parallel()
	const ttl = 3 * time.Second
	i := plan(t)
	i.mcpURL = i.issuer + "/calendar"
	up := i.node("node", idptest.Options{Scopes: []string{"calendar"}, TokenTTL: ttl}, map[string]any{
		"broker":      []any{map[string]any{"resource": i.mcpURL, "scopes": []string{"openid", "calendar"}}},
		"check_every": "1h", // so refreshes are only caused by calls
	})
	inner := calendarServer(t, up.Issuer+"/me")
	i.config["resources"] = []any{map[string]any{
		"uri": i.mcpURL, "name": "Calendar",
		"scopes": []any{map[string]any{"name": "mcp", "description": "use it", "default": true}},
		"upstream": map[string]any{"url": inner, "broker": map[string]any{
			"provider": "node", "scopes": []string{"openid", "calendar"}, "client_id": resourceClient,
			"client_secret": resourceSecret,
		}},
	}}
	i.config["clients"].([]any)[0].(map[string]any)["resources"] = []string{i.mcpURL}
	i.start()
	alice := newPerson(t, idptest.Alice)
	a := newApp(t)
	id := i.register(t, "An application", a.redirect())
	signIn := func() string {
		alice.visit(t, i.link(id, a.redirect()))
		return i.redeem(t, id, a.redirect(), a.answer(t).Get("code")).access
	}
	token := signIn()

	links := map[string]string{}
	refused := func(t *testing.T, revision string) {
		t.Helper()
		got := i.callThrough(t, token, revision)
		link := got.link()
		if got.status != http.StatusForbidden || !strings.HasPrefix(link, i.issuer+"/connect/") {
			t.Fatalf("%s: got %d %s, want a link to a page of ours", revision, got.status, got.body)
		}
		if code := got.Error.Code; (code == -32042) != (revision == "2025-11-25") {
			t.Errorf("%s: got the code %d", revision, code)
		}
		links[revision] = link
	}
	passes := func(t *testing.T) {
		t.Helper()
		got := i.callThrough(t, token, "2025-11-25")
		want := `"sub":"` + idptest.Alice.ID + `"`
		if got.status != http.StatusOK || got.Result.Status != http.StatusOK ||
			!strings.Contains(got.Result.Body, want) {
			t.Fatalf("got %d %s, and the provider did not answer with %s", got.status, got.body, want)
		}
		for _, given := range up.Tokens() {
			for name, theirs := range given {
				if strings.Contains(name, "token") && strings.Contains(got.body, theirs) {
					t.Errorf("SP-06: the client has seen the provider's %s", name)
				}
			}
		}
		if got.Result.Ours {
			t.Error("SP-06: the MCP server has seen our token")
		}
	}
	connect := func(t *testing.T, link string) {
		t.Helper()
		shown, err := alice.open(link)
		if err == nil {
			_, err = alice.goOn(shown)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"RS-198 RS-201 before the person has granted it, the client gets the link", func(t *testing.T) {
			refused(t, "2025-06-18")
			refused(t, "2025-11-25")
		}},
		{"RS-200 RS-202 granted there, the call passes with the provider's token", func(t *testing.T) {
			connect(t, links["2025-11-25"])
			passes(t)
		}},
		{"RS-203 a token that has expired is refreshed before the call", func(t *testing.T) {
			given := up.Tokens()
			last, before := given[len(given)-1]["access_token"], up.TokenCalls("refresh_token")
			wait.Until(t, "the provider's token has expired", func() bool {
				return statusOf(t, up.Issuer+"/me", last) == http.StatusUnauthorized
			})
			passes(t)
			if n := up.TokenCalls("refresh_token"); n == before {
				t.Error("it was not refreshed")
			}
		}},
		{"AS-219 revoked at the provider, the token that rests on it ends", func(t *testing.T) {
			up.Revoke(t, idptest.Alice)
			wait.Until(t, "the token is refused", func() bool {
				return i.callThrough(t, token, "2025-11-25").status == http.StatusUnauthorized
			})
		}},
		{"RS-200 signed in again, the client is led to the page again, and on from there", func(t *testing.T) {
			token = signIn()
			refused(t, "2025-11-25")
			connect(t, links["2025-11-25"])
			passes(t)
		}},
	} {
		if !t.Run(step.name, step.do) {
			return
		}
	}
}

// statusOf returns the status of an API's response to a token.
func statusOf(t *testing.T, api, token string) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, api, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// calendarServer starts an MCP server without sign-in. Its only tool calls an API with the
// Authorization header of the request.
func calendarServer(t *testing.T, api string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct{ ID json.RawMessage }
		if json.NewDecoder(r.Body).Decode(&call) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		req, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, api, nil) // the URL of a provider is valid
		req.Header.Set("Authorization", r.Header.Get("Authorization"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": call.ID, "result": map[string]any{
			"status": resp.StatusCode, "body": string(body),
			"ours": strings.Count(r.Header.Get("Authorization"), ".") == 2, // our tokens are JWTs
		}})
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// passed is the result of a call through the gateway.
type passed struct {
	status int
	body   string
	Result struct {
		Status int
		Body   string
		Ours   bool
	}
	Error struct {
		Code    int
		Message string
		Data    struct{ Elicitations []struct{ Mode, URL string } }
	}
}

// link returns the link that the client must show to its user, or "".
func (p *passed) link() string {
	if all := p.Error.Data.Elicitations; len(all) == 1 && all[0].Mode == "url" {
		return all[0].URL
	}
	_, link, _ := strings.Cut(p.Error.Message, "Open: ")
	if u, err := url.Parse(link); err != nil || u.RawQuery != "" {
		return ""
	}
	return link
}

// callThrough calls the tool of the server behind the gateway.
func (i *installation) callThrough(t *testing.T, token, revision string) (out passed) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, i.mcpURL, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calendar","arguments":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": revision, "Authorization": "Bearer " + token,
	} {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("%s %s: %w", resp.Status, body, err))
	}
	out.status, out.body = resp.StatusCode, string(body)
	return out
}
