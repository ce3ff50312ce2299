package gosdk_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/sqlite"
)

// A server built with the official Go SDK, whose callers sign in at an authorization
// server elsewhere.
func Example() {
	// Against a real server: mcpresource.Discover(ctx, "https://auth.example.com", nil)
	validator := mcpresource.ValidatorFunc(func(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
		return &mcpresource.Principal{
			Issuer: "https://auth.example.com", Subject: "alice", Scopes: []string{"mcp"},
			Audience: []string{"http://127.0.0.1/mcp"}, ExpiresAt: time.Now().Add(time.Hour),
		}, nil
	})
	guard, err := mcpresource.New(mcpresource.Config{
		Resource:             "http://127.0.0.1/mcp",
		AuthorizationServers: []string{"https://auth.example.com"},
		Validator:            validator,
		Policy:               &mcpresource.Rules{Base: []string{"mcp"}, Tools: map[string][]string{"delete_file": {"files:write"}}},
	})
	if err != nil {
		panic(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		caller, _ := gosdk.Principal(req) // of this very call
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello " + caller.Subject}}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "delete_file"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil // never reached without files:write
	})
	host := httptest.NewServer(gosdk.NewHandler(guard, server, nil))
	defer host.Close()

	session := connect(host.URL+"/mcp", "alices-token")
	defer session.Close()
	ctx := context.Background()
	tools, _ := session.ListTools(ctx, nil)
	fmt.Println(len(tools.Tools), "tool in alice's list")
	result, _ := session.CallTool(ctx, &mcp.CallToolParams{Name: "greet"})
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "delete_file"})
	fmt.Println("delete_file is refused:", err != nil)
	// Output:
	// 1 tool in alice's list
	// hello alice
	// delete_file is refused: true
}

// The authorization server in the same process and on the same origin: a drop-in MCP
// server with sign-in.
func Example_embedded() {
	ctx := context.Background()
	mux := http.NewServeMux()
	host := httptest.NewServer(mux) // yours: http.ListenAndServe("127.0.0.1:8080", mux)
	defer host.Close()
	base := host.URL

	key := make([]byte, 32) // yours: kept, or sign-ins end with the process
	rand.Read(key)
	store, err := sqlite.Open(ctx, ":memory:", sqlite.Options{}) // yours: a file
	if err != nil {
		panic(err)
	}
	defer store.Close()
	clients, err := dcr.New(dcr.Config{Store: store, SecretKeys: [][]byte{key}})
	if err != nil {
		panic(err)
	}
	as, err := authserver.New(ctx, authserver.Config{
		Issuer: base, Store: store, SecretKeys: [][]byte{key}, Clients: clients, Registration: clients,
		Resources: []storage.Resource{{URI: base + "/mcp", Name: "Notes", Scopes: []storage.ScopeText{{Name: "mcp", Description: "use your notes", Default: true}}}},
	})
	if err != nil {
		panic(err)
	}
	if _, err := as.Users().Create(ctx, "alice", "correct horse battery", false); err != nil {
		panic(err)
	}
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: base + "/mcp", AuthorizationServers: []string{base},
		Validator: mcpresource.Local(as), Policy: &mcpresource.Rules{Base: []string{"mcp"}},
	})
	if err != nil {
		panic(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	as.Register(mux)
	guard.Register(mux, gosdk.Unguarded(guard, server, nil))

	resp, err := http.Get(base + "/mcp")
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, strings.ReplaceAll(resp.Header.Get("WWW-Authenticate"), base, "BASE"))
	// Output:
	// 401 Bearer scope="mcp", resource_metadata="BASE/.well-known/oauth-protected-resource/mcp"
}

// connect is an SDK client that sends one token.
func connect(endpoint, token string) *mcp.ClientSession {
	client := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &mcp.StreamableClientTransport{
		Endpoint: endpoint, HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err != nil {
		panic(err)
	}
	return session
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}
