// Package e2e tests the built binary with real clients and plain HTTP.
package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

const redirect = "http://localhost:3142" // without a path, as in the SDK's example

// client is the SDK's own client with its own OAuth handler. Only the browser is part of the test.
type client struct {
	*mcp.ClientSession
	oauth    auth.OAuthHandler
	logins   atomic.Int32
	scopes   []string // of the last authorization request
	progress atomic.Int32
}

func connect(t *testing.T, d *demotest.Demo, p *demotest.Person) *client {
	t.Helper()
	c := &client{}
	handler, err := c.handler(p)
	if err != nil {
		t.Fatal(err)
	}
	c.oauth = handler
	m := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			c.progress.Add(1)
		},
	})
	c.ClientSession, err = m.Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: d.MCPURL, OAuthHandler: handler}, nil)
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, d.Log())
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// handler returns an OAuth handler that signs in as p.
func (c *client) handler(p *demotest.Person) (*auth.AuthorizationCodeHandler, error) {
	return auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName: "go-sdk e2e", RedirectURIs: []string{redirect},
				GrantTypes:    []string{"authorization_code", "refresh_token"},
				ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
			}},
		RedirectURL: redirect,
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult,
			error) {
			c.logins.Add(1)
			if u, err := url.Parse(args.URL); err == nil {
				c.scopes = strings.Fields(u.Query().Get("scope"))
			}
			back, err := p.Visit(args.URL)
			if err != nil {
				return nil, err
			}
			q := back.Query()
			if q.Get("error") != "" {
				return nil, fmt.Errorf("authorization: %s", back)
			}
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
}

func (c *client) call(t *testing.T, tool string, args map[string]any, into any) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if r.IsError {
		t.Fatalf("%s: %+v", tool, r.Content[0])
	}
	b, _ := json.Marshal(r.StructuredContent)
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %s: %v", tool, b, err)
	}
}

type caller struct {
	Subject, Client, Issuer string
	Scopes                  []string
}

func TestGoSDKClient(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	c := connect(t, d, d.Person())
	var who caller
	t.Run("discovery, registration, sign-in and a tool call", func(t *testing.T) {
		c.call(t, "whoami", nil, &who)
		if who.Issuer != d.Issuer || !strings.HasPrefix(who.Subject, "usr_") ||
			!strings.HasPrefix(who.Client, "mcp_") || !slices.Equal(who.Scopes, []string{"mcp"}) {
			t.Errorf("got %+v", who)
		}
		if n := c.logins.Load(); n != 1 {
			t.Errorf("signed in %d times, want once", n)
		}
	})
	t.Run("RS-28 AS-114 step-up after 403, with the union of scopes", func(t *testing.T) {
		var notes struct{ Notes []string }
		c.call(t, "add_note", map[string]any{"text": "remember the milk"}, &notes)
		if !slices.Equal(notes.Notes, []string{"remember the milk"}) || c.logins.Load() != 2 {
			t.Errorf("got %v after %d sign-ins", notes.Notes, c.logins.Load())
		}
		if !slices.Contains(c.scopes, "mcp") || !slices.Contains(c.scopes, "notes:write") {
			t.Errorf("the step-up asked for %v", c.scopes)
		}
		c.call(t, "whoami", nil, &who)
		if !slices.Contains(who.Scopes, "notes:write") {
			t.Errorf("got %v", who.Scopes)
		}
	})
	t.Run("progress of a slow tool arrives", func(t *testing.T) {
		params := &mcp.CallToolParams{Name: "slow_count", Arguments: map[string]any{"to": 3, "milliseconds": 50}}
		params.SetProgressToken("p1")
		if r, err := c.CallTool(t.Context(), params); err != nil || r.IsError {
			t.Fatalf("got %+v, %v", r, err)
		}
		wait.Until(t, "three progress messages have arrived", func() bool { return c.progress.Load() >= 3 })
		if n := c.progress.Load(); n != 3 {
			t.Errorf("got %d progress messages, want 3", n)
		}
	})
	t.Run("RS-44 AS-226 after revocation the client signs in again", func(t *testing.T) {
		source, err := c.oauth.TokenSource(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		token, err := source.Token()
		if err != nil {
			t.Fatal(err)
		}
		before := c.logins.Load()
		if status, out := post(t, d.Issuer+"/revoke",
			url.Values{"token": {token.AccessToken}, "client_id": {who.Client}}); status != http.StatusOK {
			t.Fatalf("revoke: %d %v", status, out)
		}
		c.call(t, "whoami", nil, &who)
		if n := c.logins.Load(); n != before+1 {
			t.Errorf("signed in %d times after revocation, want once", n-before)
		}
	})
	t.Run("AS-06 the log holds no password", func(t *testing.T) {
		if strings.Contains(d.Log(), d.Password) {
			t.Error("it does")
		}
	})
}

func TestGoSDKRefresh(t *testing.T) {
	// x/oauth2 treats a token as expired ten seconds early, so this token is used for two seconds.
	d := demotest.Start(t, demotest.Options{
		Env: []string{"MCP_AUTHD_TOKENS_ACCESS_TTL=12s", "MCP_AUTHD_AUDIT_DETAIL=full"}, // a line for each refresh
	})
	c := connect(t, d, d.Person())
	var who caller
	c.call(t, "whoami", nil, &who)
	wait.Until(t, "AS-94 the token is refreshed", func() bool {
		c.call(t, "whoami", nil, &who)
		return strings.Contains(d.Log(), "token.refreshed")
	})
	if n := c.logins.Load(); n != 1 {
		t.Errorf("AS-94 the person signed in %d times, want once", n)
	}
}

func TestDenied(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	p := d.Person()
	p.Decision = "deny"
	back, err := p.Visit(d.Issuer + "/authorize?" + authorizeQuery(t, d, register(t, d)).Encode())
	if err != nil {
		t.Fatal(err)
	}
	if q := back.Query(); q.Get("error") != "access_denied" || q.Get("iss") != d.Issuer || q.Has("code") {
		t.Errorf("AS-41: got %s", back)
	}
}

// register registers a public client and returns its id.
func register(t *testing.T, d *demotest.Demo) string {
	t.Helper()
	body := fmt.Sprintf(`{"client_name":"e2e","redirect_uris":[%q],"token_endpoint_auth_method":"none"}`, redirect)
	resp, err := http.Post(d.Issuer+"/register", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct {
		ClientID string `json:"client_id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("register: %s %v", resp.Status, err)
	}
	return out.ClientID
}
