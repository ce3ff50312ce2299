package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// goSDK is the official SDK for Go with its own OAuth handler.
func goSDK(t *testing.T, l *life) {
	p := l.Person()
	const redirect = "http://localhost:3142/callback"
	var signIns atomic.Int32
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect,
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult,
			error) {
			signIns.Add(1)
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
	}
	if l.document != "" {
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: l.document}
	} else {
		config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName: l.name, RedirectURIs: []string{redirect},
				GrantTypes:    []string{"authorization_code", "refresh_token"},
				ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
			}}
	}
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		t.Fatal(err)
	}
	var session *mcp.ClientSession
	t.Cleanup(func() {
		if session != nil {
			session.Close()
		}
	})
	call := func(t *testing.T, tool string, args map[string]any) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), callLimit)
		defer cancel()
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil || result.IsError {
			t.Fatalf("%+v, %v", result, err)
		}
		b, err := json.Marshal(result.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	ctx := t.Context() // of the whole life, not of the first step
	l.registers(t, func(t *testing.T) string {
		c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
		if session, err = c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: l.MCPURL, OAuthHandler: handler},
			nil); err != nil {
			t.Fatal(err)
		}
		return call(t, "whoami", nil)
	})
	l.step(t, &l.row.refreshes, "AS-94 refreshes", func(t *testing.T) {
		before := l.events("token.refreshed")
		call(t, "whoami", nil) // it takes a token with ten seconds left for expired
		if signIns.Load() != 1 || l.events("token.refreshed") == before {
			t.Errorf("got %d sign-ins", signIns.Load())
		}
	})
	l.step(t, &l.row.stepsUp, "CL-20 AS-114 steps up", func(t *testing.T) {
		if out := call(t, "add_note", map[string]any{"text": "from a test"}); !strings.Contains(out, "from a test") ||
			signIns.Load() != 2 {
			t.Errorf("got %s and %d sign-ins", out, signIns.Load())
		}
	})
}
