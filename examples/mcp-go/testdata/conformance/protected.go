// test/conformance compiles mcp-go's own conformance fixture into this package, behind this guard.
package main

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const issuer = "https://auth.example.com"

// guard accepts one token.
var guard = func() *mcpresource.Guard {
	resource := "http://" + os.Getenv("CONFORMANCE_ADDR") + "/mcp"
	g, err := mcpresource.New(mcpresource.Config{
		Resource: resource, AuthorizationServers: []string{issuer},
		Policy: &mcpresource.Rules{Base: []string{"mcp"}},
		Validator: mcpresource.ValidatorFunc(func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
			if c.Token != "side-door" {
				return nil, mcpresource.ErrInvalidToken
			}
			return &mcpresource.Principal{
				Issuer: issuer, Subject: "suite", ClientID: "suite", Scopes: []string{"mcp"},
				Audience: []string{resource}, ExpiresAt: time.Now().Add(time.Hour),
			}, nil
		}),
	})
	if err != nil {
		panic(err)
	}
	return g
}()

// protected puts the fixture behind the guard. The suite cannot send a token, so this wrapper,
// which exists only in this test, adds it.
func protected(next http.Handler) http.Handler {
	inner := guard.Protect(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer side-door")
		}
		inner.ServeHTTP(w, r)
	})
}
