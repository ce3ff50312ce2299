// Package main is the SDK's own conformance fixture, which buildAdapted in adapter_test.go compiles
// with this transport.
package main

import (
	"context"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
)

const issuer = "https://auth.example.com"

// protected serves the fixture behind guard and adapter. The suite cannot send a token, so a side
// door adds one, which exists only in this test.
func protected(server *mcp.Server) http.Handler {
	resource := "http://" + *httpAddr + "/"
	guard, err := mcpresource.New(mcpresource.Config{
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
	addTools(server)
	handler := gosdk.NewHandler(guard, server, &gosdk.Options{Tasks: tasks()})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer side-door")
		}
		handler.ServeHTTP(w, r)
	})
}
