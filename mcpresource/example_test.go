package mcpresource_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Any http.Handler that speaks MCP can stand behind a guard.
func Example() {
	// Against a real server: mcpresource.Discover(ctx, "https://auth.example.com", nil)
	validator := mcpresource.ValidatorFunc(func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
		if c.Token != "alices-token" {
			return nil, mcpresource.ErrInvalidToken
		}
		return &mcpresource.Principal{
			Issuer: "https://auth.example.com", Subject: "alice", Scopes: []string{"mcp"},
			Audience: []string{"https://mcp.example.com/mcp"}, ExpiresAt: time.Now().Add(time.Hour),
		}, nil
	})
	guard, err := mcpresource.New(mcpresource.Config{
		Resource:             "https://mcp.example.com/mcp",
		AuthorizationServers: []string{"https://auth.example.com"},
		Validator:            validator,
		Policy:               &mcpresource.Rules{Base: []string{"mcp"}, Tools: map[string][]string{"delete_*": {"files:write"}}},
	})
	if err != nil {
		panic(err)
	}
	mcp := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, _ := mcpresource.FromContext(r.Context())
		fmt.Println("handled for", caller.Subject)
	})
	mux := http.NewServeMux()
	guard.Register(mux, mcp)

	for _, authorization := range []string{"", "Bearer alices-token"} {
		r := httptest.NewRequest("GET", "https://mcp.example.com/mcp", nil)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	}
	// Output:
	// 401 Bearer scope="mcp", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
	// handled for alice
	// 200
}
