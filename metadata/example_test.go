package metadata_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/mcp-authd/mcp-authd/metadata"
)

// A resource server publishes which authorization server issues its tokens (RFC 9728).
func ExampleHandler() {
	const resource = "https://mcp.example.com/mcp"
	h, err := metadata.Handler(metadata.ProtectedResource{
		Resource:             resource,
		AuthorizationServers: metadata.Values{"https://auth.example.com"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	metadata.Mount(mux, h, metadata.ProtectedResourcePath(resource))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", metadata.ProtectedResourceURL(resource), nil))
	fmt.Println(w.Code, w.Body)
	// Output:
	// 200 {"resource":"https://mcp.example.com/mcp","authorization_servers":["https://auth.example.com"]}
}

// Clients of different MCP revisions look for the document in different places, so it is served at
// all of them.
func ExampleAuthorizationServerPaths() {
	for _, path := range metadata.AuthorizationServerPaths("https://example.com/auth") {
		fmt.Println(path)
	}
	// Output:
	// /.well-known/oauth-authorization-server/auth
	// /.well-known/oauth-authorization-server/auth/
	// /auth/.well-known/oauth-authorization-server
	// /auth/.well-known/oauth-authorization-server/
	// /.well-known/openid-configuration/auth
	// /.well-known/openid-configuration/auth/
	// /auth/.well-known/openid-configuration
	// /auth/.well-known/openid-configuration/
}
