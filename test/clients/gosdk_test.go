package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

const goRedirect = "http://localhost:3142/callback"

// goMetadata returns the registration of a Go SDK program as a public client.
func goMetadata(name string) *oauthex.ClientRegistrationMetadata {
	return &oauthex.ClientRegistrationMetadata{
		ClientName: name, RedirectURIs: []string{goRedirect},
		GrantTypes:    []string{"authorization_code", "refresh_token"},
		ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
	}
}

// goHandler returns the OAuth handler of the Go SDK with the given client configuration. It counts
// the sign-ins of its user.
func goHandler(
	t *testing.T, d *demotest.Demo, config auth.AuthorizationCodeHandlerConfig, signIns *atomic.Int32,
) *auth.AuthorizationCodeHandler {
	t.Helper()
	p := d.Person()
	config.RedirectURL = goRedirect
	config.AuthorizationCodeFetcher = func(_ context.Context, args *auth.AuthorizationArgs) (
		*auth.AuthorizationResult, error,
	) {
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
	}
	handler, err := auth.NewAuthorizationCodeHandler(&config)
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// goSDK tests the official Go SDK with its own OAuth handler.
func goSDK(t *testing.T, l *life) {
	var signIns atomic.Int32
	var config auth.AuthorizationCodeHandlerConfig
	if l.document != "" {
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: l.document}
	} else {
		config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: goMetadata(l.name)}
	}
	handler := goHandler(t, l.Demo, config, &signIns)
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
	ctx := t.Context() // lives longer than the first step
	l.registers(t, func(t *testing.T) string {
		c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
		var err error
		if session, err = c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: l.MCPURL, OAuthHandler: handler},
			nil); err != nil {
			t.Fatal(err)
		}
		return call(t, "whoami", nil)
	})
	l.step(t, &l.row.refreshes, "AS-94 refreshes", func(t *testing.T) {
		before := l.events("token.refreshed")
		call(t, "whoami", nil) // it treats a token as expired ten seconds early
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

// TestGoSDKRegistersOnce: the Go SDK registers again at each step-up. A program that registers once
// itself and gives that client to its handler stays one client (docs/clients.md, Clearance).
func TestGoSDKRegistersOnce(t *testing.T) {
	byItself := auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: goMetadata("by itself")},
	}
	t.Run("CL-17 CL-20 a program that registers once is one client after a step-up, and when it starts again",
		func(t *testing.T) {
			data := t.TempDir()
			d := demotest.Start(t, demotest.Options{Args: []string{"--data", data}})
			client := registerOnce(t, d.Issuer)
			once := auth.AuthorizationCodeHandlerConfig{PreregisteredClient: client}
			for range 2 { // the second run is the restarted program with its stored client
				if ids := goStepsUp(t, d, once); ids[0] != client.ClientID || ids[1] != client.ClientID {
					t.Errorf("it calls as %v, and is registered as %s", ids, client.ClientID)
				}
			}
			if got := registered(t, data); len(got) != 1 || got[0] != client.ClientID {
				t.Errorf("got the clients %v, want %s alone", got, client.ClientID)
			}
		})
	t.Run("CL-20 the handler that registers is another client after a step-up", func(t *testing.T) {
		data := t.TempDir()
		d := demotest.Start(t, demotest.Options{Args: []string{"--data", data}})
		ids := goStepsUp(t, d, byItself)
		if got := registered(t, data); len(got) != 2 || ids[0] == ids[1] {
			t.Errorf("it calls as %v, of the clients %v; does the page still say that it registers again?", ids, got)
		}
	})
}

// registerOnce registers a program and returns the credentials for its handler.
func registerOnce(t *testing.T, issuer string) *oauthex.ClientCredentials {
	t.Helper()
	server, err := auth.GetAuthServerMetadata(t.Context(), issuer, nil)
	if err != nil || server == nil {
		t.Fatalf("%+v, %v", server, err)
	}
	got, err := oauthex.RegisterClient(t.Context(), server.RegistrationEndpoint, goMetadata("once"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &oauthex.ClientCredentials{ClientID: got.ClientID, Issuer: issuer}
}

// goStepsUp makes a program sign in, call a tool, and then call one that requires another scope. It
// returns the client ids that the server sees before and after.
func goStepsUp(t *testing.T, d *demotest.Demo, config auth.AuthorizationCodeHandlerConfig) (ids []string) {
	t.Helper()
	var signIns atomic.Int32
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	session, err := c.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: d.MCPURL, OAuthHandler: goHandler(t, d, config, &signIns),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for i, tool := range []string{"whoami", "add_note", "whoami"} {
		args := map[string]any{}
		if tool == "add_note" {
			args["text"] = "from a test"
		}
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil || result.IsError {
			t.Fatalf("%s: %+v, %v", tool, result, err)
		}
		if said, _ := result.StructuredContent.(map[string]any); i != 1 {
			id, _ := said["client"].(string)
			ids = append(ids, id)
		}
	}
	if signIns.Load() != 2 {
		t.Errorf("got %d sign-ins, want one and one step-up", signIns.Load())
	}
	return ids
}

// registered returns the clients of the server.
func registered(t *testing.T, data string) (ids []string) {
	t.Helper()
	var list []struct{ ID string }
	out, err := exec.Command(program.Authd(t), "client", "list", "--json", "--data", data).Output()
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}
