package mcpclient_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpclient"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// A GitHub Actions job calls an MCP server with the official SDK. In this example, a function plays
// GitHub.
func Example() {
	server := exampleServer() // yours: "https://mcp.example.com/mcp"
	defer server.Close()
	ctx := context.Background()
	c, err := mcpclient.Workload(ctx, mcpclient.Config{
		Server: server.URL + "/mcp",
		Token:  mcpclient.PlatformTokenFunc(exampleToken), // yours: mcpclient.GitHubActions()
	})
	if err != nil {
		log.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "nightly", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: server.URL + "/mcp", HTTPClient: c.HTTPClient(),
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, tool := range tools.Tools {
		fmt.Println(tool.Name)
	}
	// Output: whoami
}

// A desktop program signs its user in and stays signed in. The browser opens once; the program may
// start again, and call tools that need more scopes or an approval.
func ExampleNewPerson() {
	dir, err := os.UserConfigDir()
	if err != nil {
		log.Fatal(err)
	}
	p, err := mcpclient.NewPerson(mcpclient.PersonConfig{
		Server:     "https://mcp.example.com/mcp",
		ClientName: "Notes",
		Store:      mcpclient.FileStore(filepath.Join(dir, "notes")), // or keychain.Open
	})
	if err != nil {
		log.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &mcp.StreamableClientTransport{
		Endpoint: "https://mcp.example.com/mcp", HTTPClient: p.HTTPClient(),
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
}

// A token bound to a key of the program is useless to a thief.
func ExampleDPoP() {
	server := exampleServer()
	defer server.Close()
	c, err := mcpclient.Workload(context.Background(), mcpclient.Config{
		Server: server.URL + "/mcp",
		Token:  mcpclient.PlatformTokenFunc(exampleToken),
		DPoP:   &mcpclient.DPoP{},
	})
	if err != nil {
		log.Fatal(err)
	}
	token, err := c.Token(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(token.TokenType)
	resp, err := c.HTTPClient().Post(server.URL+"/mcp", "application/json", nil)
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode != http.StatusUnauthorized)
	// Output:
	// DPoP
	// true
}

// exampleToken imitates a platform: it returns a JWT for the requested audience.
func exampleToken(_ context.Context, audience string) (string, error) {
	claims, err := json.Marshal(map[string]string{"iss": "https://ci.example", "sub": "job", "aud": audience})
	return "e30." + base64.RawURLEncoding.EncodeToString(claims) + ".c2ln", err
}

// exampleServer starts an MCP server behind a guard, and an authorization server that issues a
// token for any assertion.
func exampleServer() *httptest.Server {
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	key := "" // thumbprint of the key that the token is bound to
	guard, err := mcpresource.New(mcpresource.Config{
		Resource:             s.URL + "/mcp",
		AuthorizationServers: []string{s.URL},
		Policy:               &mcpresource.Rules{Base: []string{"mcp"}},
		DPoP:                 &mcpresource.DPoP{NonceKey: make([]byte, 32)},
		Validator: mcpresource.ValidatorFunc(
			func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
				if c.Token != "the-token" {
					return nil, mcpresource.ErrInvalidToken
				}
				return &mcpresource.Principal{
					Issuer: s.URL, Subject: "job", Scopes: []string{"mcp"}, Audience: []string{s.URL + "/mcp"},
					ExpiresAt: time.Now().Add(time.Hour), Thumbprint: key,
				}, nil
			}),
	})
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "demo", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "whoami"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
	guard.Register(mux, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"issuer": s.URL, "token_endpoint": s.URL + "/token"})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		kind := "Bearer"
		if proof := r.Header.Get("DPoP"); proof != "" {
			kind, key = "DPoP", thumbprint(proof)
		}
		fmt.Fprintf(w, `{"access_token":"the-token","token_type":%q,"expires_in":900,"scope":"mcp"}`, kind)
	})
	return s
}
