package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// client is the MCP SDK's own client with its own OAuth handler. The user signs in with a Chromium.
type client struct {
	*mcp.ClientSession
	app    *app
	oauth  auth.OAuthHandler
	logins int
	asked  []mcp.ElicitParams      // links that it was asked to show
	follow func(link string) error // the user's action for them; nil: decline
}

// connectClient makes an application discover, register, sign in a user and open a session. The
// session lasts as long as the installation.
func (i *installation) connectClient(t *testing.T, p *person) *client {
	t.Helper()
	c := &client{app: newApp(i.t)}
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName: "An application", RedirectURIs: []string{c.app.redirect()},
				GrantTypes:    []string{"authorization_code", "refresh_token"},
				ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
			}},
		RedirectURL: c.app.redirect(),
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult,
			error) {
			c.logins++
			shown, err := p.open(args.URL)
			if err == nil {
				shown, err = p.goOn(shown)
			}
			if err != nil || !shown.Back {
				return nil, fmt.Errorf("the browser is not back: %w, but at %s:\n%s", err, shown.URL, shown.Text)
			}
			q := <-c.app.answers
			if q.Get("error") != "" {
				return nil, fmt.Errorf("authorization: %s: %s", q.Get("error"), q.Get("error_description"))
			}
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.oauth = handler
	m := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}},
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			c.asked = append(c.asked, *r.Params)
			if c.follow == nil {
				return &mcp.ElicitResult{Action: "decline"}, nil
			}
			return &mcp.ElicitResult{Action: "accept"}, c.follow(r.Params.URL)
		},
	})
	// The client's stream for server messages would end with the token, and cause an unexpected
	// sign-in.
	c.ClientSession, err = m.Connect(i.t.Context(),
		&mcp.StreamableClientTransport{Endpoint: i.mcpURL, OAuthHandler: handler, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	i.t.Cleanup(func() { c.Close() })
	return c
}

func call[T any](t *testing.T, c *client, tool string, args any) (out T) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	b, _ := json.Marshal(r.StructuredContent)
	if r.IsError || json.Unmarshal(b, &out) != nil {
		b, _ = json.Marshal(r)
		t.Fatalf("%s: %s", tool, b)
	}
	return out
}

// token returns the client's access token.
func (c *client) token(t *testing.T) string {
	t.Helper()
	source, err := c.oauth.TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	token, err := source.Token()
	if err != nil {
		t.Fatal(err)
	}
	return token.AccessToken
}

// The functions below are an application that speaks plain HTTP, for tests that must see or send
// requests that a library would not send.

const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636 appendix B

// register registers a public client and returns its id.
func (i *installation) register(t *testing.T, name, redirect string) string {
	t.Helper()
	body, _ := json.Marshal(map[string]any{
		"client_name": name, "redirect_uris": []string{redirect}, "token_endpoint_auth_method": "none",
	})
	resp, err := http.Post(i.issuer+"/register", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct {
		ClientID string `json:"client_id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || out.ClientID == "" {
		t.Fatalf("register: %s %v", resp.Status, err)
	}
	return out.ClientID
}

// link returns the URL of an authorization request.
func (i *installation) link(clientID, redirect string, change ...string) string {
	q := url.Values{
		"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {redirect}, "state": {"s"},
		"resource":       {i.mcpURL},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {oauth.S256}, "scope": {"mcp"},
	}
	for n := 0; n+1 < len(change); n += 2 {
		q.Set(change[n], change[n+1])
	}
	return i.issuer + "/authorize?" + q.Encode()
}

func post(t *testing.T, target string, form url.Values) (int, map[string]any) {
	t.Helper()
	resp, err := http.PostForm(target, form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	var out map[string]any
	if len(body) > 0 && json.Unmarshal(body, &out) != nil {
		t.Fatalf("%s answered %s: %s", target, resp.Status, body)
	}
	return resp.StatusCode, out
}

// grant holds an application's tokens.
type grant struct{ clientID, access, refresh string }

func (i *installation) redeem(t *testing.T, clientID, redirect, code string) grant {
	t.Helper()
	status, out := post(t, i.issuer+"/token", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {clientID}, "code": {code}, "code_verifier": {verifier},
		"redirect_uri": {redirect},
	})
	access, _ := out["access_token"].(string)
	refresh, _ := out["refresh_token"].(string)
	if status != http.StatusOK || access == "" || refresh == "" {
		t.Fatalf("token: %d %v", status, out)
	}
	return grant{clientID, access, refresh}
}

// refreshed refreshes at an address of the server.
func (g *grant) refreshed(t *testing.T, server string) (int, map[string]any) {
	t.Helper()
	status, out := post(t, server+"/token",
		url.Values{"grant_type": {"refresh_token"}, "client_id": {g.clientID}, "refresh_token": {g.refresh}})
	if status == http.StatusOK {
		g.access, _ = out["access_token"].(string)
		g.refresh, _ = out["refresh_token"].(string)
	}
	return status, out
}

// whoami calls a tool with a token and returns the status.
func (i *installation) whoami(t *testing.T, token string) int {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, _ := http.NewRequest(http.MethodPost, i.mcpURL, strings.NewReader(body))
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28",
		"Mcp-Method":           "tools/call", "Mcp-Name": "whoami", "Authorization": "Bearer " + token,
	} {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// lives fails the test unless a token is valid.
func (i *installation) lives(t *testing.T, token string) {
	t.Helper()
	if status := i.whoami(t, token); status != http.StatusOK {
		t.Fatalf("the token is not good: %d", status)
	}
}

// dies waits until a token is refused. Before that the token must be accepted.
func (i *installation) dies(t *testing.T, token string) {
	t.Helper()
	wait.Until(t, "the token is refused", func() bool {
		status := i.whoami(t, token)
		if status != http.StatusUnauthorized && status != http.StatusOK {
			t.Fatalf("got %d", status)
		}
		return status == http.StatusUnauthorized
	})
}

func toolCall(tool string, args any) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: tool, Arguments: args}
}
