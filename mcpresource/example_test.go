package mcpresource_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
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

// A tool that lists the caller's repositories at GitHub, with the caller's own account
// there. The MCP token stays between this server and the authorization server.
func ExampleBroker() {
	as := exampleIssuer() // yours: "https://auth.example.com"
	defer as.Close()
	broker, err := mcpresource.NewBroker(mcpresource.BrokerConfig{
		Issuer: as.URL, ClientID: "notes-server", ClientSecret: "its-own-secret",
	})
	if err != nil {
		panic(err)
	}
	tool := func(w http.ResponseWriter, r *http.Request) {
		token, err := broker.Token(r.Context(), "github", "repo")
		var visit *mcpresource.InteractionRequiredError
		if errors.As(err, &visit) { // package gosdk does this for you
			fmt.Println("the person is asked to open", strings.TrimPrefix(visit.URL, as.URL))
			return
		}
		if err != nil {
			http.Error(w, "GitHub cannot be asked now.", http.StatusServiceUnavailable)
			return
		}
		call, _ := http.NewRequestWithContext(r.Context(), "GET", "https://api.github.com/user/repos", nil)
		token.SetAuthHeader(call)
		fmt.Println("GitHub is asked with", call.Header.Get("Authorization"))
	}
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: "http://localhost/mcp", AuthorizationServers: []string{as.URL},
		Validator: mcpresource.ValidatorFunc(func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
			return &mcpresource.Principal{Issuer: as.URL, Subject: c.Token, Audience: []string{"http://localhost/mcp"}, ExpiresAt: time.Now().Add(time.Hour)}, nil
		}),
	})
	if err != nil {
		panic(err)
	}
	for _, caller := range []string{"alice", "bob"} {
		r := httptest.NewRequest("GET", "http://localhost/mcp", nil)
		r.Header.Set("Authorization", "Bearer "+caller)
		guard.Protect(http.HandlerFunc(tool)).ServeHTTP(httptest.NewRecorder(), r)
	}
	// Output:
	// GitHub is asked with Bearer alices-token-at-github
	// the person is asked to open /connect/7Zq
}

// exampleIssuer is an authorization server where alice has connected GitHub, and bob not.
func exampleIssuer() *httptest.Server {
	mux := http.NewServeMux()
	as := httptest.NewServer(mux)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q}`, as.URL, as.URL+"/token")
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("subject_token") == "alice" {
			fmt.Fprint(w, `{"access_token":"alices-token-at-github","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer"}`)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"interaction_required","interaction_uri":%q}`, as.URL+"/connect/7Zq")
	})
	return as
}
